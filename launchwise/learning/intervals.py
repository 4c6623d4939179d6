"""Bootstrap intervals of means over test problems, and of their ratios.

Problems are drawn with replacement (Efron, 1979), and each is drawn with all its GPUs: the same
problem on two GPUs is not a second problem. Methods are compared on the same draws, problem by
problem, so that what makes a problem hard for all does not widen the interval of their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

RESAMPLES = 2000
SHARE = 0.95
"""Share of the resampled means that an interval holds."""

FEWEST = 5
"""Fewest problems of an interval: of fewer, the resampled means say nothing."""

LEAST_FRACTION = 1e-6
"""Logarithm of the speed of a recommendation without a time."""


@dataclass(frozen=True)
class Means:
    """Resampled geometric means of methods over the same problems."""

    # Their names.
    methods: list[str]
    # Logarithms of the means: float64, shape (resamples, methods); no resample where there are
    # fewer than `FEWEST` problems.
    logs: np.ndarray

    def interval(self, method: str) -> tuple[float, float] | None:
        """Interval of the geometric mean of a method."""
        return self._interval(self._of(method))

    def ratio(self, method: str, other: str) -> tuple[float, float] | None:
        """Interval of a method's geometric mean divided by another's."""
        return self._interval(self._of(method) - self._of(other))

    def _of(self, method: str) -> np.ndarray:
        return self.logs[:, self.methods.index(method)]

    @staticmethod
    def _interval(logs: np.ndarray) -> tuple[float, float] | None:
        if not len(logs):
            return None
        low, high = np.exp(np.quantile(logs, [(1 - SHARE) / 2, (1 + SHARE) / 2]))
        return float(low), float(high)


def resampled_means(rows: pd.DataFrame, problem_columns: list[str], seed: int) -> Means:
    """Resample the problems of an evaluation.

    Raises ValueError when a model lacks a (GPU, problem) that another has.

    Parameters
    ----------
    rows
        ``model``, ``gpu``, problem and ``fraction``: every model for the same (GPU, problem).
    problem_columns
        Columns of the problem. Where all rows are of one problem, GPUs are drawn instead.
    """
    table = rows.pivot(index=["gpu", *problem_columns], columns="model", values="fraction")
    if table.isna().any(axis=None):
        raise ValueError("the models were not evaluated on the same problems")
    logs = np.log(np.maximum(table.to_numpy(dtype=float), LEAST_FRACTION))
    units = (
        table.index.to_frame(index=False).groupby(problem_columns, sort=False).ngroup().to_numpy()
    )
    if units.max(initial=0) == 0:
        units = np.arange(len(table))
    count = int(units.max(initial=-1)) + 1
    methods = [str(name) for name in table.columns]
    if count < FEWEST:
        return Means(methods, np.empty((0, len(methods))))
    sums = np.zeros((count, len(methods)))
    np.add.at(sums, units, logs)
    sizes = np.bincount(units).astype(float)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    return Means(methods, (drawn @ sums) / (drawn @ sizes)[:, None])
