"""Problems with one size above the threads of a block, so that every warp of it has work.

A missing barrier between warps, or a wrong step of a loop inside a block, shows in no problem whose
data a part of one warp covers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from launchwise.cli.check.small_runs import chosen
from launchwise.workloads.corners import corner_configurations
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.parts import UNKNOWN_GPU, ProblemParameter
from launchwise.workloads.space import Configuration, Problem, baseline
from launchwise.workloads.spec import Spec

MOST_ITEMS = 1 << 18
"""Work items of such a problem: the CPU runs one thread at a time."""

MOST_BYTES = 1 << 25
MOST_PROBLEMS = 4
MOST_THREADS = 1024

ELEMENTS = 4
"""Elements that a thread may handle at once, as a vector, in a loop inside a block."""

RAGGED = 32 + 13
"""Threads with work in the last step of a loop over a size: one warp and a part of the next."""


@dataclass(frozen=True)
class Wide:
    """A problem, or why it is left out.

    Parameters
    ----------
    too_large
        Why the CPU device does not run it; '' where it does.
    """

    problem: Problem
    too_large: str = ""


def wide_problems(spec: Spec, drawn: Sequence[Problem]) -> list[Wide]:
    """Problems with one integer above the threads of the largest block that runs.

    One that no grid reads is above :data:`ELEMENTS` times the threads. The other integers are those
    of the second of ``drawn``, which are odd, or of the first where that is too much work, as far
    as constraints allow. A parameter for which one of ``drawn`` is such a problem gets no other,
    nor one that only says how often kernels are launched.
    """
    if not drawn:
        return []
    found: list[Wide] = []
    for name, parameter in spec.problem.items():
        fixed = parameter.minimum is not None and parameter.minimum == parameter.maximum
        if parameter.type != "integer" or fixed or _only_repeats(spec, name):
            continue
        known = [*drawn, *(one.problem for one in found)]
        if any(_is_wide(spec, each, name) for each in known):
            continue
        most = max(int(each[name]) for each in known)
        candidates = _candidates(spec, drawn[:2], name, parameter)
        new = [one for one in candidates if int(one.problem[name]) > most]
        # A smaller block may fit where the largest needs too much.
        found += ([one for one in new if not one.too_large] or new)[:1]
    return found[:MOST_PROBLEMS]


def _candidates(
    spec: Spec, small: Sequence[Problem], name: str, parameter: ProblemParameter
) -> Iterator[Wide]:
    """Problems for the largest block that runs, then for smaller ones."""
    configurations = corner_configurations(spec)
    sides = {_threads(spec, small[0], one) for one in configurations}
    for threads in sorted(sides, reverse=True):
        if not 1 < threads <= MOST_THREADS:
            continue
        least = _elements(spec, name) * threads
        for each in reversed(small):
            problem = _near(spec, {**each, name: _above(parameter, least)}, name, least)
            if problem is None or _largest_block(spec, problem) < threads:
                continue
            said = _too_large(spec, problem)
            # A largest value below, such as that of an exponent, need not be told.
            if not said or int(problem[name]) > least:
                yield Wide(problem, said)


def _only_repeats(spec: Spec, name: str) -> bool:
    """Whether a parameter counts launches, and is the size of no array."""
    parts = [part for one in spec.variants.values() for part in (one, *one.kernels)]
    counts = [text for part in parts for text in part.repeat.values()]
    shapes = [text for one in spec.arguments.values() for text in one.sizes]
    return _is_read(spec, name, counts) and not _is_read(spec, name, shapes)


def _is_read(spec: Spec, name: str, texts: Sequence[str]) -> bool:
    return any(name in spec.formulas.raw_names(text) for text in texts)


def _elements(spec: Spec, name: str) -> int:
    """Elements of a thread: several where blocks loop over a size, and no grid divides it."""
    axes = [text for one in spec.variants.values() for grid in one.grids for text in grid]
    return 1 if _is_read(spec, name, axes) else ELEMENTS


def _near(spec: Spec, wanted: Problem, name: str, least: int) -> Problem | None:
    """The nearest problem that the baseline may run, if possible above a number of elements."""

    def is_above(problem: Problem) -> bool:
        return int(problem[name]) > least

    runs = [baseline(spec)]
    above = nearest_problem(spec, wanted, runs, is_above) if is_above(wanted) else None
    near = above or nearest_problem(spec, wanted, runs)
    moved = [each for each in wanted if near and each != name and near[each] != wanted[each]]
    if near is None or not moved:
        return near
    # A size that constraints have moved lies at their border: `n >= 2 * rows`.
    apart = {each: 2 * int(near[each]) + 1 for each in moved if not isinstance(near[each], str)}
    roomy = nearest_problem(spec, {**near, **apart}, runs, is_above) if is_above(near) else None
    return near if roomy is None or _too_large(spec, roomy) else roomy


def _above(parameter: ProblemParameter, least: int) -> int:
    """A value above a number of elements, or else the largest."""
    wanted = least + RAGGED
    if parameter.values is not None:
        listed = sorted(int(each) for each in parameter.values)
        return next((each for each in listed if each > least), listed[-1])
    return wanted if parameter.maximum is None else min(wanted, parameter.maximum)


def _is_wide(spec: Spec, problem: Problem, name: str) -> bool:
    threads = _largest_block(spec, problem)
    least = _elements(spec, name) * threads
    return threads > 0 and int(problem[name]) > least and not _too_large(spec, problem)


def _largest_block(spec: Spec, problem: Problem) -> int:
    """Threads of the largest block that runs for a problem; 0 for none."""
    return max((_threads(spec, problem, one) for one in chosen(spec, problem)), default=0)


def _threads(spec: Spec, problem: Problem, configuration: Configuration) -> int:
    """Threads of the largest block of a configuration; 0 where the spec does not say."""
    variant = spec.variants[str(configuration["variant"])]
    blocks = [list(step.block) for step in variant.kernels] or [list(variant.block or ["0"])]
    names = {**UNKNOWN_GPU, **problem, **configuration}
    try:
        return max(math.prod(int(spec.value(text, names)) for text in one) for one in blocks)
    except ValueError:
        return 0


def _too_large(spec: Spec, problem: Problem) -> str:
    items = float(spec.value(spec.work.items, problem))
    needed = float(spec.value(spec.work.footprint_bytes, problem))
    if items > MOST_ITEMS:
        return f"{items:.0f} {spec.work.item} are too much work for the CPU device"
    if needed > MOST_BYTES:
        return f"needs {needed / 1e6:.0f} MB, too much for the CPU device"
    return ""
