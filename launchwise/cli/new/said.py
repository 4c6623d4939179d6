"""Python's arithmetic of a host as expressions of ``spec.yaml``."""

from __future__ import annotations

import ast
from collections.abc import Callable

from launchwise.base.expressions import FUNCTIONS, names_in
from launchwise.cli.new.constant_names import NotConstant, short

_RENAMED = {"cdiv": "ceil_div", "next_power_of_2": "next_power_of_2", "log2": "log2"}
_RENAMED |= {name: name for name in ("min", "max", "abs")}
_SIGNS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)


def said(node: ast.expr, known: Callable[[ast.expr], str | None]) -> str:
    """An expression of Python in the language of ``spec.yaml``.

    Parameters
    ----------
    known
        What a node stands for as text; None where it does not know it.

    Raises
    ------
    NotConstant
        Where the language has no word for it.
    """
    text = ast.unparse(ast.fix_missing_locations(_written(node, known)))
    try:
        names_in(text)
    except ValueError as error:
        raise NotConstant(node.lineno, str(error)) from error
    return text


def _written(node: ast.expr, known: Callable[[ast.expr], str | None]) -> ast.expr:
    def of(part: ast.expr) -> ast.expr:
        return _written(part, known)

    if (text := known(node)) is not None:
        return ast.parse(text, mode="eval").body
    match node:
        case ast.Constant(value=bool(value)):
            return ast.Constant(int(value))
        case ast.Constant(value=int() | float() | str()):
            return node
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _SIGNS):
            return ast.BinOp(of(left), op, of(right))
        case ast.UnaryOp(op=ast.USub() | ast.Not() as op, operand=operand):
            return ast.UnaryOp(op, of(operand))
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(op, [of(each) for each in values])
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            return ast.IfExp(of(test), of(body), of(otherwise))
        case ast.Compare(left=left, ops=ops, comparators=others):
            if all(isinstance(each, _COMPARED) for each in ops):
                return ast.Compare(of(left), ops, [of(each) for each in others])
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return ast.Tuple([of(each) for each in parts], ast.Load())
        case ast.Call(func=func, args=given, keywords=[]):
            return _called(node, func, given, of)
    raise NotConstant(node.lineno, f"{short(node)} has no expression of spec.yaml")


def _called(
    node: ast.expr, func: ast.expr, given: list[ast.expr], of: Callable[[ast.expr], ast.expr]
) -> ast.expr:
    name = getattr(func, "attr", getattr(func, "id", ""))
    match given:
        case [ast.BinOp(left=left, op=ast.Div(), right=right)] if name == "ceil":
            return ast.Call(ast.Name("ceil_div", ast.Load()), [of(left), of(right)], [])
        case [one] if name == "sqrt":
            return ast.BinOp(of(one), ast.Pow(), ast.Constant(0.5))
        case [one] if name in ("int", "bool") and not _has_fraction(one):
            return of(one)
    few = name in ("min", "max") and len(given) < 2
    if _RENAMED.get(name, "") in FUNCTIONS and not few:
        return ast.Call(ast.Name(_RENAMED[name], ast.Load()), [of(each) for each in given], [])
    raise NotConstant(node.lineno, f"{short(node)} has no expression of spec.yaml")


def _has_fraction(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Div) or getattr(each, "attr", "") in ("log2", "sqrt")
        for each in ast.walk(node)
    )
