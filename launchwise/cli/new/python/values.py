"""Values that only a run on a GPU would know: expressions, and conditions that a run explores."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_NODES = 150
"""Longest expression that is kept."""

MOST_DECISIONS = 200
"""Conditions of one run."""

MOST_RUNS = 64
_OFTEN = 2
"""As often a condition at one place holds before it does not: loops end."""

UNKNOWN = "?"
"""Name in an expression that is too long, or of what a kernel loads."""

MADE_OF = "\x1a"
"""Around a value in a text that is made of it."""

FILE = "<kernels>"
"""Name of the file that runs, in frames."""

Mark = tuple[Any, ...]


class NotKnown(Exception):
    """A value that only a GPU, or a module that is missing, would tell."""

    def __init__(self, line: int, said: str) -> None:
        super().__init__(said)
        self.line, self.said = line, said


@dataclass
class Run:
    """One run of a function: what its conditions were.

    Parameters
    ----------
    prefix
        Outcomes that are decided beforehand.
    taken
        Conditions with their outcomes.
    places
        Lines at which they were asked.
    """

    prefix: Sequence[bool] = ()
    taken: list[tuple[Value, bool]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def decide(self, condition: Value) -> bool:
        place, number = line_now(), len(self.taken)
        if number >= MOST_DECISIONS:
            raise NotKnown(place, "more conditions than are followed")
        is_said = number < len(self.prefix)
        outcome = self.prefix[number] if is_said else self.places.count(place) < _OFTEN
        self.taken.append((condition, outcome))
        self.places.append(place)
        return outcome


RUNS: list[Run] = []
"""The run that is explored, last; empty where conditions must be known."""


TRACES: list[Any] = []
"""The kernel that runs, last; empty while host code runs."""


def explore(function: Callable[[], Any], is_covering: bool) -> Iterator[tuple[Run, Any]]:
    """Run a function once per combination of conditions; yields the run with its result or error.

    Parameters
    ----------
    is_covering
        Once per outcome of each condition is enough.
    """
    pending: list[tuple[bool, ...]] = [()]
    seen: set[tuple[int, bool]] = set()
    for _ in range(MOST_RUNS):
        if not pending:
            return
        prefix = pending.pop()
        run = Run(prefix)
        RUNS.append(run)
        try:
            result = function()
        except (Exception, SystemExit) as error:
            result = error
        finally:
            RUNS.pop()
        outcomes = tuple(outcome for _, outcome in run.taken)
        for place in range(len(prefix), len(outcomes)):
            other = (run.places[place], not outcomes[place])
            if not is_covering or other not in seen:
                seen.add(other)
                pending.append((*outcomes[:place], not outcomes[place]))
        yield run, result


def gives_missing(error: BaseException, space: dict[str, Any]) -> bool:
    """Give a value to the name that a file lacks; False for other errors."""
    name = error.name if isinstance(error, NameError) else None
    if not name or name in space:
        return False
    space[name] = Value(ast.Name(name))
    return True


def line_now() -> int:
    """Line of the file that runs; 0 outside of it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != FILE:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else 0


class Base:
    """Class in the place of one of a module that is missing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(ast.Name(name))

    @classmethod
    def apply(cls, *given: Any, **named: Any) -> Any:
        """Call of a ``torch.autograd.Function``."""
        return cls.forward(Value(ast.Name("ctx")), *given, **named)  # type: ignore[attr-defined]


class Value:
    """A number, a text, a tensor, a module or a function that is not known.

    Parameters
    ----------
    node
        Its expression.
    marks
        What it comes from: ``("name", x)``, ``("base", x)`` for a pointer, ``("loaded", x)``,
        ``("pid", axis)``, ``("step", axis, block)``, ``("arange", block)``, ``("times", x)``,
        ``("mod", x)``, ``("bound", x)``.
    known
        A number where it is known all the same.
    owner
        What it is an attribute of.
    """

    on_call: Callable[..., Any]
    on_compare: Callable[..., Any]
    certain: Callable[[Value], bool | None]

    def __init__(
        self, node: ast.expr, marks: frozenset[Mark] = frozenset(), known: Any = None,
        owner: Value | None = None,
    ) -> None:  # fmt: skip
        self._node, self._marks, self._known, self._owner = node, marks, known, owner
        self._size = 1
        self._line = 0 if known is not None else line_now()
        self._source = self
        self._array: Any = None
        self._cast = ""
        self._given: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})

    @classmethod
    def of(cls, node: ast.expr, *parts: Value, known: Any = None, marks: Any = ()) -> Value:
        """A value that is computed from others; pointers are no part of it but by ``marks``."""
        made = Value(node, frozenset([*_marks(*parts), *marks]), known)
        made._size = 1 + sum(one._size for one in parts)
        if made._size > MOST_NODES:
            made._node = ast.Name(UNKNOWN)
        made._source = next((one._source for one in parts if one._known is None), made)
        return made

    @property
    def _name(self) -> str:
        """Its last name: ``load`` of ``tl.load``."""
        return getattr(self._node, "attr", getattr(self._node, "id", ""))

    def _said(self) -> str:
        return written(self._source._node)

    def _unknown(self) -> NotKnown:
        return NotKnown(self._source._line, f"{self._said()} is known only when it runs")

    def _names(self) -> set[str]:
        return {one[1] for one in self._marks if one[0] == "name"}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = None if TRACES else ATTRIBUTES.get(name)
        if known is not None and (found := known(self)) is not NotImplemented:
            return found
        node = ast.Attribute(self._node, name, ast.Load(), lineno=line_now())
        return Value(node, frozenset(bases(self)), owner=self)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return Value.on_call(self, *given, **named)

    def __getitem__(self, place: Any) -> Any:
        is_part = not isinstance(place, tuple | slice)
        node = ast.Subscript(self._node, node_of(place), ast.Load()) if is_part else self._node
        made = Value.of(node, self, marks=self._marks)
        made._owner, made._array = self, None if is_part else self._array
        return made

    def __setitem__(self, place: Any, value: Any) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise self._unknown()

    def __bool__(self) -> bool:
        if self._known is not None:
            return bool(self._known)
        if not TRACES and (certain := Value.certain(self)) is not None:
            return certain
        if not RUNS:
            raise self._unknown()
        return RUNS[-1].decide(self)

    def __index__(self) -> int:
        if isinstance(self._known, int):
            return self._known
        raise self._unknown()

    def __float__(self) -> float:
        return float("nan") if self._known is None else float(self._known)

    def __ceil__(self) -> Value:
        return called("ceil", self)

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
        return Value.of(ast.UnaryOp(ast.USub(), self._node), self, known=known)

    def __invert__(self) -> Value:
        return Value.of(ast.UnaryOp(ast.Not(), self._node), self)


ATTRIBUTES: dict[str, Callable[[Value], Any]] = {}
"""Attributes of values whose meaning is known."""

_SIGNS: dict[str, type[ast.AST]] = {
    **{"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "mod": ast.Mod},
    **{"floordiv": ast.FloorDiv, "pow": ast.Pow, "lshift": ast.LShift, "rshift": ast.RShift},
    **{"and_": ast.BitAnd, "or_": ast.BitOr, "xor": ast.BitXor, "matmul": ast.MatMult},
}
_COMPARED = {
    "lt": ast.Lt,
    "le": ast.LtE,
    "gt": ast.Gt,
    "ge": ast.GtE,
    "eq": ast.Eq,
    "ne": ast.NotEq,
}


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
    """Anything as a value."""
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
    return Value.of(ast.Call(ast.Name(name), [one._node for one in values], []), *values)


def _marks(*values: Value) -> set[Mark]:
    return {mark for one in values for mark in one._marks if mark[0] != "base"}


def bases(value: Any) -> set[Mark]:
    """Marks of the pointers that a value may be."""
    marks = value._marks if isinstance(value, Value) else ()
    return {one for one in marks if one[0] == "base"}


def _known(name: str, left: Value, right: Value) -> Any:
    both = left._known, right._known
    return None if None in both else getattr(operator, name)(*both)


def combined(sign: type[ast.operator], name: str, left: Value, right: Value) -> Any:
    """Value of ``left sign right``."""
    marks: set[Mark] = set()
    if sign in (ast.Add, ast.Sub):
        marks = bases(left) or bases(right)  # A pointer stands before offsets.
    elif sign is ast.Mult:
        marks = {("times", one) for one in left._names() | right._names()}
        for one, block in ((left, right), (right, left)):
            if isinstance(block._node, ast.Name) and block._names():
                axes = {mark[1] for mark in one._marks if mark[0] == "pid"}
                marks |= {("step", axis, block._name) for axis in axes}
    elif sign is ast.Mod and isinstance(right._node, ast.Name) and right._names():
        marks = {("mod", right._name)}
    Value.on_compare(sign, left, right)
    node = ast.BinOp(left._node, sign(), right._node)
    return Value.of(node, left, right, known=_known(name, left, right), marks=marks)


def compared(sign: type[ast.cmpop], name: str, left: Value, right: Value) -> Value:
    """Value of a comparison."""
    Value.on_compare(sign, left, right)
    bounds = {("bound", one) for one in right._names()}
    node = ast.Compare(left._node, [sign()], [right._node])
    known = _known(name, left, right) if name else None
    return Value.of(node, left, right, known=known, marks=bounds)


def _operators(name: str, sign: Any) -> None:
    """Give values an operator, also where the other side stands first."""
    plain = getattr(operator, name)

    def forwards(self: Any, other: Any) -> Any:
        if self._known is not None and not isinstance(other, Value | int | float):
            return plain(self._known, other)
        if issubclass(sign, ast.cmpop):
            return compared(sign, name, self, value_of(other))
        return combined(sign, name, self, value_of(other))

    def backwards(self: Any, other: Any) -> Any:
        if self._known is not None and not isinstance(other, Value | int | float):
            return plain(other, self._known)
        return combined(sign, name, value_of(other), self)

    setattr(Value, f"__{name.strip('_')}__", forwards)
    if issubclass(sign, ast.operator):
        setattr(Value, f"__r{name.strip('_')}__", backwards)


for _pair in (_SIGNS | _COMPARED).items():
    _operators(*_pair)
