"""The control: one configuration measured again and again while a sweep goes on.

It is the baseline of one problem of the sweep, whatever is measured meanwhile, so its time changes
only when the card does: it grows warm, it is throttled, somebody else uses it.
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
    """What the control is.

    Parameters
    ----------
    known
        Whether it was measured before, and found right.
    reference_ms
        What it took first on this card; None when that is yet to be measured.
    """

    problem: Problem
    configuration: Configuration
    known: bool = False
    reference_ms: float | None = None


class Control:
    """Measures the control when it is time to, and says how it compares with the first time.

    It is touched only after it has been verified as a row of its own: one that fails or crashes
    does so there. Where its buffers do not fit beside what is measured, there is no control.
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
        """Once more where there are rows without it: nothing heats the card before it is known."""
        if self._run is not None and self._rows:
            self._measure()

    def close(self) -> None:
        """Give the buffers back."""
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
