"""The reference kernel: one configuration, measured repeatedly during a sweep to detect drift.

It is the baseline of one problem of the sweep. Its time changes only with the state of the card:
temperature, throttling, another user.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from launchwise.measuring.measure import (
    LayoutRun,
    OutOfMemory,
    ProblemContext,
    times_ms,
    unless_fatal,
)
from launchwise.workloads.space import Configuration, Problem


@dataclass(frozen=True)
class Watched:
    """Problem and configuration of the reference kernel."""

    problem: Problem
    configuration: Configuration
    # Whether it was measured and verified before.
    known: bool = False
    # Its first time on this card, ms; None if not measured yet.
    reference_ms: float | None = None


class Control:
    """Measures the reference kernel at intervals and reports its time relative to the first one.

    It runs only after it has been verified as a row of its own, where a failure or crash shows. It
    is disabled if its buffers do not fit beside those of the sweep.
    """

    def __init__(self, context: ProblemContext, watched: Watched) -> None:
        self._context = context
        self._watched = watched
        self._reference_ms = watched.reference_ms
        self._run: LayoutRun | None = None
        self._given_up = False
        self._measured_at = 0.0
        self._rows = 0
        if watched.known:
            self._measure()

    def after(self, problem: Problem, configuration: Configuration, row: dict[str, Any]) -> None:
        """Called after every row."""
        self._rows += 1
        if self._run is not None:
            if time.monotonic() - self._measured_at >= self._context.method.control_s:
                self._measure()
        elif row["status"] == "ok" and not self._given_up:
            mine = (self._watched.problem, self._watched.configuration)
            if (problem, configuration) == mine:
                self._measure()

    def settle(self) -> None:
        """Measure once more if rows followed the last measurement."""
        if self._run is not None and self._rows:
            self._measure()

    def close(self) -> None:
        """Release the buffers."""
        self.settle()
        if self._run is not None:
            self._run.close()
            self._run = None

    def _measure(self) -> None:
        context, configuration = self._context, self._watched.configuration
        try:
            if self._run is None:
                self._run = LayoutRun(context, context.workload.layout(configuration))
                self._run.warm_up(configuration)
        except OutOfMemory:
            self._given_up = True
            return
        with unless_fatal():
            work = self._run.session.launch(configuration)
            # Some runs unused: what was measured before has left its mark on the caches.
            once = statistics.median(times_ms(context.device, work, 3))
            times, _ = context.time(self._run.session, work, once)
            found = statistics.median(times.times_ms)
            if self._reference_ms is None:
                self._reference_ms = found
            context.say(
                {
                    "event": "control",
                    "problem": context.problem,
                    "configuration": configuration,
                    "time_ms": found,
                    "ratio": found / self._reference_ms,
                }
            )
        self._measured_at = time.monotonic()
        self._rows = 0
