"""Time that a problem takes to measure on a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from launchwise.learning.splits import case_numbers, cases_in
from launchwise.workflow.estimate import PASSES_PER_ROW, SECONDS_PER_ROW
from launchwise.workloads.space import Problem
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
        """As :mod:`launchwise.workflow.estimate` has it, of a memory bandwidth (1e9 B/s)."""
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
