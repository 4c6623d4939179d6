"""Which runs ``launchwise check --cpu`` makes.

First those of small problems (:mod:`launchwise.cli.check.small_problems`). Then, for each
condition under which a mistake shows that other runs hide (a size above a block, listed values that
meet, each value of a macro), the nearest problem that makes it true, where no run does so already.
"""

from __future__ import annotations

import ast
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.base.expressions import evaluate, inlined
from launchwise.base.names import assigned
from launchwise.cli.check.small_problems import MOST_CONFIGURATIONS, ODD, SmallProblems, distinct
from launchwise.workloads.checks.fitting_sizes import parts
from launchwise.workloads.parts import Value, Variant
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec

MOST_LISTED = 4
MOST_WIDE = 4
MOST_OF_MACROS = 8  # Runs for listed values, for sizes above a block, and for conditions in macros
MOST_SEARCHES = 100  # Searches for sizes of all conditions in macros, of at most 0.1 s each
MEMORY_BYTES = 1 << 28  # Problems that need more are left out: the CPU runs one thread at a time

WIDE = (1 << 18, 1 << 25)
"""Work items, and bytes, of the largest problem with a size above the threads of a block."""

MOST_REACH = 1 << 13  # Most elements of a block that a size is drawn above
ELEMENTS = 4  # Elements that a thread may handle at once, as a vector, in a loop inside a block

RAGGED = 32 + ODD
"""Threads with work in the last step of a loop over a size: one warp and a part of the next."""


@dataclass(frozen=True)
class Planned:
    """A run: a configuration of a problem."""

    problem: Problem
    configuration: Configuration
    # Whether the problem has a size above a block: such a run may be too much work.
    wide: bool = False


class Cases:
    """Runs of a workload on a GPU with limits, in the order in which they are made."""

    def __init__(self, spec: Spec, gpu: Mapping[str, Any]) -> None:
        self.spec = spec
        self.small = SmallProblems(spec, gpu)
        self.runs: list[Planned] = []
        # In words, what is not run, and why.
        self.left_out: list[tuple[str, str]] = []

    def of(self, problems: Iterable[Problem]) -> list[Planned]:
        """Chosen configurations of problems; what needs too much memory is left out."""
        found = []
        for problem in problems:
            chosen = self.small.chosen(problem)
            _, needed = self.small.size(problem)
            why = ""
            if needed > MEMORY_BYTES:
                why = f"needs {needed / 1e6:.0f} MB, more than the CPU device allows"
            elif not chosen:
                why = f"{assigned(problem)} has no feasible configuration"
            if why:
                self.left_out.append((assigned(problem), why))
            else:
                found += [Planned(problem, each) for each in chosen]
        return found

    def plan(
        self, listed: Sequence[Problem] | None = None, given: Sequence[Problem] | None = None
    ) -> None:
        """Plan all runs: of problems that are ``given``, of a sweep's (``listed``), or of drawn."""
        if given is not None:
            self.runs = self.of(given)
            return
        small = self.small.drawn() if listed is None else self.small.smallest_of(listed)
        self.runs = self.of(small)
        if listed is None:
            self.add_listed(small)
            self.add_macros(small)
            self.add_wide(small)

    def add_listed(self, drawn: Sequence[Problem]) -> None:
        """Runs in which listed values meet, two at a time, beyond the smallest size."""
        names = [name for name in self.spec.listed_columns if self._values(name)[1:]]
        free = [name for name in self.spec.problem if name not in names]
        larger = [each for each in drawn if any(each[name] != drawn[0][name] for name in free)]
        pairs = [
            dict(zip(few, values, strict=True))
            for few in itertools.combinations(names, min(2, len(names)))
            for values in itertools.product(*map(self._values, few))
        ]
        known = larger or ([] if free else list(drawn))
        missing = [pair for pair in pairs if not any(pair.items() <= one.items() for one in known)]
        count = 0
        while missing and count < MOST_LISTED:
            wanted: Problem = {}
            for pair in missing:
                if all(wanted.get(name, value) == value for name, value in pair.items()):
                    wanted |= pair
            near = self._first_small(wanted, drawn)
            if near is None:
                del missing[0]
                continue
            chosen = self.small.chosen(near)
            # One configuration each: values that builds read cost a compilation.
            self.runs += [Planned(near, each) for each in chosen[count % max(1, len(chosen)) :][:1]]
            count += 1
            missing = [pair for pair in missing if not pair.items() <= near.items()]

    def _first_small(self, wanted: Problem, drawn: Sequence[Problem]) -> Problem | None:
        """A small problem with listed values, at the largest size that the baseline runs."""
        exact = " and ".join(f"{name} == {value!r}" for name, value in wanted.items())
        for start in (*drawn[2::-1], drawn[0]):
            near = self.small.near({**start, **wanted}, self.small.corners[:1], exact)
            if near is not None and self.small.fits(near):
                return near
        return None

    def add_macros(self, drawn: Sequence[Problem]) -> None:
        """Runs for conditions in macros that hold, or do not hold, in no run of a variant. A run
        with the smallest problem does not count: its loops have one step."""
        searches, most = MOST_SEARCHES, len(self.runs) + MOST_OF_MACROS
        every = _conditions_of_macros(self.spec) if drawn else ()
        for text, variant in itertools.product(every, self.spec.variants):
            runs = [each for each in self.runs if each.configuration["variant"] == variant]
            larger = [each for each in runs if self._is_larger(each.problem, drawn[0])]
            if any(self._holds(text, each) for each in larger) or self._ruled_out(variant, text):
                continue
            for start, configuration in self._starts(text, variant, runs, drawn):
                if len(self.runs) == most or not searches:
                    return
                searches -= 1
                near = self.small.near(start, [configuration], text)
                if near and self._is_larger(near, drawn[0]) and self.small.fits(near):
                    self.runs.append(Planned(near, configuration))
                    break

    def _starts(
        self,
        text: str,
        variant: str,
        runs: Sequence[Planned],
        drawn: Sequence[Problem],
    ) -> Iterator[tuple[Problem, Configuration]]:
        """Problems to begin at, the largest first, and configurations that run anyway first."""
        known = [each.configuration for each in runs]
        known += [each for each in self.small.corners if each["variant"] == variant]
        read = self.spec.formulas.raw_names(text)
        listed = [name for name in self.spec.listed_columns if name in read]
        # A loop over whole steps has more than one.
        far = {name: 2 * ELEMENTS * ODD + int(drawn[-1][name]) for name in self.small.free}
        starts = [{**drawn[min(2, len(drawn) - 1)], **far}, *drawn[2::-1]]
        for start in starts:
            for one in distinct(known)[: 2 * MOST_CONFIGURATIONS]:
                for values in itertools.product(*map(self._values, listed)):
                    yield {**start, **dict(zip(listed, values, strict=True))}, one

    def _ruled_out(self, variant: str, text: str) -> bool:
        """Whether a constraint says the opposite in the same words, or no tunable changes it."""
        texts = (*self.spec.constraints, *self.spec.variants[variant].constraints)
        said = {each for one in texts for each in parts(inlined(one, self.spec.derived))}
        own = {*self.spec.problem, *self.spec.variants[variant].tunables}
        return _opposite(text) in said or own.isdisjoint(self.spec.formulas.raw_names(text))

    def add_wide(self, drawn: Sequence[Problem]) -> None:
        """Runs with one size above the threads of the largest block, so that every warp has work. A
        missing barrier between warps, or a wrong step of a loop inside a block, shows in no problem
        whose data a part of one warp covers. A size that no grid reads is above :data:`ELEMENTS`
        times the threads; one that is a number of blocks needs no more than two."""
        builds = {self._build(each.problem, each.configuration) for each in self.runs}
        found: list[Problem] = []
        for name in [each for each in self.spec.problem if drawn and self._is_length(each)]:
            known = [*drawn, *found]
            if len(found) == MOST_WIDE or any(self._is_wide(each, name) for each in known):
                continue
            most = max(int(each[name]) for each in known)
            near = [each for each in self._above_blocks(drawn[:2], name) if int(each[name]) > most]
            little = next((each for each in near if not self._too_large(each)), None)
            # A smaller block may fit where the largest needs too much.
            if little is not None:
                found.append(little)
                chosen = self.small.chosen(little)
                # Builds that the size itself changes are compiled for one configuration only.
                same = [each for each in chosen if self._build(little, each) in builds]
                self.runs += [Planned(little, each, wide=True) for each in same or chosen[:1]]
            elif near:
                self.left_out.append((assigned(near[0]), self._too_large(near[0])))

    def _build(self, problem: Problem, configuration: Configuration) -> str:
        names = {**problem, **configuration}
        macros = [self.spec.value(text, names) for text in self.spec.macros.values()]
        return json.dumps([names[name] for name in self.spec.build_columns] + macros)

    def _values(self, name: str) -> list[Value]:
        return self.spec.problem[name].values or []

    def _holds(self, text: str, run: Planned) -> bool:
        try:
            return bool(evaluate(text, {**self.small.gpu, **run.configuration, **run.problem}))
        except ValueError:
            return False

    def _is_larger(self, problem: Problem, smallest: Problem) -> bool:
        free = [name for name in self.spec.problem if name not in self.spec.listed_columns]
        return not free or any(problem[name] != smallest[name] for name in free)

    # Sizes above a block

    def _is_length(self, name: str) -> bool:
        """Whether a parameter may be the length of a loop: no constant, nor only a count of
        launches, nor only a number of blocks."""
        parameter, variants = self.spec.problem[name], list(self.spec.variants.values())
        repeated = [part for one in variants for part in (one, *one.kernels)]
        counts = [text for part in repeated for text in part.repeat.values()]
        shapes = [text for one in self.spec.arguments.values() for text in one.sizes]
        axes = self._read(name, (text for one in variants for grid in one.grids for text in grid))
        return (
            parameter.type == "integer"
            and (parameter.minimum is None or parameter.minimum != parameter.maximum)
            and (not self._read(name, counts) or bool(self._read(name, shapes)))
            and (not axes or {*axes} != {name})
        )

    def _read(self, name: str, texts: Iterable[str]) -> list[str]:
        return [text for text in texts if name in self.spec.formulas.raw_names(text)]

    def _above_blocks(self, small: Sequence[Problem], name: str) -> Iterator[Problem]:
        """Problems with a size above the largest block that runs, then above smaller ones."""
        sides = {self._reach(name, small[0], one) for one in self.small.corners}
        parameter = self.spec.problem[name]
        for least in sorted(sides, reverse=True):
            if not 1 < least <= MOST_REACH:
                continue
            wanted = least + RAGGED
            if parameter.values is not None:
                listed = sorted(int(each) for each in parameter.values)
                wanted = next((each for each in listed if each > least), listed[-1])
            elif parameter.maximum is not None:
                wanted = min(wanted, parameter.maximum)
            for each in reversed(small):
                near = self._near_above({**each, name: wanted}, name, least)
                if near is None or self._largest(name, near) < least:
                    continue
                # A largest value below, such as that of an exponent, need not be told.
                if not self._too_large(near) or int(near[name]) > least:
                    yield near

    def _near_above(self, wanted: Problem, name: str, least: int) -> Problem | None:
        """The nearest problem that the baseline may run, if possible above a number of elements."""
        runs, above = self.small.corners[:1], f"{name} > {least}"
        near = self.small.near(wanted, runs, above) or self.small.near(wanted, runs)
        moved = [each for each in wanted if near and each != name and near[each] != wanted[each]]
        if near is None or not moved:
            return near
        # A size that constraints have moved lies at their border: `n >= 2 * rows`.
        apart = {each: 2 * int(near[each]) + 1 for each in moved if not isinstance(near[each], str)}
        roomy = self.small.near({**near, **apart}, runs, above)
        return near if roomy is None or self._too_large(roomy) else roomy

    def _is_wide(self, problem: Problem, name: str) -> bool:
        return 0 < self._largest(name, problem) < int(problem[name]) and not self._too_large(
            problem
        )

    def _largest(self, name: str, problem: Problem) -> int:
        """Elements of the largest block that runs for a problem; 0 for none."""
        chosen = self.small.chosen(problem)
        return max((self._reach(name, problem, each) for each in chosen), default=0)

    def _reach(self, name: str, problem: Problem, configuration: Configuration) -> int:
        """Elements that a block covers at once; 0 where the spec does not say. Several for each
        thread where no grid divides the size; in Triton, the largest of the sizes that tunables
        give."""
        variant = self.spec.variants[str(configuration["variant"])]
        if variant.is_triton and (sizes := _block_sizes(variant, configuration)):
            return max(sizes)
        blocks = [list(step.block) for step in variant.kernels] or [list(variant.block or ["0"])]
        names = {**self.small.gpu, **problem, **configuration}
        axes = (text for one in self.spec.variants.values() for grid in one.grids for text in grid)
        elements = 1 if self._read(name, axes) else ELEMENTS
        try:
            sides = ([int(self.spec.value(text, names)) for text in one] for one in blocks)
            return elements * max(map(math.prod, sides))
        except ValueError:
            return 0

    def _too_large(self, problem: Problem) -> str:
        items, needed = self.small.size(problem)
        if items > WIDE[0]:
            return f"{items:.0f} {self.spec.work.item} are too much work for the CPU device"
        if needed > WIDE[1]:
            return f"needs {needed / 1e6:.0f} MB, too much for the CPU device"
        return ""


def _block_sizes(variant: Variant, configuration: Configuration) -> list[int]:
    """Tunables of a variant in Triton that may be sizes of its blocks."""
    values = {name: configuration[name] for name in variant.tunables}
    return [one for name, one in values.items() if isinstance(one, int) and name[:4] != "num_"]


def _conditions_of_macros(spec: Spec) -> list[str]:
    """Conditions that macros read, and their opposites, over sizes or tunables. Listed values run
    anyway."""
    free = {name for name in spec.problem if name not in spec.listed_columns}
    found: list[str] = []
    for text in spec.macros.values():
        tree = ast.parse(inlined(text, spec.derived).strip(), mode="eval").body
        for test in _tests(tree):
            if not {*free, *spec.tunables}.isdisjoint(spec.formulas.raw_names(test)):
                found += [test, _opposite(test)]
    return list(dict.fromkeys(found))


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
