"""Expressions of a workload as C++ and as Python that needs none of this project."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import Any

from launchwise.base.expressions import parsed
from launchwise.base.nested import COMPARISONS, INFIX, nested

_FUNCTIONS = {
    "//": "quotient",
    "%": "remainder",
    "**": "power",
    "ceil_div": "ceil_div",
    "round_up": "round_up",
    "next_power_of_2": "next_power_of_2",
    "min": "least",
    "max": "most",
    "abs": "absolute",
}
"""Operator or function to what computes it in C++."""

_LOGIC = ("and", "or", "not", *COMPARISONS)


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


def cpp_expression(text: str, members: Mapping[str, str], quoted: Callable[[str], str]) -> str:
    """An expression in C++, over integers of 64 bits and texts.

    Parameters
    ----------
    members
        Name to what stands for it in C++.
    quoted
        Function that gives a text as a literal.
    """

    def write(node: Any) -> str:
        match node:
            case ["name", name]:
                return members[name]
            case str():
                return quoted(node)
            case ["if", test, body, other]:
                return f"({write(test)} ? {write(body)} : {write(other)})"
            case ["and" | "or" as sign, *parts]:
                return f"({(' && ' if sign == 'and' else ' || ').join(map(condition, parts))})"
            case ["not" | "negative" as sign, operand]:
                return f"({'!' if sign == 'not' else '-'}{write(operand)})"
            case [sign, left, right] if sign in INFIX:
                return f"({write(left)} {sign} {write(right)})"
            case [sign, *parts] if sign in _FUNCTIONS:
                return f"detail::{_FUNCTIONS[sign]}({', '.join(map(argument, parts))})"
            case int() | float():
                return repr(node)
        raise ValueError(f"{node[0]!r} cannot be written in C++")

    def condition(node: Any) -> str:
        is_one = isinstance(node, list) and node[0] in _LOGIC
        return write(node) if is_one else f"bool({write(node)})"

    def argument(node: Any) -> str:
        # Conditions count as 0 or 1.
        return f"std::int64_t({write(node)})"

    return write(nested(text))
