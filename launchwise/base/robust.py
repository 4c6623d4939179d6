"""Robust statistics of times: the Tukey filter and spread of repeats, ratios of paired times.

The Tukey filter is that of Exploratory Data Analysis (1977). What changes slowly (temperature,
clocks, another user) changes both times of a pair, so their ratio is more reliable than that of two
rows of a sweep.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

MIN_SAMPLE_SIZE = 4  # Minimum sample size for quartiles


def quartile_fences(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Lower and upper bound: 1.5 interquartile ranges beyond the quartiles. ``values``: real
    numbers, shape (n,), n > 0; quartiles by linear interpolation."""
    low, high = fences_of_rows(np.asarray(values)[None, :])
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


LEAST_ROUNDS = 6
"""Fewest rounds whose median has a 95 % interval without assumptions: 1 - 2 / 2^6 = .97."""

EQUAL = 0.02  # Ratios this near to 1 make no difference to anybody

OUTCOMES = ("faster", "slower", "tie", "undecided", "no interval")
FASTER, SLOWER, TIE, UNDECIDED, NO_INTERVAL = OUTCOMES


def outcome(low: float, high: float) -> str:
    """What the interval of a ratio of speeds says. ``faster`` or ``slower`` where it does not hold
    1, ``tie`` only where all of it is within :data:`EQUAL` of 1. Without limits (NaN) it says
    nothing: the ratio is all that is known."""
    if not low <= high:
        return NO_INTERVAL
    if low > 1 or high < 1:
        return FASTER if low > 1 else SLOWER
    return TIE if low >= 1 / (1 + EQUAL) and high <= 1 + EQUAL else UNDECIDED


@dataclass(frozen=True)
class Ratio:
    """Ratio of two times measured in pairs."""

    value: float  # median over the pairs; NaN without any
    # Limits of its 95 % interval; NaN for less than LEAST_ROUNDS pairs.
    low: float
    high: float
    pairs: int  # number of pairs
    thrown: int  # how many were discarded: at different clocks, or on a hindered card

    @property
    def half_width(self) -> float:
        """Half the width of the interval relative to the ratio; infinite without an interval."""
        width = (self.high - self.low) / (2 * self.value) if self.pairs else np.nan
        return float(width) if np.isfinite(width) else float("inf")


def paired_ratio(
    reference_ms: Sequence[float] | np.ndarray,
    times_ms: Sequence[float] | np.ndarray,
    reference_mhz: Sequence[float] | np.ndarray,
    clocks_mhz: Sequence[float] | np.ndarray,
    clock_tolerance: float,
    hindered: Sequence[bool] | np.ndarray | None = None,
) -> Ratio:
    """Ratio of two configurations' times over the same rounds.

    The interval of the median is that of the sign test (Conover, Practical Nonparametric
    Statistics, 1999, section 3.2): it assumes nothing of how times are distributed.

    ``reference_ms``, ``times_ms``: times of both, ms, shape (rounds,). ``reference_mhz``,
    ``clocks_mhz``: SM clocks while they ran, MHz, shape (rounds,); 0 where unknown.
    ``clock_tolerance``: relative difference of clocks above which a pair is discarded, if both are
    known. ``hindered``: rounds, shape (rounds,), in which something from outside held the card
    back: their pairs are discarded as well, because a kernel that computes loses more by a low
    clock than one that waits for memory. Raises ValueError when the shapes differ.
    """
    times = [np.asarray(each, dtype=float) for each in (reference_ms, times_ms)]
    clocks = [np.asarray(each, dtype=float) for each in (reference_mhz, clocks_mhz)]
    if len({each.shape for each in (*times, *clocks)}) != 1:
        raise ValueError("every round needs two times and two clocks")
    known = (clocks[0] > 0) & (clocks[1] > 0)
    largest = np.maximum(clocks[0], clocks[1])
    kept = ~known | (np.abs(clocks[0] - clocks[1]) <= clock_tolerance * largest)
    if hindered is not None:
        kept &= ~np.asarray(hindered, dtype=bool)
    ratios = times[0][kept] / times[1][kept]
    thrown = int((~kept).sum())
    if not len(ratios):
        return Ratio(np.nan, np.nan, np.nan, 0, thrown)
    value = float(np.median(ratios))
    if len(ratios) < LEAST_ROUNDS:
        return Ratio(value, np.nan, np.nan, len(ratios), thrown)
    rank = rank_of_limit(len(ratios))
    low, high = np.sort(ratios)[[rank, -1 - rank]]
    return Ratio(value, float(low), float(high), len(ratios), thrown)


@lru_cache(maxsize=1024)
def rank_of_limit(count: int) -> int:
    """Rank from 0 of the lower limit among sorted values; that of the upper limit from the end. The
    largest with P(B <= rank) < 2.5 % for B ~ binomial(count, 1/2), in whole numbers: what
    ``scipy.stats.quantile_test`` takes, which loads for a second in each measuring process."""
    rank, ways, total = 0, 1, 1
    while 40 * total < 2**count:
        ways = ways * (count - rank) // (rank + 1)
        rank, total = rank + 1, total + ways
    return rank - 1
