"""Evaluates expressions over whole columns at once.

The same language as :mod:`expressions`, which stays the reference: a test holds both
together. Both branches of a condition are computed and one is taken, so a division by zero in the
branch that is not taken is no error.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from launchwise.base.arithmetic import next_power_of_2
from launchwise.base.expressions import FUNCTIONS, names_in

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
    """Whether a value or an array holds floating-point numbers, which do not wrap."""
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def _extreme(ufunc: np.ufunc) -> Callable[..., Any]:
    def apply(*values: Any) -> Any:
        return reduce(ufunc, values)

    return apply


_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _without_overflow(operator.mul),
    ast.Pow: _without_overflow(operator.pow),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
    ast.Not: np.logical_not,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.In: lambda value, members: reduce(np.logical_or, [value == one for one in members]),
    ast.NotIn: lambda value, members: reduce(np.logical_and, [value != one for one in members]),
}
_FUNCTIONS = {
    **FUNCTIONS,
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
    "abs": np.abs,
    "log2": np.log2,
    "next_power_of_2": np.vectorize(lambda value: next_power_of_2(int(value)), otypes=[np.int64]),
}


Values = Callable[[Mapping[str, Any]], Any]
"""Function from values of names to values of an expression."""


@lru_cache(maxsize=4096)
def _compiled(text: str) -> Values:
    """Expression compiled to nested functions, for thousands of evaluations on short columns."""
    names_in(text)  # Refuses what is not of the language.
    return _function(ast.parse(text.strip(), mode="eval").body)


def _function(node: ast.AST) -> Values:
    """Function that evaluates one node of an expression."""
    match node:
        case ast.Constant(value=value):
            return lambda names: value
        case ast.Name(id=name):
            return lambda names: names[name]
        case ast.BinOp(left=left, op=operation, right=right):
            return _applied(_OPERATORS[type(operation)], [left, right])
        case ast.UnaryOp(op=operation, operand=operand):
            return _applied(_OPERATORS[type(operation)], [operand])
        case ast.Call(func=ast.Name(id=name), args=args):
            return _applied(_FUNCTIONS[name], args)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _applied(np.where, [test, body, orelse])
        case ast.BoolOp(op=operation, values=values):
            joined = np.logical_and if isinstance(operation, ast.And) else np.logical_or
            return _applied(_extreme(joined), values)
        case ast.Compare(left=left, ops=operations, comparators=others):
            return _comparison([_OPERATORS[type(one)] for one in operations], [left, *others])
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return _applied(lambda *members: members, elements)
    raise ValueError(f"{ast.unparse(node)!r} cannot be evaluated on columns")


def _applied(function: Any[..., Any], operands: Sequence[ast.AST]) -> Values:
    made = [_function(each) for each in operands]
    return lambda names: function(*(each(names) for each in made))


def _comparison(operations: Sequence[Callable[..., Any]], operands: Sequence[ast.AST]) -> Values:
    made = [_function(each) for each in operands]

    def compare(names: Mapping[str, Any]) -> Any:
        values = [each(names) for each in made]
        pairs = zip(operations, values, values[1:], strict=False)
        return reduce(np.logical_and, [apply(left, right) for apply, left, right in pairs])

    return compare


class Columns:
    """Values of expressions for every row of a table.

    Parameters
    ----------
    derived
        Name to expression, each reading columns and earlier derived names.
    columns
        Column to its values: int64 or float64, or text as an object array, each of shape (rows,).
        A plain number holds for every row.
    """

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
        """Values of ``text``, shape (rows,).

        Raises
        ------
        ValueError
            When a name is missing or the expression cannot be evaluated.
        """
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
            return _compiled(text)(self._known)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(f"{text!r} cannot be evaluated: {error}") from error


def raw_names(derived: Mapping[str, str], text: str) -> frozenset[str]:
    """Raw names that ``text`` reads, with derived names resolved."""
    names = names_in(text)
    resolved = [raw_names(derived, derived[name]) for name in names if name in derived]
    return frozenset(names - derived.keys()).union(*resolved)


@lru_cache(maxsize=256)
def standing_on(derived: tuple[tuple[str, str], ...], name: str) -> frozenset[str]:
    """Derived names, given with their expressions in order, that depend on ``name``."""
    found = {name}
    for each, text in derived:
        if names_in(text) & found:
            found.add(each)
    return frozenset(found - {name})
