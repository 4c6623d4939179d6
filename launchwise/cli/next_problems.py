"""Problems that a GPU may measure next, each with its rows and the time that they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import ProblemBlock
from launchwise.experiment.study import ProblemSplit, Study
from launchwise.learning.features import Domain
from launchwise.learning.kriging import Distances
from launchwise.learning.splits import Case, case_numbers, cases_in
from launchwise.tables.rows import matches
from launchwise.workflow.sweeps import PASSES_PER_ROW, SECONDS_PER_ROW
from launchwise.workloads.space import (
    CONSTRAINTS,
    ONLY,
    Problem,
    configurations,
    gpu_facts,
    narrowings,
    problems,
)
from launchwise.workloads.spec import Spec

LONGEST_PAUSE_S = 60.0
"""Longer times between two rows of a card are pauses between visits, and count as this."""

FEWEST_PROBLEMS = 3
"""Measured problems below which the time is estimated from the GPU's bandwidth alone."""


def row_time(rows: pd.DataFrame | None, spec: Spec, bandwidth_gbs: float) -> tuple[float, float]:
    """Time per row, s, and per byte of its problem, s/B. Least squares of the times between rows of
    a sweep; where it has few problems, estimated as :mod:`launchwise.workflow.sweeps` does from a
    memory bandwidth (1e9 B/s). ``rows``: all rows of a GPU, failed ones included, with ``card`` and
    ``measured_at``; None for none."""
    estimated = SECONDS_PER_ROW, PASSES_PER_ROW / (bandwidth_gbs * 1e9)
    cases = [] if rows is None or rows.empty else cases_in(rows, spec)
    if rows is None or len(cases) < FEWEST_PROBLEMS:
        return estimated
    numbers = case_numbers(rows, spec)
    totals = np.bincount(numbers, _seconds_before(rows), len(cases))
    if not totals.any():
        return estimated
    moved = np.array([_bytes(spec, case.problem) for case in cases])
    # Per row, so that long problems do not drown short ones; bytes in units of their mean.
    unit = moved.mean() or 1.0
    terms = np.column_stack([np.ones(len(cases)), moved / unit])
    counts = np.bincount(numbers, minlength=len(cases))
    (seconds, per_unit), _ = nnls(terms, totals / counts)
    return float(seconds), float(per_unit / unit)


def _bytes(spec: Spec, problem: Problem) -> float:
    return float(spec.value(spec.work.bytes, problem))


def _seconds_before(rows: pd.DataFrame) -> np.ndarray:
    """Time from the row before, on the same card, to each row: s, shape (rows,); 0 of the first."""
    times = pd.to_datetime(rows["measured_at"], utc=True, errors="coerce", format="ISO8601")
    found = pd.Series(0.0, index=rows.index)
    for _, own in times.groupby(rows["card"].to_numpy()):
        ordered = own.sort_values(kind="stable")
        found[ordered.index] = ordered.diff().dt.total_seconds()
    return np.clip(found.fillna(0.0).to_numpy(), 0.0, LONGEST_PAUSE_S)


@dataclass(frozen=True)
class Candidate:
    case: Case
    blocks: list[dict[str, Any]]  # problem blocks that measure it
    rows: int  # configurations
    minutes: float  # estimated time


def candidates_on(
    gpu: str,
    targets: Sequence[Case],
    rows: pd.DataFrame | None,
    study: Study,
    domain: Domain,
    experiment: Experiment,
) -> list[Candidate]:
    """Problems that a GPU has not measured, and that a split of the study may learn from.
    ``targets``: drawn problems; those that the sweep lists for the study join them. ``rows``: what
    the GPU has measured; None before its first sweep. Raises UserError when the strategy of the
    sweep does not say how many rows a problem has."""
    spec, profile = domain.spec, domain.profiles[gpu]
    swept = [Case(gpu, each) for each in experiment.problems_of(gpu, study.workload)]
    listed = [case for case in swept if trained_on(study, case.problem) == {}] or swept
    known = {case.key for case in cases_in(rows, spec)} if rows is not None else set()
    asked = [
        case
        for case in {case.key: case for case in (*listed, *targets)}.values()
        if case.key not in known and trained_on(study, case.problem) is not None
    ]
    if not asked:
        return []
    apart = Distances.over([*listed, *asked]).between(asked, listed).sum(axis=0)
    seconds, per_byte = row_time(rows, spec, profile.memory_bandwidth_gbs)
    found = []
    for case, distances in zip(asked, apart, strict=True):
        nearest = listed[int(np.argmin(distances))].problem
        blocks, count = _measured_as(nearest, case, study, domain, experiment)
        if count:
            minutes = count * (seconds + per_byte * _bytes(spec, case.problem)) / 60
            found.append(Candidate(case, blocks, count, max(minutes, 1e-6)))
    return found


def _measured_as(
    nearest: Problem, case: Case, study: Study, domain: Domain, experiment: Experiment
) -> tuple[list[dict[str, Any]], int]:
    """Blocks that measure a case as the sweep measures its nearest problem, and their rows."""
    spec, strategy = domain.spec, experiment.sweeps[study.workload].strategy
    if strategy.searches:
        if strategy.budget is None:
            message = "give a budget: without one no problem has a number of rows to plan with"
            raise experiment.error(f"sweeps.{study.workload}.strategy", message)
        return [{name: [value] for name, value in case.problem.items()}], strategy.budget
    listed = experiment.blocks_of(case.gpu, study.workload)
    blocks = blocks_like(nearest, case.problem, listed, spec, study)
    facts = gpu_facts(domain.profiles[case.gpu].model_dump())
    part = narrowings(spec, blocks)[tuple(case.problem.values())]
    return blocks, len(configurations(spec, case.problem, facts, part))


def blocks_like(
    nearest: Problem, problem: Problem, blocks: Sequence[ProblemBlock], spec: Spec, study: Study
) -> list[dict[str, Any]]:
    """Blocks that measure a problem as those of another do, candidates of the study alone.
    ``nearest``: a problem of ``blocks``. ``blocks``: what the sweep measures."""
    values = {name: [value] for name, value in problem.items()}
    found = []
    for block in blocks:
        if nearest not in problems(spec, [block]):
            continue
        narrowed_to: Any = block.get(ONLY, {})
        only = _both(narrowed_to, study.candidates)
        if only is None:
            continue
        constraints = [*block.get(CONSTRAINTS, ()), *study.constraints]
        narrowed: dict[str, Any] = {ONLY: only} if only else {}
        if constraints:
            narrowed[CONSTRAINTS] = list(dict.fromkeys(constraints))
        found.append({**values, **narrowed})
    return found or [dict(values)]


def _both(
    one: Mapping[str, Sequence[Any]], other: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]] | None:
    """Values that both allow; None where a tunable has none."""
    found = {name: list(values) for name, values in {**one, **other}.items()}
    for name in one.keys() & other.keys():
        found[name] = [value for value in one[name] if value in other[name]]
    return found if all(found.values()) else None


def trained_on(study: Study, problem: Problem) -> dict[str, dict[str, list[Any]]] | None:
    """Values that training selections need so that a split learns from a problem. Returns a mapping
    from split to parameter to values, for the first split that may take the problem; empty where
    one asks about it already. None where every split would then test what it learns from."""
    for split in study.splits.values():
        if not isinstance(split, ProblemSplit):
            if matches(problem, split.among):
                return {}
        elif matches(problem, split.train) or matches(problem, split.test):
            return {}
    for name, split in study.splits.items():
        if not isinstance(split, ProblemSplit) or not (key := _told_apart_by(split)):
            continue
        if problem[key] not in split.test[key]:
            return {
                name: {
                    parameter: [*values, problem[parameter]]
                    for parameter, values in split.train.items()
                    if problem[parameter] not in values
                }
            }
    return None


def _told_apart_by(split: ProblemSplit) -> str | None:
    """First parameter of which no value is both trained on and tested; None without one."""
    both = [name for name in split.test if name in split.train]
    return next((name for name in both if not {*split.test[name]} & {*split.train[name]}), None)
