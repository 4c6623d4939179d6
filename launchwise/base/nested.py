"""Expressions as nested lists, for languages that have no parser of ours."""

from __future__ import annotations

import ast
from typing import Any

from launchwise.base.expressions import parsed

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
INFIX = ("+", "-", "*", *COMPARISONS)
"""Signs that stand between two operands in most languages, with the same meaning for integers."""

_SIGNS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "negative"},
}
_SIMPLE = {"name", "if", "and", "or", "not", "negative", "//", "%", *INFIX}


def nested(text: str) -> Any:
    """An expression as nested lists.

    A list is an operator or a function and its operands: ``["name", "n"]`` is a parameter's value,
    ``if`` has a condition and two values, all others are written as in Python. Chained comparisons
    are joined by ``and``, ``in`` becomes equalities. What is no list is a value. Raises ValueError
    when it divides by ``/``, or has another operator that these lists do not.
    """
    return _nested(parsed(text))


def is_simple(text: str) -> bool:
    """Whether an expression has neither functions nor powers, and other languages can write it."""
    try:
        return _is_simple(nested(text))
    except ValueError:
        return False


def _is_simple(node: Any) -> bool:
    return not isinstance(node, list) or (
        node[0] in _SIMPLE and (node[0] == "name" or all(map(_is_simple, node[1:])))
    )


def _nested(node: ast.expr) -> Any:
    match node:
        case ast.Name(name):
            return ["name", name]
        case ast.Constant(value):
            return int(value) if isinstance(value, bool) else value
        case ast.IfExp(test, body, orelse):
            return ["if", _nested(test), _nested(body), _nested(orelse)]
        case ast.BoolOp(sign, parts):
            return [_SIGNS[type(sign)], *map(_nested, parts)]
        case ast.Call(ast.Name(name), parts):
            return [name, *map(_nested, parts)]
        case ast.UnaryOp(sign, operand) if type(sign) in _SIGNS:
            return [_SIGNS[type(sign)], _nested(operand)]
        case ast.BinOp(left, sign, right) if type(sign) in _SIGNS:
            return [_SIGNS[type(sign)], _nested(left), _nested(right)]
        case ast.Compare(left, signs, others):
            pairs = zip([left, *others], signs, others, strict=False)
            every = [_compared(*each) for each in pairs]
            return every[0] if len(every) == 1 else ["and", *every]
    raise ValueError(f"{ast.unparse(node)!r} cannot be written in other languages")


def _compared(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Any:
    match sign, right:
        case ((ast.In() | ast.NotIn()), (ast.Tuple([_, *_]) | ast.List([_, *_]))):
            either = ["or", *(["==", _nested(left), _nested(one)] for one in right.elts)]
            return either if isinstance(sign, ast.In) else ["not", either]
        case ((ast.In() | ast.NotIn()), _):
            raise ValueError(f"{ast.unparse(right)!r} is no list of values")
    return [_SIGNS[type(sign)], _nested(left), _nested(right)]
