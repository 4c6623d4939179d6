"""Which answer a problem gets: one rule for every door.

``recommend``, the lookup of the report and every exported form look up the same table:

1. a device is found by its name in the settings or by what CUDA calls it;
2. of its entries those with the same texts (such as a type) count;
3. the one of this very problem is the answer;
4. else the device's judge chooses (:class:`launchwise.exporting.decision.Judge`): of the usual
   choice and the table's candidates that may run the problem, the first of least loss. Its gain is
   the judge's, by :func:`launchwise.exporting.decision.growth`. A device without a judge has the
   configuration of the entry nearest in size (:func:`distance`) that may run the problem, and no
   gain unless that is the usual choice. What follows from the problem follows from this one;
   the time is that of the nearest entry, scaled by the work that fits its neighbours best; limits
   are those of answers between entries on this device, further by how far the problem is outside
   of what was measured;
5. without any, the usual choice is; where nothing is usual, the default.

Divisions and products of doubles are rounded the same in every language, logarithms are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from launchwise.learning.answers import Interval
from launchwise.workloads.parts import Value


def distance(asked: Sequence[Value], known: Sequence[Value]) -> float:
    """Distance of two problems: infinite where texts differ, 1 of equal ones. The product over
    integers of (larger + 1) / (smaller + 1), of larger - smaller + 1 where one is negative."""
    found = 1.0
    for one, other in zip(asked, known, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            found = found if one == other else math.inf
        else:
            found *= _ratio(one, other)
    return found


def _ratio(one: int, other: int) -> float:
    low, high = sorted((one, other))
    return (high + 1) / (low + 1) if low >= 0 else high - low + 1


def outside(asked: Sequence[Value], measured: Iterable[Sequence[Value]]) -> float:
    """How far a problem lies outside of the measured ones: the product over integers of its ratio
    to the nearest end of their range, as in :func:`distance`; 1 within, and where none was
    measured. ``measured``: problems with the same texts."""
    found = 1.0
    for value, *others in zip(asked, *measured, strict=True):
        if others and not isinstance(value, str):
            found *= _ratio(value, min(max(value, min(others)), max(others)))
    return found


def within(factors: Interval | None, far: float) -> str:
    """How far such times are off, in words; empty where that is unknown."""
    limits = around(1.0, factors, far)
    if limits is None:
        return ""
    return f": nine of ten such times are within a factor of {max(1 / limits[0], limits[1]):.3g}"


def around(value: float | None, factors: Interval | None, far: float) -> Interval | None:
    """Limits of a stated value: factors of it, ``far`` times further away on either side."""
    if value is None or factors is None:
        return None
    return value * factors[0] / far, value * factors[1] * far
