"""How long a sweep takes and how much memory its job needs, before anything of it was measured.

Rough on purpose: it decides how many jobs share a sweep and how long each may run. A job that is
stopped too early goes on where its journal ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from launchwise.base.imports import ROOT
from launchwise.experiment.method import ProblemBlock
from launchwise.gpus.datasheets import CARDS_FILE, read_cards, slowest_bandwidths
from launchwise.workloads.space import configurations, narrowings, problems
from launchwise.workloads.spec import Spec

SECONDS_PER_ROW = 0.005
PASSES_PER_ROW = 50.0
"""A row takes so long for each time that its problem's bytes could be moved: every launch of
verification and timing, most of them far from the limit of the memory, and rests. Four sweeps of a
stencil took 44 passes (an H200), 16, 38 and 74 (72, 32 and 16 of its SMs, at the whole card's
bandwidth): the estimate is .7 to 2.6 times what they took."""

LONGEST_SHARD_S = 2 * 3600.0
"""Sweeps that take longer are shared by several jobs, unless the settings say how many."""

MOST_SHARDS = 100

JOB_MB = 4000
"""Memory of a job whose arrays are all on the GPU: two processes with their libraries."""


def nominal_bandwidth_gbs(arch: str) -> float:
    """Memory bandwidth of the slowest card of an architecture such as ``sm_90``, GB/s.

    Of an architecture that ``data/cards.csv`` lacks, that of the slowest card in the table.
    """
    known = _slowest_bandwidths()
    return known.get(arch.rstrip("af"), min(known.values()))


@cache
def _slowest_bandwidths() -> dict[str, float]:
    """See :func:`launchwise.gpus.datasheets.slowest_bandwidths`; the table is read once."""
    return slowest_bandwidths(read_cards(ROOT / CARDS_FILE))


@dataclass(frozen=True)
class Volume:
    """What there is to measure: ``rows``, and bytes of their problems, each counted by its rows."""

    rows: int
    bytes: float

    def seconds(self, bandwidth_gbs: float) -> float:
        """Seconds on one card whose memory reaches so much, 1e9 B/s."""
        return self.rows * SECONDS_PER_ROW + PASSES_PER_ROW * self.bytes / (bandwidth_gbs * 1e9)


def volume(spec: Spec, blocks: Iterable[ProblemBlock], budget: int | None) -> Volume:
    """What a sweep measures.

    Parameters
    ----------
    blocks
        Problems as in the settings.
    budget
        Rows of each problem, where they are not all measured.
    """
    total, moved = 0, 0.0
    for block in blocks:
        listed = problems(spec, [block])
        # Configurations of one problem stand for those of its block: counting takes time.
        middle = listed[len(listed) // 2]
        parts = narrowings(spec, [block])[tuple(middle.values())]
        rows = budget or len(configurations(spec, middle, None, parts))
        total += rows * len(listed)
        moved += rows * sum(float(spec.value(spec.work.bytes, problem)) for problem in listed)
    return Volume(total, moved)


def shards_for(seconds: float) -> int:
    """Jobs that share a sweep of so many seconds."""
    return max(1, min(MOST_SHARDS, math.ceil(seconds / LONGEST_SHARD_S)))


def limit_minutes(seconds: float, shards: int, attempt: int) -> int:
    """Time limit of one of ``shards`` jobs: three times the estimate and time to start.

    Cards differ by more than an estimate can know, and a job that was stopped gets more time when
    it is tried again.
    """
    return (15 + math.ceil(3 * seconds / shards / 60)) * attempt


def memory_mb(spec: Spec, blocks: Iterable[ProblemBlock], attempt: int) -> int:
    """Memory of a job that measures any of the problems, 1e6 B."""
    largest = max(
        float(spec.value(spec.work.host_bytes, problem)) for problem in problems(spec, blocks)
    )
    return (JOB_MB + math.ceil(1.2 * largest / 1e6)) * attempt
