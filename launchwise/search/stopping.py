"""When a search may end: the chance that something clearly faster was left.

A process that has learnt little is too sure of itself. So what it says is held against cards that
were kept apart: ``benchmarks/stopping.py`` searches every recorded and public sweep, with and
without other cards, and fits how often something faster by more than asked was really left. The
numbers below are its ``coefficients``, in ``benchmarks/results/stopping.json``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

CONSTANT, BY_EXPECTED, BY_SINCE, BY_LEFT = 0.1437, 0.2815, -0.5549, 0.1637
"""Coefficients of the log odds (see :func:`terms`)."""

LEAST_EXPECTED = 1e-6

SURE = 0.1
"""A search ends once the chance that something clearly faster is left is at most this."""

LEAST_MEASURED = 5
"""Measurements before which no search is sure, however few candidates there are."""


def least_measured(candidates: int) -> int:
    """Measurements before which no search among so many ``candidates`` is sure.

    Of what is fast alone, unlike all that resembles it, no process can know. The more candidates
    there are, the likelier there is one; their square root is what two such cards of the public
    convolution need.
    """
    return max(LEAST_MEASURED, math.isqrt(candidates - 1) + 1)


@dataclass(frozen=True)
class Evidence:
    """What a process says of the candidates that were not measured."""

    # Expected number of them that are faster than the best by more than asked.
    expected: float
    # Measurements since the best one.
    since: int
    # How many there are.
    left: int


def terms(evidence: Evidence) -> tuple[float, float, float, float]:
    """What the log odds are a sum of, by the coefficients above."""
    return (
        1.0,
        math.log(evidence.expected + LEAST_EXPECTED),
        math.log1p(evidence.since),
        math.log(evidence.left),
    )


def chance_left(evidence: Evidence) -> float:
    """Chance that one of them is faster by more than asked; 0 where none is left."""
    if not evidence.left:
        return 0.0
    coefficients = CONSTANT, BY_EXPECTED, BY_SINCE, BY_LEFT
    odds = sum(a * b for a, b in zip(coefficients, terms(evidence), strict=True))
    return 1 / (1 + math.exp(-odds))
