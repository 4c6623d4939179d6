"""Problems that fill the declared ranges of a study evenly: a design, the same in each run."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from launchwise.base.errors import Misfit
from launchwise.experiment.study import Drawn, Range, Study, StudyFile
from launchwise.workloads.checks.fitting_sizes import nearest_problem
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import CONSTRAINTS, ONLY, Part, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

COARSEST = 4  # A size is rounded to a multiple of at most this part of it
MOST_TRIED = 10  # Points per problem before the ranges count as too sparse


def measured_part(study: StudyFile, spec: Spec) -> dict[str, Any]:
    """What a sweep measures of a problem for a study, as keys of a problem block: its candidates.
    What is not verified cannot be an answer."""
    verified = [name for name, variant in spec.variants.items() if variant.verified]
    part: dict[str, Any] = {ONLY: {"variant": verified, **study.candidates}}
    return part | ({CONSTRAINTS: list(study.constraints)} if study.constraints else {})


def spread(study: StudyFile, spec: Spec) -> list[Problem]:
    """The problems that a study draws (``drawn``); none where it draws none.

    Points of an additive recurrence with irrational steps: each further point lies in the largest
    gaps of those before it, so any first part of the list is a design as well. One coordinate per
    range, one for the crossed categories, one for the multiple that sizes are rounded to. Raises
    Misfit when no ranges are declared, or they hold too few problems that constraints allow.
    """
    if study.drawn is None:
        return []
    if study.blind is None:
        raise Misfit("drawn", "has no ranges to draw from: declare them (blind.parameters)")
    part, found = measured_part(study, spec), dict[tuple[Value, ...], Problem]()
    narrowed = Part(part[ONLY], tuple(part.get(CONSTRAINTS, ()))).of(spec)
    tried, first = MOST_TRIED * study.drawn.problems, baseline(spec)
    for problem in itertools.islice(_points(study.drawn, study.blind.parameters, spec), tried):
        whole = spec.broken(problem) is None and feasible(spec, problem, first)
        fits = problem if whole else nearest_problem(spec, problem, [first])
        key = tuple((fits or {}).values())
        if fits is None or key in found or not study.blind.holds(fits):
            continue
        if Draws(narrowed, fits, None, 0).any() is not None:
            found[key] = fits
        if len(found) == study.drawn.problems:
            return list(found.values())
    message = f"{len(found)} of {tried} points of blind.parameters meet the constraints"
    raise Misfit("drawn.problems", f"{message}: narrow the ranges, or draw fewer")


def drawn_blocks(studies: Sequence[Study], spec: Spec) -> list[dict[str, Any]]:
    """Problem blocks that measure what studies of one workload draw, in an order of which any first
    part has the same share of each study."""
    blocks = [
        ((place + 1) / len(study.spread), {**{key: [one] for key, one in problem.items()}, **part})
        for study in studies
        for part in [measured_part(study, spec)]
        for place, problem in enumerate(study.spread)
    ]
    return [block for _, block in sorted(blocks, key=lambda one: one[0])]


def _points(drawn: Drawn, values: Mapping[str, Any], spec: Spec) -> Iterator[Problem]:
    ranges = {name: one for name, one in values.items() if isinstance(one, Range)}
    lists = {name: one for name, one in values.items() if not isinstance(one, Range)}
    crossed = [dict(zip(lists, each, strict=True)) for each in itertools.product(*lists.values())]
    steps = _steps(len(ranges) + 2)
    dice = random.Random(drawn.seed)
    start = [dice.random() for _ in steps]
    for number in itertools.count():
        *places, kind, multiple = (
            (one + number * step) % 1 for one, step in zip(start, steps, strict=True)
        )
        most = _chosen(drawn.multiples, multiple)
        steps_of_sizes = [each for each in drawn.multiples if each <= most]
        sizes = zip(ranges.items(), places, strict=True)
        problem = {
            name: _rounded(size_at(one, at), steps_of_sizes, one) for (name, one), at in sizes
        }
        problem |= _chosen(crossed, kind)
        yield {name: problem[name] for name in spec.problem}


def _steps(count: int) -> list[float]:
    """Steps of the recurrence in ``count`` dimensions: powers of 1 / x with x ** (count + 1) ==
    x + 1, which leave the most even gaps (the golden ratio in one dimension)."""
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (count + 1))
    return [root ** -(place + 1) for place in range(count)]


def _chosen(values: Sequence[Any], place: float) -> Any:
    return values[min(int(place * len(values)), len(values) - 1)]


def size_at(limits: Range, place: float) -> int:
    """The size at a place between 0 and 1 of a range."""
    if limits.scale == "linear":
        wanted = limits.minimum + place * (limits.maximum - limits.minimum)
    else:
        low, high = math.log(limits.minimum), math.log(limits.maximum)
        wanted = math.exp(low + place * (high - low))
    return min(max(round(wanted), limits.minimum), limits.maximum)


def _rounded(size: int, multiples: Sequence[int], limits: Range) -> int:
    """A multiple near ``size``, of the largest number that leaves small sizes apart."""
    step = max((each for each in multiples if COARSEST * each <= size), default=1)
    rounded = step * round(size / step)
    return rounded if limits.minimum <= rounded <= limits.maximum else size
