"""Tukey filter (Exploratory Data Analysis, 1977) and robust spread, for rows and for repeats."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

MIN_SAMPLE_SIZE = 4  # Minimum sample size for quartiles


def quartile_fences(
    values: Sequence[float] | np.ndarray, factor: float = 1.5
) -> tuple[float, float]:
    """Lower and upper bound: ``factor`` interquartile ranges beyond the quartiles. ``values``: real
    numbers, shape (n,), n > 0; quartiles by linear interpolation."""
    low, high = fences_of_rows(np.asarray(values)[None, :], factor)
    return float(low[0]), float(high[0])


def fences_of_rows(values: np.ndarray, factor: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """:func:`quartile_fences` of each row of ``values``, shape (rows, n); both of shape (rows,)."""
    first, third = np.quantile(values, [0.25, 0.75], axis=1)
    reach = factor * (third - first)
    return first - reach, third + reach


def robust_spread(values: np.ndarray) -> np.ndarray:
    """Median absolute deviation times 1.4826 of each row of ``values``, shape (rows, n); (rows,).
    For a normal law that is the standard deviation; one disturbed value does not change it."""
    deviations = np.abs(values - np.median(values, axis=1)[:, None])
    return np.asarray(1.4826 * np.median(deviations, axis=1))


def median_error(values: np.ndarray) -> np.ndarray:
    """Relative standard error of the median of each row of ``values``, shape (rows, n); (rows,).
    The median's standard error is 1.2533 times the mean's (for a normal law), and the spread is
    :func:`robust_spread`."""
    error = 1.2533 * robust_spread(values) / math.sqrt(values.shape[1])
    return np.asarray(error / np.median(values, axis=1))
