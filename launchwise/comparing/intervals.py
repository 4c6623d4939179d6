"""Intervals of the ratio of two run times, from the repeats of both."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy import stats

LEAST_REPEATS = 3
"""Fewest repeats on either side for an interval: two may agree by chance."""


def ratio_intervals(
    old: Sequence[np.ndarray], new: Sequence[np.ndarray], confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """Limits of new / old for each row.

    Student's interval of two samples, of the logarithms of the repeats. Its pooled variance is what
    three repeats allow: a rank test of 3 against 3 repeats never reaches 95 %, and Welch's interval
    is too narrow for 3 repeats against 25.

    Parameters
    ----------
    old, new
        Repeats of each row, ms (> 0), of any number.
    confidence
        Between 0 and 1.

    Returns
    -------
    low, high
        float64, shape (rows,); NaN where a side has fewer than :data:`LEAST_REPEATS`.
    """
    sizes = np.array([[len(one), len(other)] for one, other in zip(old, new, strict=True)])
    low, high = np.full(len(sizes), np.nan), np.full(len(sizes), np.nan)
    if not len(sizes):
        return low, high
    logs = [_flat_logs(side) for side in (old, new)]
    # One call for all rows with the same numbers of repeats: scipy has no ragged samples.
    for pair in np.unique(sizes[sizes.min(axis=1) >= LEAST_REPEATS], axis=0):
        rows = np.flatnonzero((sizes == pair).all(axis=1))
        before, after = (
            values[starts[rows, None] + np.arange(count)]
            for (values, starts), count in zip(logs, pair, strict=True)
        )
        with warnings.catch_warnings():
            # Equal repeats have no spread, and their interval no width.
            warnings.simplefilter("ignore", RuntimeWarning)
            test = stats.ttest_ind(after, before, axis=1)
            limits = test.confidence_interval(confidence)
        low[rows], high[rows] = np.exp(limits.low), np.exp(limits.high)
    return low, high


def _flat_logs(side: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of all repeats one after another, and where those of each row begin."""
    counts = np.array([len(times) for times in side])
    flat = np.concatenate([np.asarray(times, dtype=float) for times in side])
    return np.log(flat), np.cumsum(counts) - counts
