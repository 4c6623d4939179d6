"""Expressions of a workload as C++ and as Python that needs none of this project."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import Any

from launchwise.base.expressions import parsed

_FUNCTIONS = {
    "ceil_div": "ceil_div",
    "round_up": "round_up",
    "next_power_of_2": "next_power_of_2",
    "min": "least",
    "max": "most",
    "abs": "absolute",
}

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


def python_expression(text: str, derived: Collection[str]) -> str:
    """An expression in Python: names are keys of ``names``, derived names functions of ``names``.

    Parameters
    ----------
    derived
        Derived names: keys of ``_DERIVED``.
    """

    class Names(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id in derived:
                return parsed(f"_DERIVED[{node.id!r}](names)")
            return parsed(f"names[{node.id!r}]")

        def visit_Call(self, node: ast.Call) -> ast.AST:
            assert isinstance(node.func, ast.Name)
            own = ("ceil_div", "round_up", "next_power_of_2")
            name = f"_{node.func.id}" if node.func.id in own else node.func.id
            function = ast.Name(name, ast.Load())
            return ast.Call(function, [self.visit(one) for one in node.args], [])

    return ast.unparse(Names().visit(parsed(text)))


def cpp_expression(text: str, members: Mapping[str, str], quoted: Any) -> str:
    """An expression in C++, over integers of 64 bits and texts.

    Parameters
    ----------
    members
        Name to what stands for it in C++.
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
            case ast.BinOp(op=ast.Pow()):
                return f"detail::power({write(node.left)}, {write(node.right)})"
            case ast.Call(func=ast.Name(id=name)):
                return f"detail::{_FUNCTIONS[name]}({called(node.args)})"
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

    def called(arguments: list[ast.expr]) -> str:
        # Conditions count as 0 or 1.
        return ", ".join(f"std::int64_t({write(one)})" for one in arguments)

    def compared(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> str:
        if isinstance(sign, ast.In | ast.NotIn):
            assert isinstance(right, ast.Tuple | ast.List)
            either = " || ".join(f"{write(left)} == {write(one)}" for one in right.elts)
            return f"({either})" if isinstance(sign, ast.In) else f"!({either})"
        return f"{write(left)} {_SIGNS[type(sign)]} {write(right)}"

    return write(parsed(text))
