"""Runs that give each condition in a macro both of its values.

A mistake in the branch of a kernel that ``EVEN_K: "k % BLOCK_K == 0"`` chooses shows only where a
run takes it, and drawn sizes are odd.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.base.expressions import evaluate, inlined
from launchwise.workloads.corners import corner_configurations
from launchwise.workloads.drawn_problems import is_small
from launchwise.workloads.fitting_sizes import Search
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.size_conditions import Condition, conditions_of, parts
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec

MOST_RUNS = 8
MOST_CONFIGURATIONS = 8
"""Of a variant: those whose builds other runs need come first."""

MOST_SEARCHES = 100
"""Searches for sizes, of at most 0.1 s each."""

Run = tuple[Problem, Configuration]


@dataclass(frozen=True)
class MacroRuns:
    """Runs to add, and what is left out, in words; '' for nothing."""

    runs: list[Run] = field(default_factory=list)
    left_out: str = ""


@dataclass(frozen=True)
class _Case:
    """A condition that a macro reads, or its opposite.

    Parameters
    ----------
    macro
        Name of the macro.
    text
        What must be true.
    """

    macro: str
    text: str

    def holds(self, problem: Problem, configuration: Configuration) -> bool:
        """Whether it is true; False where it has no value."""
        try:
            return bool(evaluate(self.text, {**UNKNOWN_GPU, **configuration, **problem}))
        except ValueError:
            return False


def macro_runs(
    spec: Spec, planned: Sequence[Run], drawn: Sequence[Problem], most: int = MOST_RUNS
) -> MacroRuns:
    """Few runs for conditions, and their opposites, that hold in no planned run of a variant.

    A run with the smallest problem counts only where no larger one is found: its loops have one
    step. Their other sizes are those of the problem with several blocks.

    Parameters
    ----------
    planned
        Runs that are made anyway.
    drawn
        The smallest problem, then larger ones.
    most
        Most runs to add; 0 where ``sweep.yaml`` says which problems there are.
    """
    cases = list(_cases(spec))
    if not cases or not drawn:
        return MacroRuns()
    found: list[Run] = []
    missing: list[str] = []
    searches = MOST_SEARCHES
    for case, variant in itertools.product(cases, spec.variants):
        runs = [each for each in (*planned, *found) if each[1]["variant"] == variant]
        held = [problem for problem, one in runs if case.holds(problem, one)]
        if any(_is_larger(spec, each, drawn[0]) for each in held) or _ruled_out(
            spec, variant, case
        ):
            continue
        wanted = itertools.islice(_wanted(spec, case, variant, runs, drawn), searches)
        new = None
        for start, configuration in wanted if len(found) < most else ():
            searches -= 1
            if (new := _near(spec, case, start, configuration, drawn[0])) is not None:
                found.append((new, configuration))
                break
        if new is None and not held:
            missing.append(f"{case.macro} was not run by {variant} where {case.text}")
    more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
    return MacroRuns(found, f"{missing[0]}{more}" if missing else "")


def _cases(spec: Spec) -> Iterator[_Case]:
    """Conditions of macros and their opposites, as far as they read sizes or tunables.

    Listed values run anyway, or are told (see :mod:`launchwise.cli.check.listed_values`).
    """
    free = {name for name in spec.problem if name not in spec.listed_columns}
    for name, text in spec.macros.items():
        whole = inlined(text, spec.derived)
        for test in dict.fromkeys(_tests(ast.parse(whole.strip(), mode="eval").body)):
            read = {node.id for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Name)}
            if read & {*free, *spec.tunables}:
                yield _Case(name, test)
                yield _Case(name, _opposite(test))


def _tests(node: ast.AST) -> Iterator[str]:
    """Outermost comparisons, and conditions of ``a if b else c``."""
    if isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield ast.unparse(node)
    elif isinstance(node, ast.IfExp):
        yield ast.unparse(node.test)
        yield from _tests(node.body)
        yield from _tests(node.orelse)
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _tests(inner)


def _opposite(text: str) -> str:
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    turned: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in turned:
        return ast.unparse(ast.Compare(node.left, [turned[type(node.ops[0])]()], node.comparators))
    return ast.unparse(ast.UnaryOp(ast.Not(), node))


def _ruled_out(spec: Spec, variant: str, case: _Case) -> bool:
    """Whether a constraint says the opposite in the same words, or no tunable can change it."""
    texts = (*spec.constraints, *spec.variants[variant].constraints)
    said = {each for text in texts for each in parts(inlined(text, spec.derived))}
    nodes = ast.walk(ast.parse(case.text))
    read = {node.id for node in nodes if isinstance(node, ast.Name)}
    own = {*spec.problem, *spec.variants[variant].tunables}
    return _opposite(case.text) in said or not read & own


def _is_larger(spec: Spec, problem: Problem, smallest: Problem) -> bool:
    """Whether a size differs from that of the smallest problem, if any may."""
    free = [name for name in spec.problem if name not in spec.listed_columns]
    return not free or any(problem[name] != smallest[name] for name in free)


def _wanted(
    spec: Spec, case: _Case, variant: str, runs: Iterable[Run], drawn: Sequence[Problem]
) -> Iterator[Run]:
    """Problems to begin at, and configurations; the problem with several blocks comes first."""
    known = [one for _, one in runs]
    known += [one for one in corner_configurations(spec) if one["variant"] == variant]
    few = [one for place, one in enumerate(known) if one not in known[:place]]
    condition = Condition.of(case.text, spec.problem)
    listed = [name for name in spec.listed_columns if name in condition.reads]
    choices = [spec.problem[name].values or [] for name in listed]
    for start in drawn[2::-1]:
        for one in few[:MOST_CONFIGURATIONS]:
            for values in itertools.product(*choices):
                yield {**start, **dict(zip(listed, values, strict=True))}, one


def _near(
    spec: Spec, case: _Case, start: Problem, configuration: Configuration, smallest: Problem
) -> Problem | None:
    """The nearest small problem where a case holds; with a step of a loop more, if possible."""
    names = {**UNKNOWN_GPU, **configuration}
    new = [Condition.of(each, spec.problem, names) for each in parts(case.text)]
    conditions = [*conditions_of(spec, [configuration]), *new]
    for wanted in ({**start, **_a_step_more(spec, new, names, start)}, start):
        near = Search(spec.problem, wanted, conditions).nearest()
        if near and _is_larger(spec, near, smallest) and is_small(spec, near):
            return near
    return None


def _a_step_more(
    spec: Spec, conditions: Iterable[Condition], names: Mapping[str, Any], start: Problem
) -> Problem:
    """Sizes that a condition divides, each larger by what it is divided by."""
    found: Problem = {}
    for dividend, divisor, _ in (each for one in conditions for each in one.remainders):
        try:
            step = int(evaluate(divisor, {**names, **start}))
        except ValueError:
            continue
        if dividend in start and spec.problem[dividend].type == "integer":
            found[dividend] = int(start[dividend]) + step
    return found
