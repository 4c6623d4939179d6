"""Rows whose reference kernel drifted: the ones that a sweep measures once more."""

from __future__ import annotations

import statistics
from itertools import pairwise
from typing import Any

LEAST_TIMES = 10
"""Fewer times of the reference kernel do not tell its noise."""

NOISE_MULTIPLE = 3.0
"""Standard deviations beyond which a time of the reference kernel is drift, not noise."""

MEDIAN_TO_SIGMA = 0.954
"""Median absolute difference of two normal values, in their standard deviations."""


def drifted_rows(notes: list[dict[str, Any]], drift: float) -> set[tuple[Any, ...]]:
    """Keys of the rows of a journal that a drifted reference kernel puts in doubt.

    The reference kernel has drifted if its time is off its first one on that card by more than the
    fraction ``drift``. A kernel that the host drives may be noisier than that, and then every row
    would be in doubt: there its time must be off its median by more than ``NOISE_MULTIPLE``
    standard deviations. These come from the differences of successive times, which slow drift
    hardly changes (a Shewhart chart of individual values and moving ranges).

    Parameters
    ----------
    notes
        Of these, notes ``control`` count: ``card``, ``ratio`` (time / first time on that card) and
        ``rows`` (keys of the rows since the note before).
    """
    by_card: dict[str, list[dict[str, Any]]] = {}
    for note in notes:
        if note["note"] == "control":
            by_card.setdefault(note["card"], []).append(note)
    found: set[tuple[Any, ...]] = set()
    for of_card in by_card.values():
        expected, limit = _expected([note["ratio"] for note in of_card], drift)
        for note in of_card:
            if abs(note["ratio"] - expected) > limit:
                found.update(map(tuple, note["rows"]))
    return found


def _expected(ratios: list[float], drift: float) -> tuple[float, float]:
    """Expected ratio of a card's reference kernel, and the largest deviation that is no drift."""
    if len(ratios) < LEAST_TIMES:
        return 1.0, drift
    steps = [abs(later - earlier) for earlier, later in pairwise(ratios)]
    limit = NOISE_MULTIPLE * statistics.median(steps) / MEDIAN_TO_SIGMA
    return (statistics.median(ratios), limit) if limit > drift else (1.0, drift)
