"""Which problem is nearest to another one: a search starts from its rows, an answer from its own.

For a search, the one that differs in the fewest texts, then by the sum of distances in log(size)
over the integers; an answer is of the same texts (:func:`distances`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from launchwise.workloads.parts import Value

Prior = list[tuple[dict[str, Any], list[tuple[list[Value], float | None]]]]
"""For each other GPU, what is known of it (see :func:`~launchwise.search.candidates.away`; empty:
nothing), and values of configurations (in the order of :attr:`Spec.tunable_columns`) with their
times in ms; None for those that failed. As JSON holds it."""

Measured = Mapping[tuple[Value, ...], list[tuple[list[Value], float | None]]]
"""Values of a problem to those of its configurations with their times in ms, as in a prior."""

Rows = TypeVar("Rows")

OWN_PROBLEMS = 2
"""Problems of the same GPU that a search starts from, besides other GPUs. On recorded sweeps one
misleads more often, and four help less than two."""


def sortable(row: Iterable[Value]) -> list[tuple[bool, Value]]:
    """Key of a problem's values in an order of problems: numbers come before texts."""
    return [(isinstance(value, str), value) for value in row]


def distances(asked: Sequence[Sequence[Value]], known: Sequence[Sequence[Value]]) -> np.ndarray:
    """Distance of each problem to each other one: float64, shape (asked, known). Infinite where
    texts differ, 1 of equal ones. The product over integers of (larger + 1) / (smaller + 1), of
    larger - smaller + 1 where one is negative."""
    found = np.ones((len(asked), len(known)))
    for one, other in zip(zip(*asked, strict=True), zip(*known, strict=True), strict=False):
        if isinstance(one[0], str):
            found[np.array(one, dtype=object)[:, None] != np.array(other, dtype=object)] = math.inf
        else:
            both = np.array(one, dtype=float)[:, None], np.array(other, dtype=float)
            low, high = np.minimum(*both), np.maximum(*both)
            found *= np.where(low < 0, high - low + 1, (high + 1) / (np.maximum(low, 0) + 1))
    return found


def own_prior(asked: tuple[Value, ...], measured: Measured) -> Prior:
    """Rows of the problems of the same GPU that are nearest to ``asked``, other than itself."""
    timed = [
        values
        for values, rows in measured.items()
        if any(time_ms is not None for _, time_ms in rows)
    ]
    return [({}, list(measured[near])) for near in nearest_others(asked, timed)]


def with_expected(known: Sequence[Rows], expected: Rows) -> list[Rows]:
    """Rows of GPUs and problems, and what a model expects, with as much weight as all of them."""
    return [*known, *[expected] * max(1, len(known))]


def nearest_others(
    asked: tuple[Value, ...], measured: Iterable[tuple[Value, ...]]
) -> list[tuple[Value, ...]]:
    """The :data:`OWN_PROBLEMS` of ``measured`` that are nearest to ``asked`` and not itself."""
    return heapq.nsmallest(
        OWN_PROBLEMS,
        (values for values in measured if values != asked),
        key=lambda values: _away(asked, values),
    )


def nearest(
    asked: tuple[Value, ...], measured: Iterable[tuple[Value, ...]]
) -> tuple[Value, ...] | None:
    """The one of ``measured`` (values of problems) that is nearest to ``asked``; itself if there.
    None where there are none. Of two as near the one with the smaller values."""
    return min(measured, key=lambda values: _away(asked, values), default=None)


def _away(asked: tuple[Value, ...], values: tuple[Value, ...]) -> tuple[Any, ...]:
    """How far a problem is away; of two as far the one with the smaller values comes first."""
    pairs = [(a, b) for a, b in zip(asked, values, strict=True) if a != b]
    texts = sum(isinstance(a, str) or isinstance(b, str) for a, b in pairs)
    # Like the logarithm of the ratio, but 0 and negative numbers have a place, too. Rounded:
    # two that are as near must not differ by an error of the logarithm.
    away = sum(
        abs(math.asinh(a) - math.asinh(b))
        for a, b in pairs
        if not isinstance(a, str) and not isinstance(b, str)
    )
    return texts, round(away, 12), *sortable(values)
