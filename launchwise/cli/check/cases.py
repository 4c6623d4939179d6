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
MOST_WIDE = 4
MOST_OF_MACROS = 8  # Runs for listed values, for sizes above a block, and for conditions in macros
MOST_SEARCHES = 100  # Searches for sizes of all conditions in macros, of at most 0.1 s each
MEMORY_BYTES = 1 << 28  # Problems that need more are left out: the CPU runs one thread at a time

WIDE = (1 << 18, 1 << 25)
"""Work items, and bytes, of the largest problem with a size above the threads of a block."""

MOST_REACH = 1 << 13  # Most elements of a block that a size is drawn above

RAGGED = 32 + ODD
"""Threads with work in the last step of a loop over a size: one warp and a part of the next."""


@dataclass(frozen=True)
class Planned:
    """A run: a configuration of a problem."""

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
            near = (self.near({**one, **wanted}, self.corners[:1], text) for one in drawn[2::-1])
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
        """Runs with one size above the threads of the largest block, so that every warp has work. A
        missing barrier between warps, or a wrong step of a loop inside a block, shows in no problem
        whose data a part of one warp covers. A size that no grid reads is above :data:`ELEMENTS`
        times the threads; one that is a number of blocks needs no more than two."""
        known, wide = list(drawn), list[list[Planned]]()
        for name in filter(self._is_length, self.spec.problem):
            if len(known) == len(drawn) + MOST_WIDE or any(
                self._is_wide(each, name) for each in known
            ):
                continue
            near = list(self._above_blocks(drawn[:2], name, max(int(each[name]) for each in known)))
            # A smaller block may fit where the largest needs too much.
            little = next((each for each in near if not self._too_large(each)), None)
            if little is not None:
                known.append(little)
                chosen = self.chosen(little)
                # Builds that the size itself changes are compiled for one configuration only.
                few = chosen[:1] if self.read(name, self.spec.macros.values()) else chosen
                wide.append([Planned(little, each, wide=True) for each in few])
            elif near:
                self.left_out.append((assigned(near[0]), self._too_large(near[0])))
        # Each size once before any goes through further configurations: their time has a limit.
        self.runs += [one for rank in itertools.zip_longest(*wide) for one in rank if one]

    def never_above(self, ran: Sequence[Planned]) -> list[str]:
        """Parameters that may be lengths of loops, and that no run has above a block."""
        found = []
        for name in filter(self._is_length, self.spec.problem):
            most = self._most(name) or math.inf
            sides = [(self.reach(one.problem, one.configuration, name), one) for one in ran]
            blocks = [(side, int(one.problem[name])) for side, one in sides if side]
            if blocks and all(size <= side < most for side, size in blocks):
                found.append(name)
        return found

    def _most(self, name: str) -> int | None:
        """The largest value of a parameter of integers, if it has one."""
        parameter = self.spec.problem[name]
        return max(map(int, parameter.values)) if parameter.values else parameter.maximum

    def _is_length(self, name: str) -> bool:
        """Whether a parameter may be the length of a loop: no constant, nor only a count of
        launches, nor only a number of blocks."""
        parameter, variants = self.spec.problem[name], list(self.spec.variants.values())
        repeated = [part for one in variants for part in (one, *one.kernels)]
        counts = [text for part in repeated for text in part.repeat.values()]
        shapes = [text for one in self.spec.arguments.values() for text in one.sizes]
        axes = self.read(name, self.axes())
        return (
            parameter.type == "integer"
            and (parameter.minimum is None or parameter.minimum != parameter.maximum)
            and (not self.read(name, counts) or bool(self.read(name, shapes)))
            and (not axes or {*axes} != {name})
        )

    def _above_blocks(self, small: Sequence[Problem], name: str, most: int) -> Iterator[Problem]:
        """Problems with a size above ``most``, and above the largest block that runs, then above
        smaller ones."""
        largest = self._most(name)
        sides = {self.reach(small[0], one, name) for one in self.corners}
        for least in sorted((one for one in sides if 1 < one <= MOST_REACH), reverse=True):
            text = f"{name} > {max(most, least if largest is None else min(least, largest - 1))}"
            for each in reversed(small):
                runs = self.corners[:1]
                near = self.near({**each, name: least + RAGGED}, runs, text)
                if near is None:
                    continue
                # A size that constraints have moved lies at their border: `n >= 2 * rows`.
                moved = [one for one in self.free if one != name and near[one] != each[one]]
                apart = [f"{one} > {near[one]}" for one in moved]
                near = self.near(near, runs, text, *apart) or near
                # A largest value below, such as that of an exponent, need not be told.
                told = not self._too_large(near) or int(near[name]) > least
                if told and self._largest(near, name) >= least:
                    yield near

    def _is_wide(self, problem: Problem, name: str) -> bool:
        is_above = 0 < self._largest(problem, name) < int(problem[name])
        return is_above and not self._too_large(problem)

    def _largest(self, problem: Problem, name: str) -> int:
        """Elements of the largest block that runs for a problem; 0 for none."""
        return max((self.reach(problem, one, name) for one in self.chosen(problem)), default=0)

    def _too_large(self, problem: Problem) -> str:
        items, needed = self.size(problem)
        if items > WIDE[0]:
            return f"{items:.0f} {self.spec.work.item} are too much work for the CPU device"
        if needed > WIDE[1]:
            return f"needs {needed / 1e6:.0f} MB, too much for the CPU device"
        return ""


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
