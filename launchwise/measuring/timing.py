"""Repeats of one launch: their number, spread and stopping rule."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from launchwise.base.tukey import MIN_SAMPLE_SIZE, quartile_fences
from launchwise.experiment.method import Repeats


def spread_ms(times_ms: list[float]) -> float:
    """Robust spread of repeats, ms: median absolute deviation times 1.4826.

    For a normal law that is its standard deviation; one disturbed repeat does not change it.
    """
    median = statistics.median(times_ms)
    return 1.4826 * statistics.median(abs(time - median) for time in times_ms)


def relative_error(times_ms: list[float]) -> float:
    """Relative standard error of the median of ``times_ms``; infinite for a single time.

    The median's standard error is 1.2533 times the mean's (for a normal law), and the spread comes
    from :func:`spread_ms`.
    """
    if len(times_ms) < 2:
        return math.inf
    error = 1.2533 * spread_ms(times_ms) / math.sqrt(len(times_ms))
    return error / statistics.median(times_ms)


def repeat_columns(times_ms: list[float]) -> dict[str, float | int]:
    """Columns of a row that follow from its repeats: their number, spread, error and outliers.

    NaN where there are too few repeats.
    """
    error = relative_error(times_ms)
    return {
        "repeats": len(times_ms),
        "spread_ms": spread_ms(times_ms) if len(times_ms) > 1 else math.nan,
        "relative_error": error if math.isfinite(error) else math.nan,
        "outlier_repeats": outlier_repeats(times_ms),
    }


def outlier_repeats(times_ms: list[float]) -> int:
    """Number of repeats outside the Tukey filter (1.5 interquartile ranges); none is removed."""
    if len(times_ms) < MIN_SAMPLE_SIZE:
        return 0
    low, high = quartile_fences(times_ms)
    return sum(not low <= time <= high for time in times_ms)


RESTORED = "restored"
"""Timer of launches before which arrays that they change are put back; L2 is empty then."""


@dataclass(frozen=True)
class Repeated:
    """Times of the repeats of one configuration.

    Parameters
    ----------
    times_ms
        One time per repeat, ms per launch.
    timer
        ``events``: a pair of CUDA events around every launch; ``graph``: around a replayed graph
        of several launches, for kernels so short that the events would be a part of them;
        ``restored``: events around every launch, arrays put back before it; ``host``: the host's
        clock around a run that the host drives.
    launches
        Launches (runs of a sequence) in one repeat.
    """

    times_ms: list[float]
    timer: str
    launches: int


def repeat(
    timed: Callable[[int], list[float]],
    repeats: Repeats,
    first_ms: float,
    best_ms: float = math.inf,
    begun: list[float] | None = None,
) -> list[float]:
    """Repeat until the median is known well enough or the budget of device time is spent.

    Time is spent where it decides something: a configuration that is not near the best so far
    needs ``few`` repeats and the precision ``coarse``, one that is needs ``minimum`` and
    ``precision``.

    Parameters
    ----------
    timed
        Gives the times (ms) of so many repeats.
    first_ms
        What one repeat took before: a repeat that takes most of the budget is not made often.
    best_ms
        The best median so far of the same problem; infinite for a configuration that is to be
        known well wherever it lies.
    begun
        Repeats that were made already.
    """
    few = min(repeats.few, repeats.minimum)
    long = first_ms * repeats.minimum > repeats.budget_ms
    times = list(begun or []) or timed(few)
    while len(times) < repeats.maximum and sum(times) < repeats.budget_ms:
        near = statistics.median(times) <= (1 + repeats.near) * best_ms
        least = repeats.minimum if near and not long else few
        precision = repeats.precision if near else max(repeats.precision, repeats.coarse)
        if len(times) >= least and relative_error(times) <= precision:
            break
        missing = least - len(times) if len(times) < least else least
        times += timed(min(missing, repeats.maximum - len(times)))
    return times
