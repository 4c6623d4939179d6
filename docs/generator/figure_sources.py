"""Where the measured figures of the documents stand: ``docs/figures/*.yaml`` and how it is checked.

A file maps a document to groups of quotes. In a quote, figures stand in braces. A group with
``from`` (a JSON or CSV file) or ``computed`` (a function of :mod:`recorded_figures`) gives a value
for each; a group with ``exempt`` says why its figures are no measurements of this project.

A value is a path: steps separated by ``/``, each a key, a place in a list, or ``key=value`` pairs
(joined by ``&``) that choose one element of a list; ``*`` takes all, ``max`` and ``min`` reduce.
``over``, ``times``, ``plus`` and ``minus`` compute, from left to right: ``seconds over rows times
1000``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docs.generator.figure_text import NUMBER, figures
from docs.generator.recorded_figures import COMPUTED
from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.base.typed import read_yaml

REASONS = frozenset({"definition", "setting", "example", "published", "estimate"})
"""First word of an exemption; after ``published:`` stands the publication."""

_MARKED = re.compile(r"\{([^{}]*)\}")
_OPERATOR = re.compile(r" (over|times|plus|minus) ")


@dataclass(frozen=True)
class Quote:
    """A passage of a document.

    Attributes
    ----------
    text
        The passage; figures in braces, any white space for white space.
    values
        Path of each figure; none where the passage is exempt.
    source
        File in the repository, name of a computation, or reason of the exemption.
    """

    text: str
    source: str
    values: tuple[str, ...] = ()
    computed: bool = False
    exempt: bool = False

    @property
    def marked(self) -> list[str]:
        """The figures."""
        return _MARKED.findall(self.text)

    def places(self, document: str) -> list[re.Match[str]]:
        """Where the passage stands; group n is the n-th figure."""
        parts = _MARKED.split(self.text)
        pattern = ""
        for place, part in enumerate(parts):
            words = r"\s+".join(map(re.escape, re.split(r"\s+", part)))
            is_number = place % 2 and re.fullmatch(NUMBER, part)
            # Not the 8 of 0.98 or of 8 000.
            around = (r"(?<![\w.])", r"(?!\d|\.\d)") if is_number else ("", "")
            pattern += f"{around[0]}({words}){around[1]}" if place % 2 else words
        return list(re.finditer(pattern, document))


def read_quotes(path: Path) -> dict[str, list[Quote]]:
    """Document to its quotes, from one file of ``docs/figures``.

    Raises
    ------
    ValueError
        When a group has no source, or a quote no figure or another number of values.
    """
    found: dict[str, list[Quote]] = {}
    for document, groups in read_yaml(path).items():
        for group in groups:
            found.setdefault(document, []).extend(_quotes(group, document))
    return found


def _quotes(group: Mapping[str, Any], document: str) -> Iterator[Quote]:
    kinds = {"from", "computed", "exempt"} & group.keys()
    if len(kinds) != 1 or group.keys() - kinds - {"below", "quotes"}:
        raise ValueError(f"{document}: a group has one of from, computed, exempt: {dict(group)}")
    (kind,) = kinds
    source = str(group[kind])
    if kind == "exempt":
        reason, _, publication = source.partition(":")
        if reason not in REASONS or (reason == "published" and not publication.strip()):
            raise ValueError(f"{document}: {source!r} is no reason for an exemption")
    if source.startswith("results/"):
        raise ValueError(f"{document}: {source} is an output, which the repository does not hold")
    below = f"{group['below']}/" if "below" in group else ""
    for text in group["quotes"]:
        given = [] if kind == "exempt" else group["quotes"][text]
        values = tuple(_below(str(one), below) for one in given)
        quote = Quote(text, source, values, kind == "computed", kind == "exempt")
        if not quote.marked or (not quote.exempt and len(values) != len(quote.marked)):
            raise ValueError(f"{document}: {len(values)} values for {text!r}")
        if constants := [one for one in values if all(map(_is_number, _OPERATOR.split(one)[::2]))]:
            raise ValueError(f"{document}: {constants[0]} names no value in {source}")
        yield quote


def _below(value: str, below: str) -> str:
    terms = _OPERATOR.split(value)
    terms[::2] = [one if _is_number(one) else below + one for one in terms[::2]]
    return "".join(f" {one} " if place % 2 else one for place, one in enumerate(terms))


def check(name: str, text: str, quotes: list[Quote], root: Path) -> list[str]:
    """What is wrong with the figures of a document: one line each, none where all is well.

    Parameters
    ----------
    text
        The document, Markdown.
    """
    found: list[str] = []
    covered: list[tuple[int, int]] = []
    for quote in quotes:
        places = quote.places(text)
        if not places:
            found.append(f"{name}: lacks the quote {quote.text!r}")
        elif len(places) > 1 and not quote.exempt:
            found.append(f"{name}: has {len(places)} times {quote.text!r}: quote more of one")
        for place in places:
            covered += [place.span(number + 1) for number in range(len(quote.marked))]
        for figure, value in zip(quote.marked, quote.values, strict=False):
            if complaint := _wrong(figure, value, quote, root):
                found.append(f"{name}: {quote.text!r}: {complaint}")
    for one in figures(text):
        if not any(start <= one.start and one.end <= end for start, end in covered):
            line = text.count("\n", 0, one.start) + 1
            words = " ".join(text[max(0, one.start - 40) : one.end + 20].split())
            found.append(f"{name}:{line}: {one.text} has no source and no exemption: … {words} …")
    return found


def _wrong(figure: str, value: str, quote: Quote, root: Path) -> str | None:
    try:
        content = COMPUTED[quote.source]() if quote.computed else _content(root / quote.source)
        real = evaluated(value, content)
    except UserError as error:
        return str(error)
    except (KeyError, IndexError, StopIteration, TypeError, ValueError) as error:
        return f"{quote.source} has no {value}: {error!r}"
    return None if rounds_to(real, figure) else f"{quote.source}: {value} is {real}, not {figure}"


@cache
def _content(path: Path) -> Any:
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as stream:
            lines = [line for line in stream if not line.startswith("#")]
            return list(csv.DictReader(lines))
    return read_json(path)


def rounds_to(value: float, figure: str) -> bool:
    """Whether ``value``, rounded to as many digits as ``figure`` shows, is that figure."""
    text = figure.replace(" ", "")
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(value - float(text)) <= unit * (0.5 + 1e-9)


def evaluated(value: str, content: Any) -> float:
    """The number that a value of the table stands for.

    Raises
    ------
    KeyError, IndexError, StopIteration, TypeError, ValueError
        When there is no number at the path.
    """
    terms = _OPERATOR.split(value)
    result = _operand(terms[0], content)
    for operator, term in zip(terms[1::2], terms[2::2], strict=True):
        other = _operand(term, content)
        if operator == "over":
            result /= other
        elif operator == "times":
            result *= other
        elif operator == "plus":
            result += other
        else:
            result -= other
    return result


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(NUMBER, text))


def _operand(text: str, content: Any) -> float:
    return float(text) if _is_number(text) else float(_at(content, text.split("/")))


def _at(content: Any, steps: list[str]) -> Any:
    for place, step in enumerate(steps):
        if step == "*":
            each = content.values() if isinstance(content, Mapping) else content
            rest = steps[place + 1 :]
            reduce = {"max": max, "min": min}[rest[-1]]
            return reduce(float(_at(one, rest[:-1])) for one in each)
        if isinstance(content, Mapping):
            content = content[step]
        elif "=" in step:
            wanted = [pair.split("=") for pair in step.split("&")]
            content = next(
                one for one in content if all(str(one[key]) == text for key, text in wanted)
            )
        else:
            content = content[int(step)]
    return content
