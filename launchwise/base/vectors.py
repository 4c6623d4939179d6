"""Expressions over whole columns at once, and as nested lists for languages without a parser.

The language of :mod:`expressions`, with operators of NumPy. Both branches of a condition are
computed and one is taken, so a division by zero in the branch that is not taken is no error.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from launchwise.base.arithmetic import FUNCTIONS, OPERATORS, next_power_of_2
from launchwise.base.expressions import Arithmetic, applied, compiled, names_in, parsed

_LARGEST = float(1 << 62)


def _without_overflow(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """int64 operation that switches to float64 on overflow."""

    def apply(left: Any, right: Any) -> Any:
        if _is_real(left) or _is_real(right):
            return operation(left, right)
        exact = operation(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
        if np.any(np.abs(exact) >= _LARGEST):
            return exact
        return operation(left, right)

    return apply


def _is_real(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _joining(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda *values: reduce(ufunc, values)


_every, _some = _joining(np.logical_and), _joining(np.logical_or)

_COLUMNS = Arithmetic(
    operators={
        **OPERATORS,
        ast.Add: operator.add,
        ast.Mult: _without_overflow(operator.mul),
        ast.Mod: operator.mod,
        ast.Pow: _without_overflow(operator.pow),
        ast.Not: np.logical_not,
        ast.In: lambda value, members: _some(*(value == one for one in members)),
        ast.NotIn: lambda value, members: _every(*(value != one for one in members)),
    },
    functions={
        **FUNCTIONS,
        "min": _joining(np.minimum),
        "max": _joining(np.maximum),
        "abs": np.abs,
        "log2": np.log2,
        "next_power_of_2": np.vectorize(
            lambda value: next_power_of_2(int(value)), otypes=[np.int64]
        ),
    },
    choose=lambda *parts: applied(np.where, *parts),
    every=lambda conditions: applied(_every, *conditions),
    some=lambda conditions: applied(_some, *conditions),
)


class Columns:
    """Values of expressions for every row of a table. ``derived``: name to expression, each reading
    columns and earlier derived names. ``columns``: column to its values: int64 or float64, or text
    as an object array, each of shape (rows,). A plain number holds for every row."""

    def __init__(self, derived: Mapping[str, str], columns: Mapping[str, Any]) -> None:
        self._derived = dict(derived)
        self._known = dict(columns)
        lengths = [len(values) for values in columns.values() if np.ndim(values)]
        self._rows = lengths[0] if lengths else 1

    def bind(self, name: str, values: np.ndarray) -> None:
        """Give a name its values, shape (rows,), or other ones than before."""
        for derived in standing_on(tuple(self._derived.items()), name):
            self._known.pop(derived, None)
        self._known[name] = values

    def value(self, text: str) -> np.ndarray:
        """Values of ``text``, shape (rows,). Raises ValueError when a name is missing or the
        expression cannot be evaluated."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._value(text)
        if isinstance(found, np.ndarray) and found.shape == (self._rows,):
            return found
        return np.broadcast_to(found, (self._rows,))

    def _value(self, text: str) -> Any:
        # Dependencies of a derived name are derived first, each once.
        for name in names_in(text):
            if name not in self._known:
                if name not in self._derived:
                    raise ValueError(f"{text!r} needs {name}")
                self._known[name] = self._value(self._derived[name])
        try:
            return compiled(text, _COLUMNS)(self._known)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(f"{text!r} cannot be evaluated: {error}") from error


@lru_cache(maxsize=256)
def standing_on(derived: tuple[tuple[str, str], ...], name: str) -> frozenset[str]:
    """Derived names, given with their expressions in order, that depend on ``name``."""
    found = {name}
    for each, text in derived:
        if names_in(text) & found:
            found.add(each)
    return frozenset(found - {name})


COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
INFIX = ("+", "-", "*", *COMPARISONS)
"""Signs that stand between two operands in most languages, with the same meaning for integers."""


def _node(*parts: Any) -> list[Any]:
    if any(isinstance(part, tuple) for part in parts):
        raise ValueError("a list of values stands where one value can")
    return [*parts]


def _within(value: Any, members: Any) -> list[Any]:
    if not isinstance(members, tuple) or not members:
        raise ValueError("no list of values follows `in`")
    return _node("or", *(_node("==", value, one) for one in members))


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        return ["name", name]


_SIGNS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.Not: "not", ast.USub: "negative"},
}
_LISTS = Arithmetic(
    operators={
        **{kind: partial(_node, sign) for kind, sign in _SIGNS.items()},
        ast.In: _within,
        ast.NotIn: lambda value, members: ["not", _within(value, members)],
    },
    functions={name: partial(_node, name) for name in FUNCTIONS},
    choose=partial(applied, partial(_node, "if")),
    every=lambda conditions: applied(partial(_node, "and"), *conditions),
    some=lambda conditions: applied(partial(_node, "or"), *conditions),
)


def nested(text: str) -> Any:
    """An expression as nested lists.

    A list is an operator or a function and its operands: ``["name", "n"]`` is a parameter's value,
    ``if`` has a condition and two values, all others are written as in Python. Chained comparisons
    are joined by ``and``, ``in`` becomes equalities. What is no list is a value. Raises ValueError
    when it divides by ``/``, or has another operator that these lists do not.
    """
    try:
        return _node(compiled(text, _LISTS)(_Names()))[0]
    except (KeyError, ValueError) as error:
        raise ValueError(f"{text!r} cannot be written in other languages: {error}") from error


def is_simple(text: str) -> bool:
    """Whether an expression has neither functions nor powers, and other languages can write it."""
    try:
        nested(text)
    except ValueError:
        return False
    return not any(isinstance(node, ast.Call | ast.Pow) for node in ast.walk(parsed(text)))
