"""Values that only a run on a GPU would know: expressions, and conditions that a run explores."""

from __future__ import annotations

import ast
import inspect
import operator
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
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
    symbols: dict[str, Any] = field(default_factory=dict)  # What names in expressions stand for,
    called: dict[str, str] = field(default_factory=dict)  # and how the host calls them.
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


def explore(function: Callable[[], Any], is_covering: bool) -> Iterator[tuple[Run, Any]]:
    """Run a function once per combination of conditions; yields the run with its result or error.
    If ``is_covering``, once per outcome of each condition is enough."""
    pending: list[tuple[bool, ...]] = [()]
    seen: set[tuple[int, bool]] = set()
    for _ in range(MOST_RUNS):
        if not pending:
            return
        run = Run(pending.pop(), symbols={**RUNS[0].symbols}, called={**RUNS[0].called})
        RUNS.append(run)
        try:
            result = function()
        except (Exception, SystemExit, Launched) as error:
            result = error
        finally:
            RUNS.pop()
        outcomes = tuple(outcome for _, outcome in run.taken)
        for place in range(len(run.prefix), len(outcomes)):
            other = (run.places[place], not outcomes[place])
            if not is_covering or other not in seen:
                seen.add(other)
                pending.append((*outcomes[:place], not outcomes[place]))
        yield run, result


# Values


class Base:
    """Class in the place of one of a module that is missing; any attribute is a value."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(ast.Name(name))


class Value:
    """A number, a text, a tensor, a module or a function that is not known."""

    on_call: Callable[..., Any]

    def __init__(
        self, node: ast.expr, parts: Sequence[Value] = (), sign: Any = None, *, known: Any = None,
        owner: Value | None = None,
    ) -> None:  # fmt: skip
        self._node = node  # Its expression.
        # What it is computed from, and how: by a class of `ast`, or what a kernel does: "load".
        self._parts, self._sign = parts, sign
        self._known = known  # A number where it is known all the same.
        self._owner = owner  # What it is an attribute of.
        self._size: int = 1 + sum(one._size for one in parts)
        if self._size > MOST_NODES:
            self._node = ast.Name(UNKNOWN)
        self._line = 0 if known is not None else line_now()
        self._source: Value = next((one._source for one in parts if one._known is None), self)
        self._bases: frozenset[str] = frozenset()  # Parameters of the kernel that it points to.
        self._tensor: Any = None
        self._cast = ""
        self._given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    @property
    def _name(self) -> str:
        return getattr(self._node, "attr", getattr(self._node, "id", ""))

    def _said(self) -> str:
        return written(self._source._node)

    def _unknown(self) -> NotKnown:
        return NotKnown(self._source._line, f"{self._said()} is known only when it runs")

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
        made = Value(ast.Attribute(self._node, name, ast.Load(), lineno=line_now()), owner=self)
        made._bases = self._bases
        return made

    def __call__(self, *given: Any, **named: Any) -> Any:
        return Value.on_call(self, *given, **named)

    def __getitem__(self, place: Any) -> Any:
        is_part = not isinstance(place, tuple | slice)
        node = ast.Subscript(self._node, node_of(place), ast.Load()) if is_part else self._node
        made = Value(node, [self], owner=self)
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
        return f"{MADE_OF}{self._said()}{MADE_OF}"

    def __str__(self) -> str:
        return written(self._node) if self._known is None else str(self._known)

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
        return Value(ast.UnaryOp(ast.USub(), self._node), [self], known=known)

    def __invert__(self) -> Value:
        return Value(ast.UnaryOp(ast.Not(), self._node), [self])


ATTRIBUTES: dict[str, Callable[[Value], Any]] = {}  # Attributes of values whose meaning is known


def node_of(value: Any) -> ast.expr:
    """Expression of anything."""
    if isinstance(value, Value):
        return value._node
    if isinstance(value, int | float | str | bool | None):
        return ast.Constant(value)
    if isinstance(value, tuple | list | set):
        return ast.Tuple([node_of(one) for one in value], ast.Load())
    return ast.Name(getattr(value, "__name__", UNKNOWN))


def value_of(value: Any) -> Value:
    if isinstance(value, Value):
        return value
    return Value(node_of(value), known=value if isinstance(value, int | float) else None)


def written(node: ast.expr) -> str:
    """Text of an expression, in one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def called(name: str, *given: Any) -> Value:
    """Value of a function of the language of ``spec.yaml``."""
    values = [value_of(one) for one in given]
    return Value(ast.Call(ast.Name(name), [one._node for one in values], []), values)


# Operators

_SIGNS: dict[str, type[ast.AST]] = {
    **{"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "mod": ast.Mod},
    **{"floordiv": ast.FloorDiv, "pow": ast.Pow, "lshift": ast.LShift, "rshift": ast.RShift},
    **{"and_": ast.BitAnd, "or_": ast.BitOr, "xor": ast.BitXor, "matmul": ast.MatMult},
    **{"lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "eq": ast.Eq, "ne": ast.NotEq},
}


def combined(sign: Any, plain: Callable[..., Any] | None, left: Value, right: Value) -> Value:
    """Value of ``left sign right``; ``plain`` computes it of numbers."""
    if TRACES:
        TRACES[-1].compared(sign, left, right)
    node: ast.expr
    if issubclass(sign, ast.cmpop):
        node = ast.Compare(left._node, [sign()], [right._node])
    else:
        node = ast.BinOp(left._node, sign(), right._node)
    both = left._known, right._known
    known = None if plain is None or None in both else plain(*both)
    made = Value(node, [left, right], sign, known=known)
    if sign in (ast.Add, ast.Sub):
        made._bases = left._bases or right._bases  # A pointer stands before offsets.
    return made


def _operators(name: str, sign: Any) -> None:
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
    if issubclass(sign, ast.operator):
        setattr(Value, f"__r{name.strip('_')}__", backwards)


for _pair in _SIGNS.items():
    _operators(*_pair)
