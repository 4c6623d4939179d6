"""Small problems of a workload, and the configurations that the CPU device runs of them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from launchwise.cli.check.sweep_files import listed_problems
from launchwise.workloads import corners
from launchwise.workloads.drawn_problems import drawn_problems, single_axes, with_several_blocks
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.sampling import drawn_of
from launchwise.workloads.space import (
    Configuration,
    Problem,
    feasible,
)
from launchwise.workloads.spec import Spec

MOST_PROBLEMS = 5
MOST_FOR_OTHERS = 2
"""Further problems for configurations that fit none of these."""

MOST_CONFIGURATIONS = 4
"""Of each variant: the first, the last and some between."""

MEMORY_BYTES = 1 << 28
"""Problems that need more are left out: the CPU runs one thread at a time."""

MOST_SMALL_ITEMS = 1 << 16
"""Most work items, or numbers in memory, of a small problem."""

BYTES_PER_ITEM = 4

ODD = 13
"""Added to the smallest size, twice to the second parameter's and so on: blocks at the end of an
array are then not full, and a width is no height."""

SEED = 2026


def small_problems(folder: Path, spec: Spec) -> list[Problem]:
    """The smallest problems of ``sweep.yaml``; without one, the smallest sizes and odd ones.

    The largest of them has several blocks in every configuration; further ones let configurations
    run that fit none of these. All are problems of the workload; where the baseline is infeasible,
    the nearest that it may run comes first.

    Raises
    ------
    UserError
        When ``sweep.yaml`` lists what is no problem of the workload.
    """
    listed = listed_problems(folder, spec)
    if listed is not None:
        listed.sort(key=lambda each: float(spec.value(spec.work.footprint_bytes, each)))
        kinds: dict[str, Problem] = {}
        for problem in listed:
            kind = [value for value in problem.values() if isinstance(value, str)]
            kinds.setdefault(json.dumps(kind), problem)
        return list(kinds.values())[:MOST_PROBLEMS]
    return drawn_small_problems(spec)


def drawn_small_problems(spec: Spec) -> list[Problem]:
    """The smallest sizes and odd ones (see :func:`small_problems`)."""
    found = _drawn(spec, all(one.is_triton for one in spec.variants.values())) or _drawn(spec)
    found += _for_others(spec, found)
    return [*found, *_for_single_blocks(spec, found)]


def is_small(spec: Spec, problem: Problem) -> bool:
    """Whether a problem is so little work that the CPU device ends every right kernel in time."""
    items, bytes_ = (
        float(spec.value(text, problem)) for text in (spec.work.items, spec.work.footprint_bytes)
    )
    return max(items, bytes_ / BYTES_PER_ITEM) <= MOST_SMALL_ITEMS


def _drawn(spec: Spec, in_triton: bool = False) -> list[Problem]:
    """The smallest sizes, odd ones, and one with several blocks."""
    sizes = {name: _sizes(spec, name, place, in_triton) for place, name in enumerate(spec.problem)}
    smallest = {name: small for name, (small, _) in sizes.items()}
    odd = {name: larger for name, (_, larger) in sizes.items()}
    corner = corners.corner_configurations(spec)
    wanted = [smallest, odd, with_several_blocks(spec, [odd, smallest], corner)]
    found = drawn_problems(spec, list({json.dumps(each): each for each in wanted}.values()))
    return found[:MOST_PROBLEMS]


def _for_others(spec: Spec, drawn: list[Problem]) -> list[Problem]:
    """Problems near drawn ones for corner configurations that may run none of those."""
    found: list[Problem] = []
    for configuration in corners.corner_configurations(spec):
        if len(found) == MOST_FOR_OTHERS:
            break
        if any(feasible(spec, each, configuration) for each in (*drawn, *found)):
            continue
        near = nearest_problem(spec, drawn[-1], [configuration]) if drawn else None
        if near is not None:
            found.append(near)
    return found


def _for_single_blocks(spec: Spec, drawn: list[Problem]) -> list[Problem]:
    """Problems of several blocks for configurations whose constraints keep them from the others."""
    found: list[Problem] = []
    for configuration in corners.corner_configurations(spec):
        runs = [each for each in (*drawn, *found) if feasible(spec, each, configuration)]
        single = [len(single_axes(spec, each, [configuration])) for each in runs]
        if not single or not min(single) or len(found) == MOST_FOR_OTHERS:
            continue
        grown = with_several_blocks(spec, [runs[-1], runs[0]], [configuration])
        near = nearest_problem(spec, grown, [configuration])
        if near and len(single_axes(spec, near, [configuration])) < min(single):
            found.append(near)
    return found


def _sizes(spec: Spec, name: str, place: int, in_triton: bool) -> tuple[Any, Any]:
    """Smallest value of a parameter, and an odd one near it, another one for each ``place``.

    ``in_triton``: the interpreter runs all variants, which does not compute in bfloat16.
    """
    parameter = spec.problem[name]
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


def chosen(spec: Spec, problem: Problem) -> list[Configuration]:
    """The baseline, then corners: one of each variant, another of each, and so on.

    A variant none of whose corners is feasible has a drawn one instead. All are feasible; where
    nothing that is tried is, the list is empty.
    """
    first, *rest = corners.corner_configurations(spec)
    found = [first] if feasible(spec, problem, first) else []
    per_variant: dict[str, list[Configuration]] = {}
    for configuration in rest:
        if feasible(spec, problem, configuration) and configuration != first:
            per_variant.setdefault(str(configuration["variant"]), []).append(configuration)
    for name in spec.variants:
        if name not in per_variant and (name != first["variant"] or not found):
            drawn = drawn_of(spec, problem, name, SEED)
            per_variant[name] = [] if drawn is None else [drawn]
    few = [_evenly(listed) for listed in per_variant.values()]
    found += [each for rank in itertools.zip_longest(*few) for each in rank if each is not None]
    return found


def _evenly(listed: list[Configuration]) -> list[Configuration]:
    """At most :data:`MOST_CONFIGURATIONS`, from the first to the last."""
    count = min(MOST_CONFIGURATIONS, len(listed))
    places = [round(i * (len(listed) - 1) / max(1, count - 1)) for i in range(count)]
    return [listed[place] for place in dict.fromkeys(places)]
