"""Figures of merit as pure functions of numbers, and bootstrap intervals of means over problems.

Problems are drawn with replacement (Efron, 1979), and each is drawn with all its GPUs: the same
problem on two GPUs is not a second problem. Methods are compared on the same draws, problem by
problem, so that what makes a problem hard for all does not widen the interval of their ratio.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

HARM_PERCENT = 2.0
"""A recommendation that takes longer than the usual choice by more than this does harm, %."""


def geometric_mean(
    values: Sequence[float] | np.ndarray, weights: np.ndarray | None = None
) -> float:
    """Geometric mean of values of at least 0 (0 when one of them is); NaN of none.

    ``weights``: how much each counts, such as its launches; alike by default, and where all are 0.
    """
    array = np.asarray(values, dtype=float)
    if weights is not None and np.sum(weights) > 0:
        array, weights = array[weights > 0], weights[weights > 0]
    else:
        weights = None
    if not len(array):
        return float("nan")
    if (array <= 0).any():
        return 0.0
    return float(np.exp(np.average(np.log(array), weights=weights)))


def improvement_coefficient(baseline_ms: np.ndarray, recommended_ms: np.ndarray) -> float:
    """Mean over problems of t(baseline) / t(recommended), after da Silva, Gomi and Senger. A
    recommendation without a time (NaN: it failed or was never measured) counts as 0."""
    ratios = np.asarray(baseline_ms, dtype=float) / np.asarray(recommended_ms, dtype=float)
    return float(np.nan_to_num(ratios, nan=0.0).mean()) if len(ratios) else float("nan")


def percent_improved(improvements: np.ndarray) -> float:
    """Percentage of problems with t(baseline) / t(recommended) > 1; what has no time is none."""
    array = np.asarray(improvements, dtype=float)
    return float(100 * (array > 1).mean()) if len(array) else float("nan")


def improved_runs(recommended_ms: np.ndarray, baseline_ms: np.ndarray) -> float:
    """Chance that a repeat of the recommended configuration beats a repeat of the baseline. The
    published study pairs 3 runs of each; here every repeat meets every other, so the order of the
    runs has no part in it. NaN when either has none."""
    if not len(recommended_ms) or not len(baseline_ms):
        return float("nan")
    return float((np.asarray(recommended_ms)[:, None] < np.asarray(baseline_ms)[None, :]).mean())


def draws_weights(count: int, draws: int) -> np.ndarray:
    """Chance that the i-th smallest of ``count`` values is the smallest of ``draws`` of them. Drawn
    without replacement: C(count - i, draws - 1) / C(count, draws), i from 1. Returns float64, shape
    (count,), sums to 1. ``count``: at least 1. ``draws``: at least 1; as many as there are values
    when larger."""
    draws = min(draws, count)
    # Ratio of neighbours: (count - i - draws + 1) / (count - i), so that nothing overflows.
    left = np.arange(count - 1, 0, -1, dtype=float)  # count - i for i = 1 .. count - 1
    ratios = np.maximum(left - draws + 1, 0) / left
    return draws / count * np.concatenate([[1.0], np.cumprod(ratios)])


def smallest_of_draws(times: np.ndarray, draws: int, limit: float) -> tuple[float, float]:
    """Expected smallest of ``draws`` values taken at random from ``times``, none twice, and the
    chance that it is below ``limit``."""
    ordered = np.sort(np.asarray(times, dtype=float))
    weights = draws_weights(len(ordered), draws)
    return float(weights @ ordered), float(weights[ordered < limit].sum())


def null_accuracy(classes: Sequence[Hashable]) -> float:
    """Accuracy (0..1) of always answering the most frequent class; NaN of none."""
    if not len(classes):
        return float("nan")
    return Counter(classes).most_common(1)[0][1] / len(classes)


RESAMPLES = 2000
SHARE = 0.95  # Share of the resampled means that an interval holds
FEWEST = 5  # Fewest problems of an interval: of fewer, the resampled means say nothing
LEAST_FRACTION = 1e-6  # Logarithm of the speed of a recommendation without a time


def interval_of_mean(values: np.ndarray) -> tuple[float, float]:
    """95 % interval of the geometric mean of positive values, one per problem."""
    count = len(values)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    found = Means._interval(drawn @ np.log(values) / count)
    assert found is not None
    return found


@dataclass(frozen=True)
class Means:
    """Resampled geometric means of methods over the same problems."""

    methods: list[str]  # their names
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

    ``rows``: ``model``, ``gpu``, problem and ``fraction``: every model for the same (GPU, problem);
    maybe ``weight``, how much each counts.
    ``problem_columns``: columns of the problem. Where all rows are of one problem, GPUs are drawn
    instead. Raises ValueError when a model lacks a (GPU, problem) that another has.
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
    weights = np.ones(len(table))
    if "weight" in rows:
        by_case = rows.groupby(["gpu", *problem_columns])["weight"].first()
        weights = by_case.reindex(table.index).to_numpy(dtype=float)
    sums = np.zeros((count, len(methods)))
    np.add.at(sums, units, logs * weights[:, None])
    sizes = np.bincount(units, weights)
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    drawn = drawn[drawn @ sizes > 0]
    return Means(methods, (drawn @ sums) / (drawn @ sizes)[:, None])
