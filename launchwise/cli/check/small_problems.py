"""Small problems of a workload, and the configurations that the CPU device runs of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from launchwise.base.expressions import inlined, substituted
from launchwise.workloads.checks.corners import corner_configurations
from launchwise.workloads.checks.fitting_sizes import Condition, Search, conditions_of, parts
from launchwise.workloads.sampling import drawn_of
from launchwise.workloads.space import Configuration, Problem, feasible
from launchwise.workloads.spec import Spec

MOST_PROBLEMS = 5
MOST_FOR_OTHERS = 4
"""Further problems for configurations that fit none of these, or have single blocks there."""

MOST_TRIED = 12  # Configurations that such a problem is searched for
MOST_CONFIGURATIONS = 4  # Of each variant: the first, the last and some between

SMALL = (1 << 16, 1 << 23)
"""Work items, and bytes, of the largest problem that is drawn for its number of blocks."""

ODD = 13
"""Added to the smallest size, twice to the second parameter's and so on: blocks at the end of an
array are then not full, and a width is no height."""

SEED = 2026


class SmallProblems:
    """Draws small problems that configurations may run on a GPU with limits."""

    def __init__(self, spec: Spec, gpu: Mapping[str, Any]) -> None:
        self.spec = spec
        # Facts that constraints may read (:data:`launchwise.workloads.parts.GPU_NAMES`).
        self.gpu = gpu
        self.corners = corner_configurations(spec)
        self.free = [
            name
            for name, one in spec.problem.items()
            if one.type == "integer" and one.values is None and one.minimum != one.maximum
        ]

    def near(
        self, wanted: Problem, runs: Sequence[Configuration] = (), *texts: str
    ) -> Problem | None:
        """The nearest problem that configurations may run and that meets further conditions. These
        may read the first configuration and the GPU."""
        names = {**self.gpu, **(runs[0] if runs else {})}
        conditions = conditions_of(self.spec, runs, self.gpu)
        for text in filter(None, texts):
            whole = inlined(text, self.spec.derived)
            conditions += [Condition.of(each, self.spec.problem, names) for each in parts(whole)]
        return Search(self.spec.problem, wanted, conditions).nearest()

    def feasible(self, problem: Problem, configuration: Configuration) -> bool:
        """Whether a configuration may run a problem."""
        return feasible(self.spec, problem, configuration, self.gpu)

    def size(self, problem: Problem) -> tuple[float, float]:
        """Work items and bytes of a problem."""
        work = self.spec.work
        items, needed = (
            self.spec.value(each, problem) for each in (work.items, work.footprint_bytes)
        )
        return float(items), float(needed)

    def fits(self, problem: Problem, most: tuple[int, int] = SMALL) -> bool:
        """Whether a problem has no more work items and bytes."""
        return all(one <= limit for one, limit in zip(self.size(problem), most, strict=True))

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

    def smallest_of(self, listed: Iterable[Problem]) -> list[Problem]:
        """The smallest of the problems of a sweep, for each of its types."""
        kinds: dict[str, Problem] = {}
        for problem in sorted(listed, key=lambda each: self.size(each)[1]):
            kind = [value for value in problem.values() if isinstance(value, str)]
            kinds.setdefault(json.dumps(kind), problem)
        return list(kinds.values())[:MOST_PROBLEMS]

    def drawn(self) -> list[Problem]:
        """The smallest sizes, odd ones, one with several blocks, and those for configurations that
        these do not suit; none where no size meets the constraints. Where the baseline is
        infeasible, the nearest that it may run comes first."""
        in_triton = all(one.is_triton for one in self.spec.variants.values())
        # The interpreter does not compute in bfloat16; where nothing else is left, it says so.
        return self._drawn(in_triton) or (self._drawn(False) if in_triton else [])

    def _drawn(self, in_triton: bool) -> list[Problem]:
        sizes = {
            name: self._sizes(name, place, in_triton)
            for place, name in enumerate(self.spec.problem)
        }
        smallest = {name: small for name, (small, _) in sizes.items()}
        odd = {name: larger for name, (_, larger) in sizes.items()}
        runs = [self.corners[0]]
        if self.spec.reference is not None and self.spec.reference.variant is not None:
            runs.append({"variant": self.spec.reference.variant, **self.spec.neutral})
        first = self.near(smallest, runs) or self.near(smallest)
        if first is None:
            return []
        wishes = self._wishes(first)
        found, alone = [first], []
        moved, plain = self._odd(odd, runs, wishes), self._odd(odd, [], wishes)
        if moved or plain:
            found.append(moved or plain or first)
        able = [each for each in self.corners if self.feasible(found[-1], each)]
        found.append(self._several_blocks(found[-1], able, runs, wishes))
        # Another variant may have what the baseline's constraints keep from being seen.
        if plain is not None and plain != moved and self._others_run(plain, runs[1:]):
            alone.append(plain)
        every = distinct([*found, *alone])[:MOST_PROBLEMS]
        return [*every, *self._for_others(every, wishes)]

    def _sizes(self, name: str, place: int, in_triton: bool) -> tuple[Any, Any]:
        """Smallest value of a parameter, and an odd one near it, another for each ``place``."""
        parameter = self.spec.problem[name]
        if parameter.values is not None:
            listed = parameter.values
            if parameter.type == "integer":
                listed = sorted(listed)
            elif in_triton:
                listed = [each for each in listed if each != "bfloat16"] or listed
            return listed[0], listed[min(1, len(listed) - 1)]
        low = parameter.minimum if parameter.minimum is not None else 1
        odd = low + (1 + place) * ODD
        return low, odd if parameter.maximum is None else min(odd, parameter.maximum)

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
        self,
        start: Problem,
        configurations: Sequence[Configuration],
        runs: Sequence[Configuration],
        wishes: Sequence[str],
    ) -> Problem:
        """A problem whose grids, of all launches, have two blocks or more along each axis that can.
        A mistake at the border of blocks, or in a loop over tiles, shows in no problem that one
        block covers. The second block is about half full. The work stays little."""
        found, texts = start, list[str]()
        fuller = {name: f"({name} * 2 // 3)" for name in self.free}
        for text in self._single_axes(start, configurations):
            for axis in (substituted(text, fuller), text):
                near = self._odd(start, runs, wishes, *texts, f"{axis} >= 2")
                if near is not None and self.fits(near, SMALL):
                    found = near
                    texts.append(f"{axis} >= 2")
                    break
        return found

    def _single_axes(self, problem: Problem, configurations: Sequence[Configuration]) -> list[str]:
        """Axes of grids, of all launches, that read a size and have a single block. Expressions
        over the problem alone; counters of repetitions are 0. Of several configurations the one
        with the largest block counts."""
        far = {**problem, **{name: 1024 * int(problem[name]) for name in self.free}}
        found: dict[tuple[str, int], tuple[float, str]] = {}
        for configuration in configurations:
            variant = self.spec.variants[str(configuration["variant"])]
            counters = {name: 0 for part in (variant, *variant.kernels) for name in part.repeat}
            names = {**self.gpu, **counters, **configuration}
            for place, text in enumerate(itertools.chain(*variant.grids)):
                if set(self.spec.formulas.raw_names(text)).isdisjoint(self.free):
                    continue
                try:
                    value = self.spec.value(text, {**names, **problem})
                    blocks = float(self.spec.value(text, {**names, **far}))
                except ValueError:
                    continue
                whole = substituted(
                    inlined(text, self.spec.derived), {each: repr(names[each]) for each in names}
                )
                key = str(configuration["variant"]), place
                if value < 2 and (key not in found or blocks < found[key][0]):
                    found[key] = blocks, whole
        return list(dict.fromkeys(text for _, text in found.values()))

    def _for_others(self, drawn: Sequence[Problem], wishes: Sequence[str]) -> list[Problem]:
        """Problems for corner configurations that may run none of these, or with single blocks."""
        found: list[Problem] = []
        tried = 0
        for configuration in self.corners:
            if len(found) == MOST_FOR_OTHERS or tried == MOST_TRIED:
                break
            known = [each for each in (*drawn, *found) if self.feasible(each, configuration)]
            single = [len(self._single_axes(each, [configuration])) for each in known]
            if known and not min(single):
                continue
            tried += 1
            start = self.near(known[-1] if known else drawn[-1], [configuration])
            if start is not None:
                near = self._several_blocks(start, [configuration], [configuration], wishes)
                if not known or len(self._single_axes(near, [configuration])) < min(single):
                    found.append(near)
        return found

    def _others_run(self, problem: Problem, expected: Sequence[Configuration]) -> bool:
        return all(self.feasible(problem, each) for each in expected) and any(
            self.feasible(problem, each) for each in self.corners
        )


def _evenly(listed: list[Configuration]) -> list[Configuration]:
    """At most :data:`MOST_CONFIGURATIONS`, from the first to the last."""
    count = min(MOST_CONFIGURATIONS, len(listed))
    places = [round(i * (len(listed) - 1) / max(1, count - 1)) for i in range(count)]
    return [listed[place] for place in dict.fromkeys(places)]


def distinct(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Problems or configurations, each once."""
    return list({tuple(each.values()): each for each in found}.values())
