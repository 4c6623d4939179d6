"""Which runs ``launchwise check --cpu`` makes.

First those of small problems (:mod:`launchwise.cli.check.small_problems`). Then, for each
condition under which a mistake shows that other runs hide (listed values that meet, each value of a
macro, a size above a block), the nearest problem that makes it true, where no run does so already.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.base.expressions import inlined, parsed
from launchwise.base.names import assigned
from launchwise.cli.check.small_problems import (
    ELEMENTS,
    MOST_CONFIGURATIONS,
    ODD,
    SmallProblems,
    distinct,
)
from launchwise.workloads.checks.fitting_sizes import parts
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec

MOST_LISTED = 4
MOST_WIDE = 4  # Sizes of which a problem has one above a block
MOST_OF_SIZE = 3  # Such problems of a size that constraints limit by the block
MOST_OF_MACROS = 8  # Runs for listed values, for sizes above a block, and for conditions in macros
MOST_SEARCHES = 100  # Searches for sizes of all conditions in macros, of at most 0.1 s each
MEMORY_BYTES = 1 << 28  # Problems that need more are left out: the CPU runs one thread at a time

FAR = (1 << 16) - 1  # Largest index of 16 bits

MOST_REACH = 1 << 13  # Most elements of a block that a size is drawn above

RAGGED = 32 + ODD
"""Threads with work in the last step of a loop over a size: one warp and a part of the next."""


@dataclass(frozen=True)
class Planned:
    problem: Problem
    configuration: Configuration
    # Whether the problem has a size above a block: such a run may be too much work.
    wide: bool = False


class Cases(SmallProblems):
    """Runs of a workload on a GPU with limits, in the order in which they are made."""

    def __init__(self, spec: Spec, gpu: Mapping[str, Any]) -> None:
        super().__init__(spec, gpu)
        self.runs: list[Planned] = []
        # In words, what is not run, and why.
        self.left_out: list[tuple[str, str]] = []
        # Whether constraints let a size of a run be no larger.
        self._ends_above: dict[tuple[Value, ...], bool] = {}

    def plan(
        self, listed: Sequence[Problem] | None = None, given: Sequence[Problem] | None = None
    ) -> None:
        """Plan all runs: of problems that are ``given``, of a sweep's (``listed``), or of drawn."""
        if given is not None or listed is not None:
            self.runs = self.of(self.smallest_of(listed or []) if given is None else given)
            return
        drawn = self.drawn()
        self.runs = self.of(drawn)
        if drawn:
            self.add_listed(drawn)
            self.add_macros(drawn)
            self.add_wide(drawn)
            self.add_far(drawn)

    def of(self, problems: Iterable[Problem]) -> list[Planned]:
        """Chosen configurations of problems; what needs too much memory is left out."""
        found = []
        for problem in problems:
            chosen, needed = self.chosen(problem), self.size(problem)[1]
            if needed > MEMORY_BYTES:
                why = f"needs {needed / 1e6:.0f} MB, more than the CPU device allows"
                self.left_out.append((assigned(problem), why))
            elif not chosen:
                why = f"{assigned(problem)} has no feasible configuration"
                self.left_out.append((assigned(problem), why))
            found += [Planned(problem, each) for each in chosen if needed <= MEMORY_BYTES]
        return found

    def add_listed(self, drawn: Sequence[Problem]) -> None:
        """Runs in which listed values meet, two at a time, beyond the smallest size."""
        names = [name for name in self.spec.listed_columns if self._values(name)[1:]]
        pairs = [
            dict(zip(few, values, strict=True))
            for few in itertools.combinations(names, min(2, len(names)))
            for values in itertools.product(*map(self._values, few))
        ]
        known = [each for each in drawn if self.is_larger(each, drawn[0])]
        count = 0
        while count < MOST_LISTED:
            pairs = [one for one in pairs if not any(one.items() <= each.items() for each in known)]
            if not pairs:
                break
            wanted = Problem()
            for pair in pairs:
                if all(wanted.get(name, value) == value for name, value in pair.items()):
                    wanted |= pair
            del pairs[0]
            text = " and ".join(f"{name} == {value!r}" for name, value in wanted.items())
            # At the largest size that the baseline runs.
            starts = [*drawn[2:1:-1], *self._starts_of(drawn)]
            near = (self.near({**one, **wanted}, self.corners[:1], text) for one in starts)
            found = next((one for one in near if one is not None and self.is_small(one)), None)
            if found is not None:
                # One configuration each: values that builds read cost a compilation.
                chosen = self.chosen(found)
                self.runs += [
                    Planned(found, each) for each in chosen[count % max(1, len(chosen)) :][:1]
                ]
                known.append(found)
                count += 1

    def add_macros(self, drawn: Sequence[Problem]) -> None:
        """Runs for conditions in macros that hold, or do not hold, in no run of a variant. A run
        with the smallest problem does not count: its loops have one step."""
        searches, most = MOST_SEARCHES, len(self.runs) + MOST_OF_MACROS
        for text, variant in itertools.product(
            _conditions_of_macros(self.spec), self.spec.variants
        ):
            runs = [each for each in self.runs if each.configuration["variant"] == variant]
            larger = [each for each in runs if self.is_larger(each.problem, drawn[0])]
            met = any(self.holds(text, each.problem, each.configuration) for each in larger)
            if met or self._ruled_out(variant, text):
                continue
            for start, configuration in self._starts(text, variant, runs, drawn):
                if len(self.runs) == most or not searches:
                    return
                searches -= 1
                near = self.near(start, [configuration], text)
                if near and self.is_larger(near, drawn[0]) and self.is_small(near):
                    self.runs.append(Planned(near, configuration))
                    break

    def _starts(
        self, text: str, variant: str, runs: Sequence[Planned], drawn: Sequence[Problem]
    ) -> Iterator[tuple[Problem, Configuration]]:
        """Problems to begin at, the largest first, and configurations that run anyway first."""
        known = [each.configuration for each in runs]
        known += [each for each in self.corners if each["variant"] == variant]
        read = self.spec.formulas.raw_names(text)
        listed = [name for name in self.spec.listed_columns if name in read]
        # A loop over whole steps has more than one.
        far = {name: 2 * ELEMENTS * ODD + int(drawn[-1][name]) for name in self.free}
        for start in [{**drawn[:3][-1], **far}, *drawn[2::-1]]:
            for one in distinct(known)[: 2 * MOST_CONFIGURATIONS]:
                for values in itertools.product(*map(self._values, listed)):
                    yield {**start, **dict(zip(listed, values, strict=True))}, one

    def _ruled_out(self, variant: str, text: str) -> bool:
        """Whether a constraint says the opposite in the same words, or no tunable changes it."""
        texts = (*self.spec.constraints, *self.spec.variants[variant].constraints)
        said = {each for one in texts for each in parts(inlined(one, self.spec.derived))}
        own = {*self.spec.problem, *self.spec.variants[variant].tunables}
        return _opposite(text) in said or own.isdisjoint(self.spec.formulas.raw_names(text))

    def _values(self, name: str) -> list[Value]:
        return self.spec.problem[name].values or []

    # Sizes above a block

    def add_wide(self, drawn: Sequence[Problem]) -> None:
        """Runs with one size above the threads of a block, so that every warp has work. A missing
        barrier between warps, or a wrong step of a loop inside a block, shows in no problem whose
        data a part of one warp covers. A size that no grid reads is above :data:`ELEMENTS` times
        the threads; one that is a number of blocks needs no more than two. Every configuration has
        such a size, or the largest that constraints allow; every variant has it with every listed
        value."""
        known = distinct(each for problem in drawn for each in self.chosen(problem))
        wide, starts = list[list[Planned]](), self._starts_of(drawn)
        for name in [each for each in self.spec.problem if self.is_length(each)][:MOST_WIDE]:
            ran, found, refused = list(self.runs), list[Problem](), list[Problem]()
            above = [one.configuration for one in ran if self._is_above(one, name)]
            for one in sorted(known, key=lambda each: -self.reach(drawn[0], each, name)):
                if len(found) == MOST_OF_SIZE or one in above:
                    continue
                near = [each for each in self._above_blocks(starts, name, one) if each not in found]
                little = next((each for each in near if not self.too_large(each)), None)
                if little is None:
                    refused += near
                    continue
                own = [each for each in self.chosen(little) if each not in above]
                # Builds that the size itself changes are compiled for one configuration only.
                few = own[:1] if self.read(name, self.spec.macros.values()) else own
                wide.append([Planned(little, each, wide=True) for each in few or [one]])
                found.append(little)
                ran += wide[-1]
                above += [one.configuration for one in wide[-1] if self._is_above(one, name)]
            wide.append(self._with_listed(name, ran))
            # A smaller block may fit where the largest needs too much.
            if refused and not found:
                self.left_out.append((assigned(refused[0]), self.too_large(refused[0])))
        # Each size once before any goes through further configurations: their time has a limit.
        self.runs += [one for rank in itertools.zip_longest(*wide) for one in rank if one]

    def add_far(self, drawn: Sequence[Problem]) -> None:
        """A run of each variant with sizes above 16 bits, as many as are little work: an index of
        type ``short`` shows in no other."""
        ran = {str(one.configuration["variant"]): one.configuration for one in self.runs[::-1]}
        for one in ran.values():
            # More blocks along an axis are much work, or more than a GPU allows.
            far, texts = drawn[0], [f"({text}) <= {FAR}" for text in self._axes(one)]
            for name in filter(self.is_length, self.spec.problem):
                runs, text = [one, *self._expected], f"{name} > {FAR}"
                near = self.near({**far, name: FAR + RAGGED}, runs, text, *texts)
                if near is not None and not self.too_large(near):
                    far = near
                    texts.append(text)
            if far != drawn[0]:
                self.runs.append(Planned(far, one, wide=True))

    def _with_listed(self, name: str, ran: Sequence[Planned]) -> list[Planned]:
        """Runs of each variant with a size above a block and the listed values that no run there
        has; all values turn together. What has been compiled for such values comes first."""
        listed = {each: self._values(each) for each in self.spec.listed_columns}
        most = min(max(map(len, listed.values()), default=1), MOST_LISTED + 1)
        found = list[Planned]()
        for variant in self.spec.variants:
            own = [one for one in ran if one.configuration["variant"] == variant]
            above = [one for one in own if self._is_above(one, name)]
            for turn in range(1, most if above else 0):
                least = min(above, key=lambda one: self.size(one.problem))
                places = {each: listed[each].index(least.problem[each]) + turn for each in listed}
                values = {each: listed[each][at % len(listed[each])] for each, at in places.items()}
                if all(any(one.problem[each] == values[each] for one in above) for each in values):
                    continue
                compiled = [one for one in own if values.items() <= one.problem.items()]
                one = [*compiled, least][0].configuration
                side = min(self.reach(least.problem, one, name), int(least.problem[name]) - 1)
                texts = [f"{name} > {side}", *(f"{each} == {values[each]!r}" for each in values)]
                near = self.near({**least.problem, **values}, [one, *self._expected], *texts)
                if near is not None and not self.too_large(near):
                    found.append(Planned(near, one, wide=True))
        return found

    def never_above(self, ran: Sequence[Planned]) -> list[str]:
        """Parameters that may be lengths of loops, and that no run has above a block: none at all,
        none of a variant, or none with a listed value that runs have."""
        found = []
        for name in filter(self.is_length, self.spec.problem):
            above = dict[str, bool]()
            listed = [each for each in self.spec.listed_columns if each != name]
            for one in ran:
                if self.reach(one.problem, one.configuration, name):
                    words = ["", f" in {one.configuration['variant']}"]
                    words += [f" with {each}={one.problem[each]}" for each in listed]
                    met = self._is_above(one, name)
                    above |= {each: above.get(each, False) or met for each in words}
            missing = [f"{name} above a block{each}" for each, met in above.items() if not met]
            found += missing if above.get("") else missing[:1]
        return found

    def _is_above(self, run: Planned, name: str) -> bool:
        """Whether a size is above a block, or no constraint lets it be larger."""
        size, side = int(run.problem[name]), self.reach(run.problem, run.configuration, name)
        if 0 < side < size or side == 0 or size == self.most_of(name):
            return side > 0
        key = name, *run.problem.values(), *run.configuration.values()
        if key not in self._ends_above:
            near = self.near(run.problem, [run.configuration], f"{name} > {size}")
            self._ends_above[key] = near is None
        return self._ends_above[key]

    def _starts_of(self, drawn: Sequence[Problem]) -> list[Problem]:
        """The odd problem, one of a few elements along each axis, and the smallest."""
        few = {name: int(drawn[0][name]) + place for place, name in enumerate(self.free, 1)}
        near = self.near({**drawn[:2][-1], **few}, [self.corners[0], *self._expected])
        return [*drawn[1:2], *([] if near is None else [near]), drawn[0]]

    def _above_blocks(
        self, starts: Iterable[Problem], name: str, one: Configuration
    ) -> Iterator[Problem]:
        """Problems near some with a size above a configuration's block, or the largest below it."""
        for start in starts:
            side, runs = self.reach(start, one, name), [one, *self._expected]
            if not 1 < side <= MOST_REACH:
                continue
            most = self.most_of(name) or math.inf
            wanted, text = {**start, name: side + RAGGED}, f"{name} > {min(side, most - 1)}"
            near = self.near(wanted, runs, text)
            if near is None:
                near, text = self.near(wanted, runs), ""
            if near is None:
                continue
            # A size that constraints have moved lies at their border: `n >= 2 * rows`.
            moved = [each for each in self.free if each != name and near[each] != start[each]]
            apart = [f"{each} > {near[each]}" for each in moved]
            near = self.near(near, runs, text, *apart) or near
            # A largest value below, such as that of an exponent, need not be told.
            if int(near[name]) > side or not self.too_large(near):
                yield near


def _conditions_of_macros(spec: Spec) -> list[str]:
    """Conditions that macros read, and their opposites, over sizes or tunables. Listed values run
    anyway."""
    free = {name for name in spec.problem if name not in spec.listed_columns}
    found: list[str] = []
    for text in spec.macros.values():
        for test in _tests(parsed(inlined(text, spec.derived))):
            if not {*free, *spec.tunables}.isdisjoint(spec.formulas.raw_names(test)):
                found += [test, _opposite(test)]
    return list(dict.fromkeys(found))


def _tests(node: ast.AST) -> Iterator[str]:
    """Outermost comparisons, and conditions of ``a if b else c``."""
    if isinstance(node, ast.IfExp):
        yield ast.unparse(node.test)
    if isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield ast.unparse(node)
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _tests(inner)


def _opposite(text: str) -> str:
    node = parsed(text)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    turned: dict[type[ast.cmpop], ast.cmpop] = {ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq()}
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in turned:
        return ast.unparse(ast.Compare(node.left, [turned[type(node.ops[0])]], node.comparators))
    return ast.unparse(ast.UnaryOp(ast.Not(), node))
