"""When a search may end: the chance that something clearly faster was left."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """What a process says of the candidates that were not measured.

    Parameters
    ----------
    expected
        Expected number of them that are faster than the best by more than asked.
    largest
        Largest chance of one of them.
    since
        Measurements since the best one.
    measured, candidates
        How many were measured, and how many there are.
    others
        Other GPUs that are known.
    """

    expected: float
    largest: float
    since: int
    measured: int
    candidates: int
    others: int


def chance_left(evidence: Evidence) -> float:
    """Largest chance that one of them is faster by more than asked: the sum of their chances."""
    return min(1.0, evidence.expected)
