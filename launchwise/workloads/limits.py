"""Problems that have an answer, as conditions that a file can check by itself."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launchwise.base.expressions import evaluate, names_in, parsed
from launchwise.base.expressions import inlined as without_derived
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class Range:
    """Values that a parameter may have; None where there is no limit."""

    parameter: str
    minimum: int | None
    maximum: int | None
    values: tuple[Value, ...] | None


@dataclass(frozen=True)
class Limits:
    """Problems that some configuration may run.

    Parameters
    ----------
    ranges
        One per parameter.
    conditions
        Expressions over the parameters: the workload's constraints that read nothing else. What
        needs division, powers or functions beside ``ceil_div`` and ``round_up`` is left out.
    """

    ranges: tuple[Range, ...] = ()
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Spec) -> Limits:
        """Limits of a workload."""
        ranges = [
            Range(name, one.minimum, one.maximum, None if one.values is None else tuple(one.values))
            for name, one in spec.problem.items()
        ]
        own = [
            text
            for text in spec.constraints
            if set(spec.formulas.raw_names(text)) <= {*spec.problem}
        ]
        conditions = []
        for text in own:
            # Too long without functions: for a file, as little simple as a power.
            with contextlib.suppress(ValueError):
                conditions.append(inlined(text, spec.derived))
        conditions = [text for text in conditions if is_simple(text)]
        return cls(tuple(ranges), tuple(conditions))

    @property
    def texts(self) -> list[str]:
        """Every limit as an expression over the parameters."""
        found = []
        for one in self.ranges:
            if one.values is not None:
                found.append(f"{one.parameter} in {one.values!r}")
            if one.minimum is not None:
                found.append(f"{one.parameter} >= {one.minimum}")
            if one.maximum is not None:
                found.append(f"{one.parameter} <= {one.maximum}")
        return [*found, *self.conditions]

    def hold(self, problem: Mapping[str, Value]) -> bool:
        """Whether a problem lies within them."""
        return all(_holds(one, problem[one.parameter]) for one in self.ranges) and all(
            evaluate(text, problem) for text in self.conditions
        )


def _holds(one: Range, value: Any) -> bool:
    return (
        (one.values is None or value in one.values)
        and (one.minimum is None or value >= one.minimum)
        and (one.maximum is None or value <= one.maximum)
    )


def inlined(text: str, derived: Mapping[str, str]) -> str:
    """An expression with derived names and this project's own functions replaced.

    Raises
    ------
    ValueError
        When the result would be too long for an expression.
    """

    class Inline(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            node.args = [self.visit(one) for one in node.args]
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name not in ("ceil_div", "round_up"):
                return node
            above, below = (ast.unparse(one) for one in node.args)
            quotient = f"-(-({above}) // ({below}))"
            plain = quotient if name == "ceil_div" else f"{quotient} * ({below})"
            # One of round_up holds its second number twice.
            names_in(plain)
            return parsed(plain)

    return ast.unparse(Inline().visit(parsed(without_derived(text, derived))))


_SIMPLE = (
    *(ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.IfExp, ast.Compare, ast.cmpop),
    *(ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp),
    *(ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod),
)


_SIGNS: dict[type[ast.AST], str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="},
    **{ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "negative"},
}


def nested(text: str) -> Any:
    """A simple expression as nested lists, for what has no parser of expressions.

    A list is an operator and its operands: ``["name", "n"]`` is a parameter's value, ``if`` has a
    condition and two values, all others are written as in Python. What is no list is a value.
    """

    def write(node: ast.expr) -> Any:
        match node:
            case ast.Name():
                return ["name", node.id]
            case ast.Constant(value=value):
                return int(value) if isinstance(value, bool) else value
            case ast.IfExp():
                return ["if", write(node.test), write(node.body), write(node.orelse)]
            case ast.BoolOp():
                return [_SIGNS[type(node.op)], *map(write, node.values)]
            case ast.UnaryOp():
                return [_SIGNS[type(node.op)], write(node.operand)]
            case ast.BinOp():
                return [_SIGNS[type(node.op)], write(node.left), write(node.right)]
            case ast.Compare():
                sides = [node.left, *node.comparators]
                every = [compared(*each) for each in zip(sides, node.ops, sides[1:], strict=False)]
                return every[0] if len(every) == 1 else ["and", *every]
        raise ValueError(f"{ast.unparse(node)!r} is not simple")

    def compared(left: ast.expr, sign: ast.cmpop, right: ast.expr) -> Any:
        if isinstance(sign, ast.In | ast.NotIn):
            assert isinstance(right, ast.Tuple | ast.List)
            either = ["or", *(["==", write(left), write(one)] for one in right.elts)]
            return either if isinstance(sign, ast.In) else ["not", either]
        return [_SIGNS[type(sign)], write(left), write(right)]

    return write(parsed(text))


def is_simple(text: str) -> bool:
    """Whether other languages can write an expression."""
    return all(isinstance(node, _SIMPLE) for node in ast.walk(parsed(text)))
