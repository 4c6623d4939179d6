"""Times of the stages of a run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from launchwise.workloads.workload import Device

MOST_RUNS = 9
"""Runs whose median is the time of a stage."""

BUDGET_MS = 20.0
"""Time after which no further run begins, ms: long runs are timed once."""


class NoClock:
    """Told by a run where its stages end; times nothing."""

    def mark(self, stage: str) -> None:
        """Work queued since the last mark belongs to ``stage``."""

    def host(self, stage: str) -> AbstractContextManager[None]:
        """The block is work of the host that belongs to ``stage``; the device is idle."""
        return nullcontext()


class EventClock(NoClock):
    """Times stages without waiting for the device.

    Stages on the device lie between CUDA events on the default stream, which begin after the work
    of all streams and end before any later work. Stages of the host are timed by its own clock.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._intervals: list[tuple[str, Any, Any]] = []
        self._host_ms: list[tuple[str, float]] = []
        device.synchronize()
        self._last = device.event()

    def mark(self, stage: str) -> None:
        now = self._device.event()
        self._intervals.append((stage, self._last, now))
        self._last = now

    @contextmanager
    def host(self, stage: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self._host_ms.append((stage, 1e3 * (time.perf_counter() - begin)))
        self._last = self._device.event()

    def spent(self, stages: tuple[str, ...]) -> dict[str, float]:
        """Time of each of ``stages``, ms; 0 for those that the run does not have. Waits."""
        found = dict.fromkeys(stages, 0.0)
        for stage, begin, end in self._intervals:
            found[stage] += self._device.elapsed_ms(begin, end)
        for stage, spent in self._host_ms:
            found[stage] += spent
        return found


def median_times(once: Callable[[], dict[str, float]]) -> dict[str, float]:
    """Median over up to :data:`MOST_RUNS` runs of the time of each stage, ms.

    Parameters
    ----------
    once
        Runs once and gives the time of each stage, ms.
    """
    begin = time.perf_counter()
    runs = [once()]
    while len(runs) < MOST_RUNS and 1e3 * (time.perf_counter() - begin) < BUDGET_MS:
        runs.append(once())
    return {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
