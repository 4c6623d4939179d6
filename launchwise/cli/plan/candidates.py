"""Problems that a GPU may measure next, each with its rows and the time that they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from launchwise.experiment.experiment import Experiment
from launchwise.experiment.method import ProblemBlock
from launchwise.experiment.study import ProblemSplit, Study
from launchwise.learning.design.landscapes import Distances
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case, case_numbers, cases_in
from launchwise.tables.rows import matches
from launchwise.workflow.cluster import PASSES_PER_ROW, SECONDS_PER_ROW
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


@dataclass(frozen=True)
class RowTime:
    """Time per row: a part of its own, and one per byte of the problem."""

    # The first, s.
    seconds: float
    # The second, s/B.
    per_byte: float

    @classmethod
    def estimated(cls, bandwidth_gbs: float) -> Self:
        """As :mod:`launchwise.workflow.cluster` has it, of a memory bandwidth (1e9 B/s)."""
        return cls(SECONDS_PER_ROW, PASSES_PER_ROW / (bandwidth_gbs * 1e9))

    @classmethod
    def of_sweep(cls, rows: pd.DataFrame, spec: Spec, bandwidth_gbs: float) -> Self:
        """Least squares of the times between rows of a sweep; estimated where it has few.

        Parameters
        ----------
        rows
            All rows of a GPU, failed ones included, with ``card`` and ``measured_at``.
        """
        if rows.empty:
            return cls.estimated(bandwidth_gbs)
        cases = cases_in(rows, spec)
        totals = np.bincount(case_numbers(rows, spec), _seconds_before(rows), len(cases))
        counts = np.bincount(case_numbers(rows, spec), minlength=len(cases))
        if len(cases) < FEWEST_PROBLEMS or not totals.any():
            return cls.estimated(bandwidth_gbs)
        moved = np.array([_bytes(spec, case.problem) for case in cases])
        # Per row, so that long problems do not drown short ones; bytes in units of their mean.
        unit = moved.mean() or 1.0
        terms = np.column_stack([np.ones(len(cases)), moved / unit])
        (seconds, per_unit), _ = nnls(terms, totals / counts)
        return cls(float(seconds), float(per_unit / unit))

    def minutes(self, spec: Spec, problem: Problem, rows: int) -> float:
        """Time of a problem with so many rows, min."""
        return rows * (self.seconds + self.per_byte * _bytes(spec, problem)) / 60


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
    """A case that may be measured."""

    case: Case
    # Problem blocks that measure it.
    blocks: list[dict[str, Any]]
    # Configurations.
    rows: int
    # Estimated time.
    minutes: float


def candidates_on(
    gpu: str,
    targets: Sequence[Case],
    rows: pd.DataFrame | None,
    study: Study,
    domain: Domain,
    experiment: Experiment,
) -> list[Candidate]:
    """Problems that a GPU has not measured, and that a split of the study may learn from.

    Parameters
    ----------
    targets
        Drawn problems; those that the sweep lists for the study join them.
    rows
        What the GPU has measured; None before its first sweep.

    Raises
    ------
    UserError
        When the strategy of the sweep does not say how many rows a problem has.
    """
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
    measured = pd.DataFrame() if rows is None else rows
    cost = RowTime.of_sweep(measured, spec, profile.memory_bandwidth_gbs)
    found = []
    for case, distances in zip(asked, apart, strict=True):
        nearest = listed[int(np.argmin(distances))].problem
        blocks, count = _measured_as(nearest, case, study, domain, experiment)
        if count:
            minutes = max(cost.minutes(spec, case.problem, count), 1e-6)
            found.append(Candidate(case, blocks, count, minutes))
    return found


def _measured_as(
    nearest: Problem, case: Case, study: Study, domain: Domain, experiment: Experiment
) -> tuple[list[dict[str, Any]], int]:
    """Blocks that measure a case as the sweep measures its nearest problem, and their rows."""
    spec, strategy = domain.spec, experiment.sweeps[study.workload].strategy
    if strategy.kind != "exhaustive":
        if strategy.budget is None:
            message = "give a budget: without one no problem has a number of rows to plan with"
            raise experiment.error(f"sweeps.{study.workload}.strategy", message)
        return [{name: [value] for name, value in case.problem.items()}], strategy.budget
    listed = experiment.blocks_of(case.gpu, study.workload)
    blocks = blocks_like(nearest, case.problem, listed, spec, study)
    facts = gpu_facts(domain.profiles[case.gpu].model_dump())
    part = narrowings(spec, blocks)[tuple(case.problem.values())]
    return blocks, len(configurations(spec, case.problem, facts, part))


def lean(candidate: Candidate, spec: Spec) -> Candidate:
    """The same without blocks that measure nothing beside the others."""
    if len(candidate.blocks) < 2:
        return candidate
    problem = candidate.case.problem

    def count(blocks: list[dict[str, Any]]) -> int:
        part = narrowings(spec, blocks)[tuple(problem.values())]
        return len(configurations(spec, problem, None, part))

    kept: list[dict[str, Any]] = []
    for block in sorted(candidate.blocks, key=lambda each: -count([each])):
        if not kept or count([*kept, block]) > count(kept):
            kept.append(block)
    return replace(candidate, blocks=kept)


def blocks_like(
    nearest: Problem, problem: Problem, blocks: Sequence[ProblemBlock], spec: Spec, study: Study
) -> list[dict[str, Any]]:
    """Blocks that measure a problem as those of another do, candidates of the study alone.

    Parameters
    ----------
    nearest
        A problem of ``blocks``.
    blocks
        What the sweep measures.
    """
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
    """Values that training selections need so that a split learns from a problem.

    Returns
    -------
    dict
        Split to parameter to its values, of the first split that may take the problem; empty where
        one asks about it already. None where every split would then test what it learns from.
    """
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
