"""Expressions from ``spec.yaml`` over whole columns at once.

The same language as :mod:`launchwise.expressions`, which stays the reference: a test holds both
together. Both branches of a condition are computed and one is taken, so a division by zero in the
branch that is not taken is no error.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from simpleeval import EvalWithCompoundTypes, InvalidExpression

from launchwise.expressions import FUNCTIONS, names_in

_LARGEST = float(1 << 62)


def _without_overflow(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """An int64 operation that goes over to float64 where Python's integers would just grow."""

    def apply(left: Any, right: Any) -> Any:
        exact = operation(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
        if np.any(np.abs(exact) >= _LARGEST):
            return exact
        return operation(left, right)

    return apply


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
}


class _Columns(EvalWithCompoundTypes):
    """simpleeval with conditions that hold row by row."""

    def _eval_boolop(self, node: ast.BoolOp) -> Any:
        joined = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        return reduce(joined, [self._eval(value) for value in node.values])

    def _eval_compare(self, node: ast.Compare) -> Any:
        values = [self._eval(node.left), *(self._eval(one) for one in node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return reduce(
            np.logical_and, [self.operators[type(op)](left, right) for op, left, right in pairs]
        )

    def _eval_ifexp(self, node: ast.IfExp) -> Any:
        return np.where(self._eval(node.test), self._eval(node.body), self._eval(node.orelse))


class Columns:
    """Values of expressions for every row of a table.

    Parameters
    ----------
    derived
        Name to expression, each standing on columns and on derived names before it.
    columns
        Column to its values: int64 or float64, or text as an object array, each of shape (rows,).
        A plain number holds for every row.
    """

    def __init__(self, derived: Mapping[str, str], columns: Mapping[str, Any]) -> None:
        self._derived = dict(derived)
        self._known = dict(columns)
        lengths = [len(values) for values in columns.values() if np.ndim(values)]
        self._rows = lengths[0] if lengths else 1

    def value(self, text: str) -> np.ndarray:
        """Values of ``text``, shape (rows,).

        Raises
        ------
        ValueError
            When a name is missing or the expression cannot be evaluated.
        """
        return np.broadcast_to(self._value(text), (self._rows,))

    def _value(self, text: str) -> Any:
        names = names_in(text)
        for name in self._derived:
            if name in names and name not in self._known:
                self._known[name] = self._value(self._derived[name])
        if missing := sorted(names - self._known.keys()):
            raise ValueError(f"{text!r} needs {missing[0]}")
        evaluator = _Columns(operators=_OPERATORS, functions=_FUNCTIONS, names=self._known)
        try:
            with np.errstate(divide="ignore", invalid="ignore"):
                return evaluator.eval(text.strip())
        except (InvalidExpression, ArithmeticError, TypeError, ValueError) as error:
            raise ValueError(f"{text!r} cannot be evaluated: {error}") from error


def raw_names(derived: Mapping[str, str], text: str) -> frozenset[str]:
    """Names that ``text`` stands on in the end, derived names resolved."""
    names = names_in(text)
    resolved = [raw_names(derived, derived[name]) for name in names if name in derived]
    return frozenset(names - derived.keys()).union(*resolved)
