"""Tukey filter (Exploratory Data Analysis, 1977), for rows of a sweep and repeats of a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MIN_SAMPLE_SIZE = 4
"""Minimum sample size for quartiles."""


def quartile_fences(
    values: Sequence[float] | np.ndarray, factor: float = 1.5
) -> tuple[float, float]:
    """Lower and upper bound: ``factor`` interquartile ranges beyond the quartiles.

    Parameters
    ----------
    values
        Real numbers, shape (n,), n > 0; quartiles by linear interpolation.
    """
    low, high = fences_of_rows(np.asarray(values)[None, :], factor)
    return float(low[0]), float(high[0])


def fences_of_rows(values: np.ndarray, factor: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """:func:`quartile_fences` of each row of ``values``, shape (rows, n); both of shape (rows,)."""
    first, third = np.quantile(values, [0.25, 0.75], axis=1)
    reach = factor * (third - first)
    return first - reach, third + reach
