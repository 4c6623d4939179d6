"""Estimates the time and memory of a sweep before it runs.

Rough on purpose: it decides how many jobs share a sweep and how long each may run. A job that is
stopped too early goes on where its journal ends.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from launchwise.base.places import shipped
from launchwise.experiment.method import ProblemBlock
from launchwise.gpus.datasheets import CARDS_FILE, read_cards, slowest_bandwidths
from launchwise.workloads.parts import Value
from launchwise.workloads.space import (
    Narrowing,
    Problem,
    configurations,
    narrowings,
    problems,
)
from launchwise.workloads.spec import Spec

SECONDS_PER_ROW = 0.005
PASSES_PER_ROW = 50.0
"""Row time = 5 ms + 50 x bytes / bandwidth. It covers all launches of verification and timing, most
of them below the memory bandwidth, and pauses. Four sweeps of a stencil took 44 passes (H200) and
16, 38 and 74 passes (72, 32 and 16 of its SMs, at the whole card's bandwidth): the estimate is 0.7
to 2.6 times the measured time."""

LONGEST_SHARD_S = 2 * 3600.0
"""Longest estimated time of a shard, s; longer sweeps are split unless the settings give shards."""

MOST_SHARDS = 100

JOB_MB = 4000
"""Host memory of a job without host arrays, 1e6 B: two processes with their libraries."""


def nominal_bandwidth_gbs(arch: str) -> float:
    """Memory bandwidth of the slowest card of an architecture such as ``sm_90``, GB/s.

    For an architecture that ``data/cards.csv`` lacks: the slowest card in the table.
    """
    known = _slowest_bandwidths()
    return known.get(arch.rstrip("af"), min(known.values()))


@cache
def _slowest_bandwidths() -> dict[str, float]:
    """See :func:`launchwise.gpus.datasheets.slowest_bandwidths`; the table is read once."""
    return slowest_bandwidths(read_cards(shipped(CARDS_FILE)))


@dataclass(frozen=True)
class Volume:
    """Volume of a sweep: ``rows``, and bytes summed over rows (those of each row's problem)."""

    rows: int
    bytes: float

    def seconds(self, bandwidth_gbs: float) -> float:
        """Estimated time on one card with the given memory bandwidth (1e9 B/s), s."""
        return self.rows * SECONDS_PER_ROW + PASSES_PER_ROW * self.bytes / (bandwidth_gbs * 1e9)


def volume(spec: Spec, blocks: Iterable[ProblemBlock], budget: int | None) -> Volume:
    """Volume of a sweep.

    Parameters
    ----------
    blocks
        Problems as in the settings.
    budget
        Rows per problem; None if every configuration is measured.
    """
    total, moved = 0.0, 0.0
    known = list(blocks)
    parts = narrowings(spec, known)
    for alike in _alike(spec, problems(spec, known), parts):
        # The configurations of some stand for those of all: counting takes time.
        counted = {0, len(alike) // 3, 2 * len(alike) // 3, len(alike) - 1}
        rows = budget or statistics.mean(
            len(configurations(spec, alike[place], None, parts[tuple(alike[place].values())]))
            for place in counted
        )
        total += rows * len(alike)
        moved += rows * sum(float(spec.value(spec.work.bytes, problem)) for problem in alike)
    return Volume(round(total), moved)


def _alike(
    spec: Spec, listed: Iterable[Problem], parts: Mapping[tuple[Value, ...], Narrowing]
) -> list[list[Problem]]:
    """Problems of which the same is measured, and that differ in sizes alone.

    Sizes are parameters without listed values.
    """
    chosen = [name for name, one in spec.problem.items() if one.values is not None]
    found: dict[tuple[object, ...], list[Problem]] = {}
    for problem in listed:
        key = (*(problem[name] for name in chosen), repr(parts[tuple(problem.values())]))
        found.setdefault(key, []).append(problem)
    return list(found.values())


def shards_for(seconds: float) -> int:
    """Number of shards for a sweep of ``seconds``."""
    return max(1, min(MOST_SHARDS, math.ceil(seconds / LONGEST_SHARD_S)))


def limit_minutes(seconds: float, shards: int, attempt: int) -> int:
    """Time limit of one of ``shards`` jobs: three times the estimate and time to start.

    Run times differ between cards beyond the estimate. A stopped job gets more time in its next
    attempt.
    """
    return (15 + math.ceil(3 * seconds / shards / 60)) * attempt


def memory_mb(spec: Spec, blocks: Iterable[ProblemBlock], attempt: int) -> int:
    """Host memory of a job for the largest of the problems, 1e6 B."""
    largest = max(
        float(spec.value(spec.work.host_bytes, problem)) for problem in problems(spec, blocks)
    )
    return (JOB_MB + math.ceil(1.2 * largest / 1e6)) * attempt
