"""Small problems of a workload, and the configurations that the CPU device runs of them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from launchwise.base.expressions import evaluate, inlined, substituted
from launchwise.workloads.checks.corners import corner_configurations
from launchwise.workloads.checks.fitting_sizes import Condition, conditions_of, fitting, parts
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import drawn_of
from launchwise.workloads.space import Configuration, Problem, feasible
from launchwise.workloads.spec import Spec

MOST_PROBLEMS = 5  # Of a sweep, or drawn
MOST_TRIED = 12  # Configurations that a problem with several blocks is searched for
MOST_CONFIGURATIONS = 4  # Of each variant: the first, the last and some between

SMALL = (1 << 16, 1 << 23)
"""Work items, and bytes, of the largest problem that is drawn for its number of blocks."""

WIDE = (1 << 18, 1 << 25)
"""Work items, and bytes, of the largest problem with a size above the threads of a block."""

MOST_INSTANCES = 128
"""Program instances of a small problem at most; Triton's interpreter runs about 200 a second."""

ODD = 13
"""Added to the smallest size, twice to the second parameter's and so on: blocks at the end of an
array are then not full, and a width is no height."""

ELEMENTS = 4  # Elements that a thread may handle at once, as a vector, in a loop inside a block
SEED = 2026


class SmallProblems:
    """Draws small problems that configurations may run on a GPU with limits. ``gpu``: facts that
    constraints may read (:data:`launchwise.workloads.parts.GPU_NAMES`)."""

    def __init__(self, spec: Spec, gpu: Mapping[str, Any]) -> None:
        self.spec, self.gpu = spec, gpu
        self.corners = corner_configurations(spec)
        self.free = [
            name
            for name, one in spec.problem.items()
            if one.type == "integer" and one.values is None and one.minimum != one.maximum
        ]
        other = spec.reference.variant if spec.reference is not None else None
        # Configurations that give the expected results: they must run wherever another does.
        self._expected = [] if other is None else [{"variant": other, **spec.neutral}]
        self._few_instances = self._instances()

    def smallest_of(self, listed: Iterable[Problem]) -> list[Problem]:
        """The smallest of the problems of a sweep, for each of its types."""
        kinds: dict[str, Problem] = {}
        for problem in sorted(listed, key=lambda each: self.size(each)[1]):
            kind = [value for value in problem.values() if isinstance(value, str)]
            kinds.setdefault(json.dumps(kind), problem)
        return list(kinds.values())[:MOST_PROBLEMS]

    def chosen(self, problem: Problem) -> list[Configuration]:
        """The baseline, then corners: one of each variant, another of each, and so on. A variant
        none of whose corners is feasible has a drawn one instead. All are feasible."""
        first, *rest = self.corners
        found = [first] if self.feasible(problem, first) else []
        per_variant: dict[str, list[Configuration]] = {}
        for configuration in rest:
            if configuration != first and self.feasible(problem, configuration):
                per_variant.setdefault(str(configuration["variant"]), []).append(configuration)
        for name in self.spec.variants:
            if name not in per_variant and (name != first["variant"] or not found):
                drawn = drawn_of(self.spec, problem, name, SEED, self.gpu)
                per_variant[name] = [] if drawn is None else [drawn]
        few = [_evenly(listed) for listed in per_variant.values()]
        found += [each for rank in itertools.zip_longest(*few) for each in rank if each is not None]
        return found

    def near(
        self, wanted: Problem, runs: Sequence[Configuration] = (), *texts: str
    ) -> Problem | None:
        """The nearest problem that configurations may run and that meets further conditions. These
        may read the first configuration and the GPU. It has few program instances if any has."""
        names = {**self.gpu, **(runs[0] if runs else {})}
        conditions = conditions_of(self.spec, runs, self.gpu)
        for text in filter(None, (*texts, self._few_instances)):
            whole = inlined(text, self.spec.derived)
            conditions += [Condition.of(each, self.spec.problem, names) for each in parts(whole)]
        found = fitting(self.spec.problem, wanted, conditions)
        if found is None and conditions[-1].reads:
            found = fitting(self.spec.problem, wanted, conditions[:-1])
        return found

    def size(self, problem: Problem) -> tuple[float, float]:
        work = self.spec.work
        items, needed = (
            self.spec.value(each, problem) for each in (work.items, work.footprint_bytes)
        )
        return float(items), float(needed)

    def is_small(self, problem: Problem) -> bool:
        few = self.holds(self._few_instances, problem, {})
        return few and all(one <= most for one, most in zip(self.size(problem), SMALL, strict=True))

    def feasible(self, problem: Problem, configuration: Configuration) -> bool:
        return feasible(self.spec, problem, configuration, self.gpu)

    def holds(self, text: str, problem: Problem, configuration: Configuration) -> bool:
        try:
            return bool(evaluate(text, {**self.gpu, **configuration, **problem}))
        except ValueError:
            return False

    def is_larger(self, problem: Problem, smallest: Problem) -> bool:
        return not self.free or any(problem[name] != smallest[name] for name in self.free)

    def drawn(self) -> list[Problem]:
        """The smallest sizes, odd ones, and some with two blocks or more along each axis that can;
        none where no size meets the constraints. Where the baseline is infeasible, the nearest that
        it may run comes first."""
        smallest, odd = self._ends()
        runs = [self.corners[0], *self._expected]
        first = self.near(smallest, runs) or self.near(smallest)
        if first is None:
            return []
        wishes = self._wishes(first)
        moved, plain = (self._odd(odd, few, wishes) for few in (runs, self._expected))
        found = [first, *([moved or plain or first])]
        # Another variant may have what the baseline's constraints keep from being seen.
        if plain is not None and any(self.feasible(plain, each) for each in self.corners):
            found.append(plain)
        found = distinct(found)
        tried, far = 0, {**first, **{name: int(first[name]) << 16 for name in self.free}}
        # What is several of the largest blocks is several of smaller ones, too.
        ranks = [
            (not self.feasible(found[-1], one), self._blocks(far, one)) for one in self.corners
        ]
        for _, one in sorted(zip(ranks, self.corners, strict=True), key=lambda pair: pair[0]):
            known = [each for each in found if self.feasible(each, one)]
            single = min([self._single_axes(each, one) for each in known], key=len, default=None)
            if len(found) == MOST_PROBLEMS or tried == MOST_TRIED:
                break
            if single == []:
                continue
            tried += 1
            start = self.near((known or found)[-1], [one, *self._expected])
            if start is not None:
                near = self._several_blocks(start, one, wishes)
                if single is None or len(self._single_axes(near, one)) < len(single):
                    found.append(near)
        return found

    def _ends(self) -> tuple[Problem, Problem]:
        """The smallest value of each parameter, and an odd one near it, another for each place."""
        smallest, odd = Problem(), Problem()
        in_triton = all(one.is_triton for one in self.spec.variants.values())
        for place, (name, one) in enumerate(self.spec.problem.items(), 1):
            low = 1 if one.minimum is None else one.minimum
            ends: Sequence[Value] = (low, low + place * ODD)
            if one.values is not None:
                ends = sorted(one.values, key=int) if one.type == "integer" else one.values
                # The interpreter does not compute in bfloat16; of nothing else, it says so.
                ends = [each for each in ends if not in_triton or each != "bfloat16"] or ends
            smallest[name], odd[name] = ends[0], ends[:2][-1]
        return smallest, odd

    def _wishes(self, smallest: Problem) -> list[str]:
        """What an odd problem should meet, the best first. Its sizes differ from the smallest and
        from each other, and are no multiples of a larger power of two than these."""
        if not self.free:
            return [""]
        sizes = {name: int(smallest[name]) for name in self.free}
        odd = [f"{name} % {2 * (size & -size)} != 0" for name, size in sizes.items() if size]
        moved = [f"{name} != {size}" for name, size in sizes.items()]
        apart = [f"{one} != {other}" for one, other in itertools.combinations(sizes, 2)]
        differs, all_differ = f"({' or '.join(moved)})", [*moved, *apart]
        every: list[list[str]] = [[*odd, *all_differ], [*odd, differs], all_differ, [differs], []]
        return [" and ".join(each) for each in every]

    def _odd(
        self, wanted: Problem, runs: Sequence[Configuration], wishes: Sequence[str], *texts: str
    ) -> Problem | None:
        """The wanted problem if it fits, else the nearest that grants the best of the wishes."""
        nearest = self.near(wanted, runs, *texts)
        if nearest is None or (nearest == wanted and not texts):
            return nearest
        granted = (self.near(wanted, runs, *texts, wish) for wish in wishes)
        return next((each for each in granted if each is not None), None)

    def _several_blocks(
        self, start: Problem, configuration: Configuration, wishes: Sequence[str]
    ) -> Problem:
        """A problem whose grids, of all launches, have two blocks or more along each axis that can.
        A mistake at the border of blocks, or in a loop over tiles, shows in no problem that one
        block covers. The second block is about half full. The work stays little."""
        found, texts, runs = start, list[str](), [configuration, *self._expected]
        fuller = {name: f"({name} * 2 // 3)" for name in self.free}
        for text in self._single_axes(start, configuration):
            for axis in (substituted(text, fuller), text):
                near = self._odd(start, runs, wishes, *texts, f"{axis} >= 2")
                if near is not None and self.is_small(near):
                    found = near
                    texts.append(f"{axis} >= 2")
                    break
        return found

    def _single_axes(self, problem: Problem, configuration: Configuration) -> list[str]:
        """Axes of grids, of all launches, that read a size and have a single block."""
        return [
            text
            for text in self._axes(configuration)
            if not set(self.spec.formulas.raw_names(text)).isdisjoint(self.free)
            and self.holds(f"({text}) < 2", problem, configuration)
        ]

    def _blocks(self, problem: Problem, configuration: Configuration) -> float:
        """Blocks of the launches of a problem; infinity where the spec does not say."""
        names = {**self.gpu, **problem, **configuration}
        try:
            return math.prod(float(evaluate(text, names)) for text in self._axes(configuration))
        except ValueError:
            return math.inf

    def _instances(self) -> str:
        """The condition that a problem has few instances of Triton, in any corner; it holds where
        no grid of Triton reads a size."""
        far = {**self._ends()[0], **dict.fromkeys(self.free, 1 << 16)}
        corners = [one for one in self.corners if self.spec.variants[str(one["variant"])].is_triton]
        most = max(corners, key=lambda one: self._blocks(far, one), default={})
        known = {name: repr(value) for name, value in most.items()}
        axes = [f"({substituted(text, known)})" for text in self._axes(most)] if most else []
        is_read = any(self.read(name, axes) for name in self.free)
        return f"{' * '.join(axes)} <= {MOST_INSTANCES}" if is_read else "1"

    def _axes(self, configuration: Configuration) -> list[str]:
        """Blocks along axes of grids, without derived names; counters of repetitions are 0."""
        variant = self.spec.variants[str(configuration["variant"])]
        counters = {name: "0" for part in (variant, *variant.kernels) for name in part.repeat}
        texts = (inlined(text, self.spec.derived) for text in itertools.chain(*variant.grids))
        return [substituted(text, counters) for text in texts]

    def axes(self) -> list[str]:
        variants = self.spec.variants.values()
        return [text for one in variants for grid in one.grids for text in grid]

    def read(self, name: str, texts: Iterable[str]) -> list[str]:
        return [text for text in texts if name in self.spec.formulas.raw_names(text)]

    def reach(self, problem: Problem, configuration: Configuration, name: str) -> int:
        """Elements that a block covers at once; 0 where the spec does not say. Several for each
        thread where no grid divides the size; in Triton, the largest of the sizes that tunables
        give."""
        variant = self.spec.variants[str(configuration["variant"])]
        given = [configuration[each] for each in variant.tunables if each[:4] != "num_"]
        sizes = [each for each in given if isinstance(each, int)]
        if variant.is_triton and sizes:
            return max(sizes)
        blocks = [list(step.block) for step in variant.kernels] or [list(variant.block or ["0"])]
        names = {**self.gpu, **problem, **configuration}
        elements = 1 if self.read(name, self.axes()) else ELEMENTS
        try:
            sides = ([int(self.spec.value(text, names)) for text in one] for one in blocks)
            return elements * max(map(math.prod, sides))
        except ValueError:
            return 0

    def most_of(self, name: str) -> int | None:
        parameter = self.spec.problem[name]
        return max(map(int, parameter.values)) if parameter.values else parameter.maximum

    def is_length(self, name: str) -> bool:
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

    def too_large(self, problem: Problem) -> str:
        items, needed = self.size(problem)
        if items > WIDE[0]:
            return f"{items:.0f} {self.spec.work.item} are too much work for the CPU device"
        if needed > WIDE[1]:
            return f"needs {needed / 1e6:.0f} MB, too much for the CPU device"
        if not self.holds(self._few_instances, problem, {}):
            return f"more than {MOST_INSTANCES} program instances are too much for the CPU device"
        return ""


def _evenly(listed: list[Configuration]) -> list[Configuration]:
    """At most :data:`MOST_CONFIGURATIONS`, from the first to the last."""
    count = min(MOST_CONFIGURATIONS, len(listed))
    places = [round(i * (len(listed) - 1) / max(1, count - 1)) for i in range(count)]
    return [listed[place] for place in dict.fromkeys(places)]


def distinct(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({tuple(each.values()): each for each in found}.values())
