"""Conditions on a problem, and what a search for sizes reads off them."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from launchwise.base.expressions import inlined, parsed
from launchwise.workloads.parts import UNKNOWN_GPU

if TYPE_CHECKING:
    from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class Condition:
    """An expression that a problem must make true.

    Parameters
    ----------
    text
        The expression, without derived names.
    names
        Values that it reads beside the problem's: of a configuration, of a GPU.
    reads
        Problem parameters that it reads.
    divisors
        Expressions that something is divided by or rounded to.
    pairs
        Both sides of each comparison.
    remainders
        Dividend, divisor and the remainder that it is compared with.
    """

    text: str
    names: Mapping[str, Any]
    reads: frozenset[str]
    divisors: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    remainders: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(
        cls, text: str, parameters: Collection[str], names: Mapping[str, Any] | None = None
    ) -> Condition:
        """Read an expression without derived names over ``parameters`` and ``names``."""
        nodes = list(ast.walk(parsed(text)))
        compared = [
            (left, right)
            for node in nodes
            if isinstance(node, ast.Compare)
            for left, right in itertools.pairwise([node.left, *node.comparators])
        ]
        remainders = [
            (side.left, side.right, other)
            for left, right in compared
            for side, other in ((left, right), (right, left))
            if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mod)
        ]
        return cls(
            text=text,
            names=names or {},
            reads=frozenset({node.id for node in nodes if isinstance(node, ast.Name)})
            & frozenset(parameters),
            divisors=tuple(dict.fromkeys(map(ast.unparse, _divisors(nodes)))),
            pairs=tuple((ast.unparse(left), ast.unparse(right)) for left, right in compared),
            remainders=tuple(
                (ast.unparse(left), ast.unparse(right), ast.unparse(rest))
                for left, right, rest in remainders
            ),
        )


def conditions_of(
    spec: Spec, configurations: Iterable[Mapping[str, Any]] = (), only: str | None = None
) -> list[Condition]:
    """Constraints of the problem, and those that configurations must meet.

    Parameters
    ----------
    configurations
        Each with every tunable; limits of the GPU are those that every card allows.
    only
        A parameter: constraints of the problem that read something else are left out.
    """
    found = [
        Condition.of(each, spec.problem)
        for text in spec.problem_constraints
        if only is None or spec.formulas.raw_names(text) == (only,)
        for each in parts(inlined(text, spec.derived))
    ]
    for configuration in configurations:
        names = {**UNKNOWN_GPU, **configuration}
        variant = spec.variants[str(configuration["variant"])]
        for text in (*spec.constraints, *variant.constraints):
            if text not in spec.problem_constraints:
                whole = inlined(text, spec.derived)
                found += [Condition.of(each, spec.problem, names) for each in parts(whole)]
    return found


def parts(text: str) -> list[str]:
    """Expressions that an expression joins by ``and``."""
    tree = parsed(text)
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return [each for value in tree.values for each in parts(ast.unparse(value))]
    return [ast.unparse(tree)]


def _divisors(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.FloorDiv | ast.Div):
            yield node.right
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            yield node.args[1]
