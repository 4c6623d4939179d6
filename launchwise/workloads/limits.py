"""Problems that have an answer, as conditions that a file can check by itself."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from launchwise.base.expressions import evaluate, names_in, parsed
from launchwise.base.expressions import inlined as without_derived
from launchwise.base.nested import is_simple
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
    """Problems that some configuration may run."""

    ranges: tuple[Range, ...] = ()  # one per parameter
    # Expressions over the parameters: the workload's constraints that read nothing else. What
    # needs division, powers or functions beside ``ceil_div`` and ``round_up`` is left out.
    conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: Spec) -> Limits:
        ranges = [
            Range(name, one.minimum, one.maximum, None if one.values is None else tuple(one.values))
            for name, one in spec.problem.items()
        ]
        conditions = []
        for text in spec.constraints:
            # Too long without functions: for a file, as little simple as a power.
            with contextlib.suppress(ValueError):
                if set(spec.formulas.raw_names(text)) <= {*spec.problem}:
                    conditions.append(inlined(text, spec.derived))
        return cls(tuple(ranges), tuple(filter(is_simple, conditions)))

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
        return all(evaluate(text, problem) for text in self.texts)


def inlined(text: str, derived: Mapping[str, str]) -> str:
    """An expression with derived names and this project's own functions replaced. Raises ValueError
    when the result would be too long for an expression."""

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
