"""Operators and functions of expressions, with results of bounded size.

Files of others hold expressions. Twelve characters (``9**9**9``, ``'%999999999d' % 1``) may ask for
more memory than there is, so each operator refuses before it computes.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from simpleeval import DEFAULT_OPERATORS

MOST_BITS = 1024  # Most bits of an integer: no float is larger
MOST_CHARACTERS = 1_000  # Longest text that two texts make


class TooLargeError(ArithmeticError):
    """The result would be larger than an expression may have."""

    def __init__(self) -> None:
        super().__init__(f"a number of more than {MOST_BITS} bits, or a text too long")


def is_too_large(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() > MOST_BITS


def bounded(value: Any) -> Any:
    """``value``, unless it is no real number or an integer beyond the limit."""
    if is_too_large(value):
        raise TooLargeError
    if isinstance(value, complex):
        raise ArithmeticError("not a real number")
    return value


def bounding(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: bounded(function(*values))


def ceil_div(numerator: int, denominator: int) -> int:
    """Smallest integer not below ``numerator / denominator``."""
    return -(-numerator // denominator)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` not below ``value``."""
    return ceil_div(value, multiple) * multiple


def next_power_of_2(value: int) -> int:
    """Smallest power of 2 that is an integer not below ``value``."""
    if not isinstance(value, int):
        raise TypeError(f"next_power_of_2 takes a whole number, not {type(value).__name__}")
    return 1 << max(value - 1, 0).bit_length()


def _numbers(left: Any, right: Any, sign: str) -> None:
    # Texts are formatted by % and, like lists, repeated by *.
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        kinds = " and ".join(type(each).__name__ for each in (left, right))
        raise TypeError(f"{sign} takes numbers, not {kinds}")


def _add(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        if len(left) + len(right) > MOST_CHARACTERS:
            raise TooLargeError
    else:
        _numbers(left, right, "+")
    return bounded(left + right)


def _of_numbers(sign: str, operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        _numbers(left, right, sign)
        return bounded(operation(left, right))

    return apply


def _power(base: Any, exponent: Any) -> Any:
    _numbers(base, exponent, "**")
    whole = isinstance(base, int) and isinstance(exponent, int)
    # A base of -1, 0 or 1 stays small, whatever the exponent.
    if whole and abs(base) > 1 and (base.bit_length() - 1) * exponent > MOST_BITS:
        raise TooLargeError
    return bounded(base**exponent)


_NOT_HERE = (
    *(ast.BitXor, ast.BitOr, ast.BitAnd, ast.LShift, ast.RShift, ast.Invert),
    *(ast.Is, ast.IsNot),
)
"""Operators that are none of the language: who writes ``n ^ 2`` means a power."""

OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = MappingProxyType(
    {
        **{kind: each for kind, each in DEFAULT_OPERATORS.items() if kind not in _NOT_HERE},
        ast.Add: _add,
        ast.Mult: _of_numbers("*", operator.mul),
        ast.Mod: _of_numbers("%", operator.mod),
        ast.Pow: _power,
    }
)
"""Node of a parsed expression to what computes it: simpleeval's, except those that grow."""

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "ceil_div": ceil_div,
        "round_up": round_up,
        "next_power_of_2": next_power_of_2,
        "min": min,
        "max": max,
        "abs": abs,
        "log2": math.log2,
    }
)
