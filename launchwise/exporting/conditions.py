"""Conditions of a workload as C++."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from launchwise.workloads.limits import parsed

_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def cpp_condition(text: str, members: Mapping[str, str], quoted: Any) -> str:
    """A condition in C++, over integers of 64 bits and texts.

    Parameters
    ----------
    members
        Parameter to its name in C++.
    quoted
        Function that gives a text as a literal.
    """

    def write(node: ast.expr) -> str:
        match node:
            case ast.Name():
                return members[node.id]
            case ast.Constant(value=str(value)):
                return str(quoted(value))
            case ast.Constant():
                return repr(int(node.value) if isinstance(node.value, bool) else node.value)
            case ast.IfExp():
                return f"({write(node.test)} ? {write(node.body)} : {write(node.orelse)})"
            case ast.BoolOp():
                sign = " && " if isinstance(node.op, ast.And) else " || "
                return f"({sign.join(f'bool({write(one)})' for one in node.values)})"
            case ast.UnaryOp():
                return f"({'!' if isinstance(node.op, ast.Not) else '-'}{write(node.operand)})"
            case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
                name = "quotient" if isinstance(node.op, ast.FloorDiv) else "remainder"
                return f"detail::{name}({write(node.left)}, {write(node.right)})"
            case ast.BinOp():
                return f"({write(node.left)} {_SIGNS[type(node.op)]} {write(node.right)})"
            case ast.Compare():
                sides = [node.left, *node.comparators]
                pairs = zip(sides, node.ops, sides[1:], strict=False)
                return f"({' && '.join(compared(*each) for each in pairs)})"
        raise ValueError(f"{ast.unparse(node)!r} cannot be written in C++")

    def compared(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> str:
        if isinstance(sign, ast.In | ast.NotIn):
            assert isinstance(right, ast.Tuple | ast.List)
            either = " || ".join(f"{write(left)} == {write(one)}" for one in right.elts)
            return f"({either})" if isinstance(sign, ast.In) else f"!({either})"
        return f"{write(left)} {_SIGNS[type(sign)]} {write(right)}"

    return write(parsed(text))
