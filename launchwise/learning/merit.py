"""Figures of merit, as pure functions of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

HARM_PERCENT = 2.0
"""A recommendation that takes longer than the usual choice by more than this does harm, %."""


def geometric_mean(values: Sequence[float] | np.ndarray) -> float:
    """Geometric mean of values of at least 0 (0 when one of them is); NaN of none."""
    array = np.asarray(values, dtype=float)
    if not len(array):
        return float("nan")
    if (array <= 0).any():
        return 0.0
    return float(np.exp(np.log(array).mean()))


def improvement_coefficient(baseline_ms: np.ndarray, recommended_ms: np.ndarray) -> float:
    """Mean over problems of t(baseline) / t(recommended), after da Silva, Gomi and Senger.

    A recommendation without a time (NaN: it failed or was never measured) counts as 0.
    """
    ratios = np.asarray(baseline_ms, dtype=float) / np.asarray(recommended_ms, dtype=float)
    return float(np.nan_to_num(ratios, nan=0.0).mean()) if len(ratios) else float("nan")


def percent_improved(improvements: np.ndarray) -> float:
    """Percentage of problems with t(baseline) / t(recommended) > 1; what has no time is none."""
    array = np.asarray(improvements, dtype=float)
    return float(100 * (array > 1).mean()) if len(array) else float("nan")


def improved_runs(recommended_ms: np.ndarray, baseline_ms: np.ndarray) -> float:
    """Chance that a repeat of the recommended configuration beats a repeat of the baseline.

    The published study pairs 3 runs of each; here every repeat meets every other, so the order of
    the runs has no part in it. NaN when either has none.
    """
    if not len(recommended_ms) or not len(baseline_ms):
        return float("nan")
    return float((np.asarray(recommended_ms)[:, None] < np.asarray(baseline_ms)[None, :]).mean())


def draws_weights(count: int, draws: int) -> np.ndarray:
    """Chance that the i-th smallest of ``count`` values is the smallest of ``draws`` of them.

    Drawn without replacement: C(count - i, draws - 1) / C(count, draws), i from 1. Returns float64,
    shape (count,), sums to 1.

    Parameters
    ----------
    count
        At least 1.
    draws
        At least 1; as many as there are values when larger.
    """
    draws = min(draws, count)
    # Ratio of neighbours: (count - i - draws + 1) / (count - i), so that nothing overflows.
    left = np.arange(count - 1, 0, -1, dtype=float)  # count - i for i = 1 .. count - 1
    ratios = np.maximum(left - draws + 1, 0) / left
    return draws / count * np.concatenate([[1.0], np.cumprod(ratios)])


def expected_best(times: np.ndarray, draws: int) -> float:
    """Expected smallest of ``draws`` values taken at random from ``times``, none twice."""
    ordered = np.sort(np.asarray(times, dtype=float))
    return float(draws_weights(len(ordered), draws) @ ordered)


def chance_below(times: np.ndarray, limit: float, draws: int) -> float:
    """Chance that the smallest of ``draws`` random values of ``times`` is below ``limit``."""
    ordered = np.sort(np.asarray(times, dtype=float))
    return float(draws_weights(len(ordered), draws)[ordered < limit].sum())


def null_accuracy(classes: Sequence[Hashable]) -> float:
    """Accuracy (0..1) of always answering the most frequent class; NaN of none."""
    if not len(classes):
        return float("nan")
    return Counter(classes).most_common(1)[0][1] / len(classes)
