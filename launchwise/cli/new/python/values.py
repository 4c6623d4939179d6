"""Values that only a run on a GPU would know: expressions, and conditions that a run explores."""

from __future__ import annotations

import inspect
import operator
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

MOST_NODES = 150  # Longest expression that is kept
MOST_DECISIONS = 200  # Conditions of one run

MOST_RUNS = 64
_OFTEN = 2  # As often a condition at one place holds before it does not: loops end
UNKNOWN = "?"  # Name in an expression that is too long, or of what a kernel computes
MADE_OF = "\x1a"  # Around a value in a text that is made of it
FILE = "<kernels>"  # Name of the file that runs, in frames


class NotKnown(Exception):
    """A value that only a GPU, or a module that is missing, would tell. It also stands in the place
    of a value that could not be computed."""

    def __init__(self, line: int, said: str) -> None:
        super().__init__(said)
        self.line = line


def line_now() -> int:
    """Line of the file that runs; 0 outside of it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


class TimeLimit(BaseException):
    """Part of a file takes too long."""


class Launched(BaseException):
    """The launch that a run is made for."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End a block after so much CPU time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TimeLimit:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


# Runs


@dataclass
class Run:
    """One run of a function: what its conditions were, and what it said."""

    prefix: Sequence[bool] = ()  # Outcomes that are decided beforehand.
    taken: list[tuple[Value, bool]] = field(default_factory=list)  # Conditions, their outcomes,
    places: list[int] = field(default_factory=list)  # and the lines at which they were asked.
    symbols: dict[str, Any] = field(default_factory=dict)  # Names in expressions, of all its runs
    tensors: dict[str, Any] = field(default_factory=dict)  # In the order of their making
    launches: list[Any] = field(default_factory=list)

    def decide(self, condition: Value) -> bool:
        place, number = line_now(), len(self.taken)
        if number >= MOST_DECISIONS:
            raise NotKnown(place, "more conditions than are followed")
        is_said = number < len(self.prefix)
        outcome = self.prefix[number] if is_said else self.places.count(place) < _OFTEN
        self.taken.append((condition, outcome))
        self.places.append(place)
        return outcome


RUNS: list[Run] = [Run()]  # That of the file, whose conditions must be known; the one now, last
TRACES: list[Any] = []  # The kernel that runs, last; empty while host code runs


def explore(function: Callable[[], Any], is_covering: bool) -> Iterator[Run]:
    """Run a function once per combination of conditions, to its end or an error. If
    ``is_covering``, once per outcome of each condition is enough."""
    pending: list[tuple[bool, ...]] = [()]
    seen: set[tuple[int, bool]] = set()
    symbols = {**RUNS[0].symbols}
    for _ in range(MOST_RUNS):
        if not pending:
            return
        run = Run(pending.pop(), symbols=symbols)
        RUNS.append(run)
        try:
            with suppress(Exception, SystemExit, Launched):
                function()
        finally:
            RUNS.pop()
        outcomes = tuple(outcome for _, outcome in run.taken)
        for place in range(len(run.prefix), len(outcomes)):
            other = (run.places[place], not outcomes[place])
            if not is_covering or other not in seen:
                seen.add(other)
                pending.append((*outcomes[:place], not outcomes[place]))
        yield run


# Values


class Base:
    """Class in the place of one of a module that is missing; any attribute is a value."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(name)


class Value:
    """A number, a text, a tensor, a module or a function that is not known."""

    on_call: Callable[..., Any]

    def __init__(
        self, text: str, sign: Any = "name", parts: Sequence[Value] = (), *, name: str = "",
        known: Any = None, owner: Value | None = None,
    ) -> None:  # fmt: skip
        # How it is computed of its parts: an operator, "call", or what a kernel does: "load".
        self._sign, self._parts = sign, parts
        self._size: int = 1 + sum(one._size for one in parts)
        self._text = text if self._size <= MOST_NODES else UNKNOWN
        self._name = name or text * (sign in ("name", "parameter"))  # The last of dotted names.
        self._known = known  # A number where it is known all the same, or a text.
        self._owner = owner  # What it is an attribute of.
        self._line = 0 if known is not None else line_now()
        self._source: Value = next((one._source for one in parts if one._known is None), self)
        self._bases: frozenset[str] = frozenset()  # Parameters of the kernel that it points to.
        self._tensor: Any = None
        self._cast = ""
        self._given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    def _said(self) -> str:
        """Its text, in one line."""
        text = " ".join(self._text.split())
        text = text[1:-1] if self._sign in SIGNS.values() else text
        return text if len(text) <= 80 else f"{text[:77]}..."

    def _unknown(self) -> NotKnown:
        return NotKnown(self._source._line, f"{self._source._said()} is known only when it runs")

    def _walk(self, through: Collection[Any] = ()) -> Iterator[Value]:
        """It and all that it is computed from, but for addresses of loads and ends of ranges. With
        ``through``, only by these signs."""
        pending, seen = [self], {id(self)}
        while pending:
            one = pending.pop()
            yield one
            ends = one._sign not in through if through else one._sign in ("load", "arange")
            new = [each for each in one._parts if id(each) not in seen and not ends]
            seen |= {*map(id, new)}
            pending += new

    def _names(self) -> set[str]:
        return {one._name for one in self._walk() if one._sign == "parameter"}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = None if TRACES else ATTRIBUTES.get(name)
        if known is not None and (found := known(self)) is not NotImplemented:
            return found
        made = Value(f"{self._text}.{name}", "attribute", name=name, owner=self)
        made._bases = self._bases
        return made

    def __call__(self, *given: Any, **named: Any) -> Any:
        return Value.on_call(self, *given, **named)

    def __getitem__(self, place: Any) -> Any:
        is_part = not isinstance(place, tuple | slice)
        text = f"{self._text}[{value_of(place)._text}]" if is_part else self._text
        made = Value(text, "item", [self], owner=self)
        made._bases, made._tensor = self._bases, None if is_part else self._tensor
        return made

    def __setitem__(self, place: Any, value: Any) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise self._unknown()

    def __bool__(self) -> bool:
        if self._known is not None:
            return bool(self._known)
        if len(RUNS) == 1:
            raise self._unknown()
        return RUNS[-1].decide(self)

    def __index__(self) -> int:
        if isinstance(self._known, int):
            return self._known
        raise self._unknown()

    def __float__(self) -> float:
        return float("nan") if self._known is None else float(self._known)

    def __hash__(self) -> int:
        return id(self) if self._known is None else hash(self._known)

    def __format__(self, form: str) -> str:
        if self._known is not None:
            return format(self._known, form)
        return f"{MADE_OF}{self._source._said()}{MADE_OF}"

    def __str__(self) -> str:
        return self._said() if self._known is None else str(self._known)

    __repr__ = __str__

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (Base,)

    def keys(self) -> tuple[str, ...]:
        """Nothing is known of a mapping: ``**config``."""
        return ()

    def __enter__(self) -> Value:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __neg__(self) -> Value:
        known = None if self._known is None else -self._known
        return Value(f"(-{self._text})", "negative", [self], known=known)

    def __invert__(self) -> Value:
        return Value(f"(not {self._text})", "not", [self])


ATTRIBUTES: dict[str, Callable[[Value], Any]] = {}  # Attributes of values whose meaning is known


def value_of(value: Any) -> Value:
    if isinstance(value, Value):
        return value
    if isinstance(value, int | float | str | None):
        return Value(repr(value), "constant", known=value)
    if isinstance(value, tuple | list | set):
        parts = [*map(value_of, value)]
        return Value(f"({', '.join(one._text for one in parts)})", "tuple", parts)
    return Value(getattr(value, "__name__", UNKNOWN))


def called(name: str, *given: Any, **named: Any) -> Value:
    """What a function returns, such as one of the language of ``spec.yaml``."""
    values = [*map(value_of, (*given, *named.values()))]
    keys = [*("" for _ in given), *(f"{key}=" for key in named)]
    text = ", ".join(f"{key}{one._text}" for key, one in zip(keys, values, strict=True))
    return Value(f"{name}({text})", "call", values, name=name)


# Operators

SIGNS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "mod": "%", "floordiv": "//"},
    **{"pow": "**", "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^"},
    **{"matmul": "@", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="},
}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=", "in", "not in")


def combined(sign: str, plain: Callable[..., Any] | None, left: Value, right: Value) -> Value:
    """Value of ``left sign right``; ``plain`` computes it of numbers."""
    if TRACES:
        TRACES[-1].compared(sign, left, right)
    both = left._known, right._known
    known = None if plain is None or None in both else plain(*both)
    made = Value(f"({left._text} {sign} {right._text})", sign, [left, right], known=known)
    if sign in ("+", "-"):
        made._bases = left._bases or right._bases  # A pointer stands before offsets.
    return made


def _operators(name: str, sign: str) -> None:
    """Give values an operator, also where the other side stands first."""
    plain = getattr(operator, name)

    def forwards(self: Any, other: Any) -> Any:
        if self._known is not None and not isinstance(other, Value | int | float):
            return plain(self._known, other)
        return combined(sign, plain, self, value_of(other))

    def backwards(self: Any, other: Any) -> Any:
        if self._known is not None and not isinstance(other, Value | int | float):
            return plain(other, self._known)
        return combined(sign, plain, value_of(other), self)

    setattr(Value, f"__{name.strip('_')}__", forwards)
    if sign not in COMPARISONS:
        setattr(Value, f"__r{name.strip('_')}__", backwards)


for _pair in SIGNS.items():
    _operators(*_pair)
