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
    first, third = np.quantile(values, [0.25, 0.75])
    reach = factor * (third - first)
    return float(first - reach), float(third + reach)
