"""Values of the repository's files that documents quote.

A source is a file or a computation: ``answers.json`` (in ``benchmarks/results``), a path from the
root with a ``/`` (``data/recorded/h200/profile.json``; JSON or CSV), or the name of a function of
the modules ``recorded_*``.

A value is a path in the source: steps separated by ``/``, each a key, a place in a list, or
``key=value`` pairs (joined by ``&``) that choose one element of a list. ``*`` takes all elements,
``*&key=value`` those that match; behind it ``max`` and ``min`` reduce. ``[path]`` within a step
stands for the text at that path. Below null is null. ``over``, ``times``, ``plus`` and ``minus``
compute, from left to right: ``seconds over rows times 1000``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from docs.generator import recorded_answers, recorded_figures, recorded_sweeps
from docs.generator.figure_text import NUMBER
from launchwise.base.errors import UserError
from launchwise.base.storage import read_json

RESULTS = "benchmarks/results"
NOTHING = "–"  # What stands where a source has no value (null)

_OPERATOR = re.compile(r" (over|times|plus|minus) ")
_INDIRECT = re.compile(r"\[([^\[\]]*)\]")
_EXPONENT = re.compile(r"e([-+])0*(?=\d)")


class NoValueError(Exception):
    """A source or a value of it does not exist; says which."""


@dataclass(frozen=True)
class Element:
    """One of the elements that a path with ``*`` takes: its key, or its place in a list."""

    name: str
    content: Any


class Sources:
    """Sources by name: files, computations, and short names that a document gives them.

    ``root``: folder of the repository.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._named: dict[str, Any] = {}

    def name(self, definitions: str) -> None:
        """Give short names: ``NAME = SOURCE PATH; ...``. Raises NoValueError when there is no such
        source or path."""
        for definition in definitions.split(";"):
            name, _, rest = " ".join(definition.split()).partition(" = ")
            source, _, path = rest.partition(" ")
            elements = self.elements(source, path)
            several = path.startswith("*") or "/*" in path
            self._named[name] = (
                [one.content for one in elements] if several else elements[0].content
            )

    def elements(self, source: str, path: str) -> list[Element]:
        """The elements that a path of a source takes; see :func:`elements_at`."""
        return elements_at(path, self.content(source))

    def content(self, source: str) -> Any:
        """What a source holds. Raises NoValueError when there is no such file or computation, or
        the file is an output of the pipeline."""
        if source in self._named:
            return self._named[source]
        if "/" not in source and not source.endswith((".json", ".csv")):
            return _computation(source)()
        path = source if "/" in source else f"{RESULTS}/{source}"
        if path.startswith("results/"):
            raise NoValueError(f"{path} is an output, which the repository does not hold")
        try:
            return _file_content(self._root / path)
        except (UserError, OSError) as error:
            raise NoValueError(str(error)) from None


def _computation(name: str) -> Callable[[], Any]:
    """A public function of the modules of figures that are computed."""
    for module in (recorded_answers, recorded_figures, recorded_sweeps):
        found = vars(module).get(name)
        if not name.startswith("_") and getattr(found, "__module__", "") == module.__name__:
            return cast(Callable[[], Any], found)
    raise NoValueError(f"{name} is no computation of docs/generator/recorded_*.py")


@cache
def _file_content(path: Path) -> Any:
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as stream:
            lines = [line for line in stream if not line.startswith("#")]
            return list(csv.DictReader(lines))
    return read_json(path)


def value_at(value: str, content: Any, source: Any = None) -> Any:
    """What stands in ``content`` at a path, or the number that a computation gives. A path that
    begins with ``/`` is one in ``source``, the whole source. Raises NoValueError when nothing
    stands there, or the computation names no value."""
    terms = _OPERATOR.split(value)
    if all(map(_is_number, terms[::2])):
        raise NoValueError(f"{value!r} names no value")
    try:
        result = _operand(terms[0], content, source)
        for operator, term in zip(terms[1::2], terms[2::2], strict=True):
            number, other = float(result), float(_operand(term, content, source))
            if operator == "over":
                result = number / other
            elif operator == "times":
                result = number * other
            else:
                result = number + other if operator == "plus" else number - other
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise NoValueError(f"has no {value!r}: {error!r}") from None
    return result


def elements_at(path: str, content: Any) -> list[Element]:
    """The elements that a path takes; one, without a name, where it has no ``*``. Raises
    NoValueError when there is none."""
    try:
        elements = list(_elements(path.split("/") if path else [], content, ""))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise NoValueError(f"has no {path!r}: {error!r}") from None
    if not elements:
        raise NoValueError(f"has no element {path!r}")
    return elements


def _elements(steps: list[str], content: Any, name: str) -> Iterator[Element]:
    for place, step in enumerate(steps):
        if step.startswith("*"):
            rest = steps[place + 1 :]
            for key, one in _items(content):
                if _matches(one, step.split("&")[1:]):
                    yield from _elements(rest, one, key)
            return
        content = _at(content, [step])
    yield Element(name, content)


def _items(content: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(content, Mapping):
        yield from ((str(key), one) for key, one in content.items())
    else:
        yield from ((str(place), one) for place, one in enumerate(content))


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(NUMBER, text))


def _operand(text: str, content: Any, source: Any) -> Any:
    if _is_number(text):
        return float(text)
    path = _INDIRECT.sub(lambda found: str(_at(content, found[1].split("/"))), text)
    if path.startswith("/"):
        path, content = path[1:], source
    return _at(content, path.split("/"))


def _matches(content: Any, wanted: list[str]) -> bool:
    if wanted and not isinstance(content, Mapping):
        return False
    pairs = (one.partition("=") for one in wanted)
    return all(str(content.get(key)) == text for key, _, text in pairs)


def _at(content: Any, steps: list[str]) -> Any:
    for place, step in enumerate(steps):
        if step == "*":
            rest = steps[place + 1 :]
            reduce = {"max": max, "min": min}[rest[-1]]
            return reduce(float(_at(one, rest[:-1])) for _, one in _items(content))
        if content is None:
            return None
        if isinstance(content, Mapping):
            content = content[step]
        elif "=" in step:
            content = next((one for one in content if _matches(one, step.split("&"))), None)
            if content is None:
                raise KeyError(step)
        else:
            content = content[int(step)]
    return content


def formatted(value: Any, form: str = "") -> str:
    """A value as a table shows it: "0.9 to 1.1" for a list, a dash for null.

    ``form``: Python's format, such as ``.2f``, ``.3g`` (which keeps zeros at the end) or, of text,
        ``.7``; none for whole numbers. Thousands are separated by spaces.
    Raises NoValueError when a number that is not whole has no format.
    """
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return f"{value:{form}}"
    if isinstance(value, list):
        return " to ".join(formatted(one, form) for one in value)
    if not form:
        if float(value) != int(value):
            raise NoValueError(f"{value} needs a format, such as .2f")
        form = ".0f"
    alternate = "#" if form.endswith("g") and form != "g" else ""
    text = f"{float(value):{alternate},{form}}".replace(",", " ").removesuffix(".")
    return _EXPONENT.sub(lambda found: "e" + found[1].strip("+"), text)


def as_written(value: Any, figure: str) -> str:
    """``value`` with as many digits as ``figure`` shows, and as it is written: .98, 1 444, 2e-5."""
    if value is None:
        raise NoValueError("has nothing there")
    mantissa, _, exponent = figure.replace(" ", "").partition("e")
    text = formatted(float(value), f".{len(mantissa.partition('.')[2])}{'e' if exponent else 'f'}")
    return text.removeprefix("0") if figure.startswith(".") and text.startswith("0.") else text
