"""Checks studies and problem blocks against their workload; draws the problems of their ranges."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from launchwise.base.errors import Misfit, check_known
from launchwise.base.expressions import check_names
from launchwise.base.names import assigned
from launchwise.experiment.method import ProblemBlock
from launchwise.experiment.study import Blind, Drawn, Range, Study, StudyFile, TransferSplit
from launchwise.gpus.profile import FEATURES_OF_GPU
from launchwise.workloads.checks.fitting_sizes import nearest_problem
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.metrics import STATUSES
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import (
    CONSTRAINTS,
    LENIENT_GPU,
    ONLY,
    Part,
    Problem,
    baseline,
    feasible,
    problems,
)
from launchwise.workloads.spec import Spec


def check_study(study: Study, spec: Spec) -> None:
    """Check what a study names of the workload: candidates, constraints, features, splits. Raises
    Misfit at the first that is not."""
    _check_configurations(spec, study.candidates, "candidates")
    for variant in study.candidates.get("variant", []):
        if not spec.variants[str(variant)].verified:
            message = f"{variant!r} is not verified: it cannot be recommended"
            raise Misfit("candidates.variant", message)
    _check_expressions(spec, study.constraints, "constraints")
    for name, when in study.peer_kinds.items():
        check_names(f"peer_kinds.{name}", when, spec.problem)
    for name, design in study.designs.items():
        _check_configurations(spec, design.candidates, f"designs.{name}.candidates")
        _check_expressions(spec, design.constraints, f"designs.{name}.constraints")
    if spec.features:
        known = [*spec.features, *FEATURES_OF_GPU]
        check_known("features", "feature", study.features or [], known)
    if study.counters is not None:
        check_known("counters.by", "tunable", study.counters.by, spec.tunable_columns)
        _check_selection(spec, study.counters.among, "counters.among")
    for gpu, left_out in study.leave_out.items():
        _check_selection(spec, left_out, f"leave_out.{gpu}")
    for name, split in study.splits.items():
        parts = ("among",) if isinstance(split, TransferSplit) else ("train", "test")
        for part in parts:
            _check_selection(spec, getattr(split, part), f"splits.{name}.{part}")
    if study.blind is not None:
        _check_blind(study.blind, spec)


def _check_blind(blind: Blind, spec: Spec) -> None:
    check_known("blind.parameters", "problem parameter", blind.parameters, spec.problem)
    for name in spec.problem:
        if name not in blind.parameters:
            raise Misfit("blind.parameters", f"{name} is missing")
        values = blind.parameters[name]
        # Sizes drawn from a range are moved to the nearest that fit.
        check = (
            spec.problem[name].check
            if isinstance(values, Range)
            else partial(spec.check_value, name)
        )
        ends = [values.minimum, values.maximum] if isinstance(values, Range) else values
        for value in ends:
            if complaint := check(value):
                raise Misfit(f"blind.parameters.{name}", complaint)


def check_splits(study: Study, measured: Collection[Problem]) -> None:
    """Check that a sweep holds problems of both parts of each split.

    ``measured``: problems that the GPUs of the study measure.
    Raises Misfit at the first part without any.
    """
    for name, split in study.splits.items():
        if isinstance(split, TransferSplit):
            continue
        for part in ("train", "test"):
            chosen = getattr(split, part)
            if any(
                all(problem[key] in values for key, values in chosen.items())
                for problem in measured
            ):
                continue
            listed = {key: sorted({problem[key] for problem in measured}) for key in chosen}
            known = "; ".join(f"{key}: {', '.join(map(str, each))}" for key, each in listed.items())
            raise Misfit(f"splits.{name}.{part}", f"the sweep measures none of them ({known})")


def _check_selection(spec: Spec, chosen: Mapping[str, Any], key: str) -> None:
    check_known(key, "problem parameter", chosen, spec.problem)
    for column, values in chosen.items():
        for value in values:
            if complaint := spec.problem[column].check(value):
                raise Misfit(f"{key}.{column}", complaint)


def _check_configurations(spec: Spec, chosen: Mapping[str, Any], key: str) -> None:
    check_known(key, "tunable", chosen, spec.tunable_columns)
    for column, values in chosen.items():
        check_known(f"{key}.{column}", "value", values, spec.values_of(column))


def _check_expressions(spec: Spec, texts: Iterable[str], key: str) -> None:
    known = [*spec.problem_columns, *spec.tunable_columns, *spec.derived]
    for text in texts:
        check_names(key, text, known)


def check_blocks(spec: Spec, blocks: Iterable[ProblemBlock], strategy: str) -> None:
    """Check problem blocks against the workload and the strategy of the sweep. Raises Misfit at the
    first that does not; its key begins with a full stop, or is empty."""
    for block in blocks:
        for name, values in block.items():
            if isinstance(values, dict) != (name == ONLY):
                kind = "tunables with their values" if name == ONLY else "a list of values"
                raise Misfit(f".{name}", f"must be {kind}")
        for name in (ONLY, CONSTRAINTS):
            if name in block and strategy != "exhaustive":
                raise Misfit(f".{name}", f"needs an exhaustive sweep, not {strategy}")
        only = block.get(ONLY)
        if isinstance(only, dict):
            _check_configurations(spec, only, f".{ONLY}")
        _check_expressions(spec, map(str, block.get(CONSTRAINTS, [])), f".{CONSTRAINTS}")
    try:
        problems(spec, blocks)
    except ValueError as error:
        raise Misfit("", str(error)) from error


STATUS = "status"  # Column of measurements that a selection of rows may name beside the key's


def check_rows(spec: Spec, chosen: Iterable[Mapping[str, Any]]) -> None:
    """Check that selections of rows use known columns with legal values. Raises Misfit at the first
    that does not; its key is empty or begins with a full stop."""
    columns = [*spec.problem_columns, *spec.tunable_columns, STATUS]
    for selection in chosen:
        check_known("", "column", selection, columns)
        check_known(f".{STATUS}", "status", selection.get(STATUS, []), STATUSES)
        problem = {name: each for name, each in selection.items() if name in spec.problem}
        tunables = {name: each for name, each in selection.items() if name in spec.tunable_columns}
        _check_selection(spec, problem, "")
        _check_configurations(spec, tunables, "")


def check_space(spec: Spec, listed: Iterable[Problem], every_variant: bool = True) -> None:
    """Check that the baseline is feasible for every problem, and every variant for some problem.

    The baseline must run on every GPU, a variant on the newest at least.

    ``every_variant``: whether a variant that is infeasible for every problem is an error.
    Raises ValueError when a constraint leaves nothing or refuses the baseline, or an expression has
    no value.
    """
    # Drawn, not listed: a space may be far too large for that.
    first = baseline(spec)
    idle = dict.fromkeys(spec.variants)
    for problem in listed:
        work = spec.work
        for text in (work.items, work.bytes, work.flop, work.footprint_bytes, work.host_bytes):
            spec.value(text, problem)
        if not feasible(spec, problem, first):
            named = assigned(problem)
            nearest = nearest_problem(spec, problem, [first])
            near = "" if nearest is None else f"; it may run {assigned(nearest)}"
            if Draws(spec, problem, None, 0).any():
                raise ValueError(f"baseline: violates the constraints for {named}{near}")
            near = near.replace("it", "the baseline", 1)
            raise ValueError(f"no configuration satisfies the constraints for {named}{near}")
        if idle:
            draws = Draws(spec, problem, LENIENT_GPU, 0)
            for variant in list(idle):
                if configuration := draws.any(variant):
                    launch_shapes(spec, problem, configuration, exact=False)
                    del idle[variant]
    if idle and every_variant:
        key = f"variants.{next(iter(idle))}.constraints"
        raise ValueError(f"{key}: no configuration of any problem satisfies them")


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
