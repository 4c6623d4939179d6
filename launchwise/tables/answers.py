"""Answers of a sweep: the fastest configuration of each problem, beside the default."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.tables.rows import fastest_rows, is_baseline
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.parts import Value
from launchwise.workloads.space import launch, used
from launchwise.workloads.spec import Spec

TIE = 2.0
"""Standard errors of a difference within which two times are a tie."""


@dataclass(frozen=True)
class Outcome:
    """Configurations of one problem that have the same status."""

    # Their number.
    count: int
    # The most frequent reason, '' where rows of this status have none. Reasons that differ only in
    # numbers count as one; this is the first of them.
    reason: str
    # Number of configurations with such a reason.
    alike: int
    # One of them: the variant, and every tunable that it has, to their values.
    configuration: dict[str, Value]


@dataclass(frozen=True)
class Answer:
    """The fastest configuration of one problem on one GPU."""

    # Problem parameter to its value.
    problem: dict[str, Value]
    # The variant, and every tunable that it has, to their values; None when nothing was timed.
    configuration: dict[str, Value] | None
    # Median time, ms, and its relative standard error.
    time_ms: float | None
    relative_error: float | None
    # Time of the default configuration, ms; None when it was not timed.
    baseline_ms: float | None
    # Other configurations that are slower by less than two standard errors of the difference.
    tied: int
    # Least traffic of the problem divided by ``time_ms``, GB/s.
    bandwidth_gbs: float | None
    # Threads per block and blocks per grid in x, y, z; None for work that the host drives.
    block: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None
    # Status to its number of configurations.
    statuses: dict[str, int]
    # Status to what it is about; for every status but ``ok``.
    outcomes: dict[str, Outcome]

    @property
    def speedup(self) -> float | None:
        """Time of the default divided by ``time_ms``."""
        if self.baseline_ms is None or self.time_ms is None:
            return None
        return self.baseline_ms / self.time_ms

    def as_facts(self) -> dict[str, Any]:
        """As a JSON file holds it."""
        return {**asdict(self), "speedup": self.speedup}


def answers(rows: pd.DataFrame, spec: Spec) -> list[Answer]:
    """Answer of every problem of a sweep on one GPU, in the order of the sweep.

    Parameters
    ----------
    rows
        A table of :func:`launchwise.tables.measurements.measurement_schema`.
    """
    grouped = rows.groupby(spec.problem_columns, sort=False)
    return [
        _answer(dict(zip(spec.problem_columns, values, strict=True)), own, spec)
        for values, own in grouped
    ]


def _answer(problem: Mapping[str, Any], rows: pd.DataFrame, spec: Spec) -> Answer:
    plain = {name: _plain(value) for name, value in problem.items()}
    statuses = {str(name): int(count) for name, count in rows["status"].value_counts().items()}
    outcomes = {
        name: _outcome(rows[rows["status"] == name], spec) for name in statuses if name != "ok"
    }
    measured = rows[rows["status"].isin(MEASURED)]
    default = measured[is_baseline(measured, spec)]["time_ms"]
    baseline_ms = float(default.iloc[0]) if len(default) else None
    # A slow row is a single launch, far from the best.
    timed = measured[measured["status"] == "ok"]
    if timed.empty:
        return Answer(plain, None, None, None, baseline_ms, 0, None, None, None, statuses, outcomes)
    best = fastest_rows(timed, spec.problem_columns, spec).iloc[0]
    whole = {name: _plain(best[name]) for name in spec.tunable_columns}
    block, grid = _launched(spec, plain, whole)
    return Answer(
        problem=plain,
        configuration=used(whole, spec),
        time_ms=float(best["time_ms"]),
        relative_error=_number(best["relative_error"]),
        baseline_ms=baseline_ms,
        tied=_tied(timed, best),
        bandwidth_gbs=_number(best["bandwidth_gbs"]),
        block=block,
        grid=grid,
        statuses=statuses,
        outcomes=outcomes,
    )


_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def _outcome(rows: pd.DataFrame, spec: Spec) -> Outcome:
    kinds = rows["reason"].astype(str).str.replace(_NUMBERS, "#", regex=True)
    (most, alike), *_ = Counter(kinds).most_common(1)
    first = rows[kinds == most].iloc[0]
    whole = {name: _plain(first[name]) for name in spec.tunable_columns}
    return Outcome(len(rows), str(first["reason"]), alike, used(whole, spec))


def _tied(timed: pd.DataFrame, best: pd.Series) -> int:
    errors = (timed["time_ms"] * timed["relative_error"].fillna(0)).to_numpy(dtype=float)
    own = float(best["time_ms"]) * (_number(best["relative_error"]) or 0.0)
    excess = timed["time_ms"].to_numpy(dtype=float) - float(best["time_ms"])
    return int((excess <= TIE * np.hypot(errors, own)).sum()) - 1


def _launched(
    spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]:
    """Block and grid; None if the host drives the work or the sweep is imported."""
    variant = spec.variants[str(configuration["variant"])]
    if not spec.arguments or variant.block is None or variant.kernels:
        return None, None
    return launch(spec, problem, configuration)


def _plain(value: Any) -> Value:
    return value.item() if isinstance(value, np.generic) else value


def _number(value: Any) -> float | None:
    return float(value) if pd.notna(value) else None
