"""Verifies and times one configuration on an open device."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from launchwise.experiment.method import Method
from launchwise.gpus.machine import Fastest
from launchwise.measuring.repeats import (
    RESTORED,
    Repeated,
    Rest,
    checked_columns,
    complaint,
    repeat,
    timed_row,
    unverified,
)
from launchwise.workloads.device import (
    Device,
    HostRun,
    Launch,
    LaunchFailed,
    LaunchSequence,
    LibraryRun,
    OutOfMemory,
    Runnable,
)
from launchwise.workloads.space import Configuration, Problem, baseline
from launchwise.workloads.workload import Session, Workload

OnDevice = Launch | LaunchSequence | LibraryRun
"""Work without the host, which device events can time."""

Say = Callable[[dict[str, Any]], None]

WARM_UP_MS = 20.0
GRAPH_MS = 0.2  # Device time of one replayed graph, ms: long enough to hide the cost of its events

MOST_LAUNCHES_PER_GRAPH = 200

LOOKED_AT_MS, MOST_LOOKED_AT = 1.0, 4
"""Before a configuration counts as slow: time of further launches, ms, and their number."""

REPLAYED = 10
"""Times ``graph_below_us`` up to which launches are replayed where others may be short.

Events add some microseconds to a launch: of two configurations that take 16 us, one that is
replayed and one that is not would differ by a third.
"""


class TimingDevice(Device, Protocol):
    """A device that can also time launches."""

    l2_bytes: int

    def timed(self, work: OnDevice, repeats: int, flush: bool) -> list[float]:
        """Launch ``repeats`` times; milliseconds of each, L2 emptied before each if ``flush``. What
        launches change is put back before each, untimed; L2 is then emptied in any case."""

    def replayed(self, work: OnDevice, repeats: int, launches: int) -> Repeated:
        """Replay a graph of ``launches`` launches ``repeats`` times; ms per launch, L2 warm."""

    def sustain(self, work: OnDevice, launches: int) -> None:
        """Launch so often, back to back, and wait."""

    def throttled(self) -> bool:
        """Whether the card is throttled now; False if unknown."""

    def resources(self, launch: Launch) -> dict[str, Any]:
        """Registers, spill_bytes, shared_bytes and occupancy of the launched kernel."""


def times_ms(
    device: TimingDevice, work: Runnable | LibraryRun, repeats: int, flush: bool = False
) -> list[float]:
    """Milliseconds of each of ``repeats`` runs, by the clock of who drives: device or host. The
    host does not empty L2: what it drives comes from its own memory. The time of a run that solves
    the problem several times is divided by their number."""
    if not isinstance(work, HostRun):
        return [each / work.solves for each in device.timed(work, repeats, flush)]
    times = []
    for _ in range(repeats):
        for each in work.restores:
            device.copy(each.kept, each.array)
        # What is queued already, such as poison, is no part of the run.
        device.synchronize()
        began = time.perf_counter()
        work.run()
        times.append(1e3 * (time.perf_counter() - began))
    return times


def replayed(device: TimingDevice, work: OnDevice, repeats: int, launches: int) -> Repeated:
    """:meth:`TimingDevice.replayed`, its times divided as :func:`times_ms` does."""
    made = device.replayed(work, repeats, launches)
    return replace(made, times_ms=[each / work.solves for each in made.times_ms])


@dataclass
class ProblemContext:
    """State shared by all measurements of one problem."""

    device: TimingDevice
    workload: Workload
    method: Method
    problem: Problem
    attempt: int
    best_ms: float  # the best time so far (a median); infinite at the beginning
    # Early-stop threshold: minimum over configurations of max(median, first launch), because first
    # launches are compared with it; infinite at the beginning.
    mark_ms: float
    seed: int
    say: Say
    rest: Rest
    fastest: Fastest = Fastest()  # noqa: RUF009 (frozen)
    # Called with a configuration and its row once that is said.
    after_row: Callable[[Configuration, dict[str, Any]], None] = lambda *row: None

    def __post_init__(self) -> None:
        self.baseline = baseline(self.workload.spec)
        work, value = self.workload.spec.work, self.workload.spec.value
        amounts = (value(each, self.problem) for each in (work.bytes, work.flop))
        # Whether L2 is emptied before each repeat, where what is timed would fit it. Graphs of
        # short kernels find L2 warm, and what is compared must find the same.
        self.empties_l2 = self.fastest.least_us(*amounts) >= self.method.graph_below_us
        tasks = ("inputs", "warm_up", "verify", "time", "control", "energy", "rest")
        # Seconds spent per activity.
        self.seconds = dict.fromkeys(tasks, 0.0)

    @contextlib.contextmanager
    def spending(self, what: str) -> Iterator[None]:
        """Add the duration of the block to the activity ``what``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[what] += time.perf_counter() - began

    def say_row(self, configuration: Configuration, row: dict[str, Any]) -> None:
        more = {"seed": self.seed, "attempt": self.attempt}
        self.say({"event": "row", **self.problem, **configuration, **more, **row})

    def time(
        self, session: Session, work: Runnable, first_ms: float, best_ms: float = math.inf
    ) -> tuple[Repeated, str]:
        """Repeats of one run, and whether L2 was ``cold`` or ``warm`` before each.

        A kernel as short as the events' own cost is timed as a replayed graph, whose launches
        follow each other at once: L2 cannot be emptied between them. So it is emptied for no
        configuration of a problem that may have such a kernel, and its longer ones are replayed,
        too. What is put back before each launch cannot be replayed; its L2 is emptied, so that
        every configuration finds the same.
        """
        device, repeats = self.device, self.method.repeats
        if isinstance(work, HostRun):
            times = repeat(lambda count: times_ms(device, work, count), repeats, first_ms, best_ms)
            return Repeated(times, "host", 1), "warm"
        if work.restores:
            times = repeat(lambda count: times_ms(device, work, count), repeats, first_ms, best_ms)
            return Repeated(times, RESTORED, 1), "cold"
        flush = self.empties_l2 and session.working_set_bytes <= device.l2_bytes
        begun: list[float] = []
        # The host needs some microseconds for each launch, too.
        limit_ms = len(work.launches) * self.method.graph_below_us / 1e3
        if not self.empties_l2:
            limit_ms *= REPLAYED
        # A first launch is slow; only one that is far too long for a graph is believed.
        if first_ms < 10 * limit_ms and not flush:
            begun = times_ms(device, work, min(repeats.few, repeats.minimum))
            shortest = min(begun)
            if shortest < limit_ms:
                launches = min(MOST_LAUNCHES_PER_GRAPH, math.ceil(GRAPH_MS / max(shortest, 1e-3)))
                made: list[Repeated] = []

                def replay(count: int) -> list[float]:
                    made.append(replayed(device, work, count, launches))
                    return made[-1].times_ms

                times = repeat(replay, repeats, shortest * launches, best_ms)
                return Repeated(times, made[0].timer, launches), "warm"

        def timed(count: int) -> list[float]:
            return times_ms(device, work, count, flush)

        times = repeat(timed, repeats, first_ms, best_ms, begun)
        return Repeated(times, "events", 1), "cold" if flush else "warm"


class LayoutRun:
    """One layout of a problem's buffers, and what is measured in it. Raises OutOfMemory when the
    buffers cannot be had."""

    def __init__(self, context: ProblemContext, layout: Any) -> None:
        self._context = context
        self.device = context.device
        with context.spending("inputs"):
            self.session = context.workload.open(
                context.device, context.problem, layout, context.seed
            )
        self._warm = False

    def measure(self, configuration: Configuration) -> dict[str, Any]:
        """Verify and time a configuration, report its row, and return it."""
        context = self._context
        context.say({"event": "start", **context.problem, **configuration})
        if not self._warm:
            # After the start event: if the process dies here, this configuration is blamed.
            self.warm_up(configuration)
            self._warm = True
        row = self._measure_one(configuration)
        if row["status"] == "ok":
            found = float(row["time_ms"])
            context.best_ms = min(context.best_ms, found)
            # A first launch is held to first launches: of short kernels the repeats take far less.
            context.mark_ms = min(context.mark_ms, max(found, float(row["first_ms"])))
        context.say_row(configuration, row)
        with context.spending("control"):
            context.after_row(configuration, row)
        with context.spending("rest"):
            context.rest.after(context.device.throttled)
        return row

    def close(self) -> None:
        self.session.close()

    def warm_up(self, configuration: Configuration) -> None:
        """Bring clocks and caches to a working state, about 20 ms of launches. A configuration that
        cannot be launched shows that in its own row, not here."""
        with self._context.spending("warm_up"), unless_fatal():
            work = self.session.launch(configuration)
            once = times_ms(self.device, work, 1)[0]
            count = max(1, min(200, int(WARM_UP_MS / max(once, 1e-3))))
            times_ms(self.device, work, count)

    def _measure_one(self, configuration: Configuration) -> dict[str, Any]:
        """Verify and time one configuration. Returns columns of the measurement that do not name
        it: status, reason, times and resources, and when it was timed (``began``, ``ended``:
        monotonic seconds). Raises LaunchFailed only when the context is lost."""
        context, device = self._context, self.device
        row: dict[str, Any] = {"status": "failed", "reason": "", "began": time.monotonic()}
        try:
            with context.spending("verify"):
                work = self.session.launch(configuration)
                row |= device.resources(work.launches[work.main])
                self.session.poison()
                first = times_ms(device, work, 1)[0]
                found = self.session.check()
            row |= {"first_ms": first, **checked_columns(found)}
            wrong = complaint(found)
            if context.workload.spec.variants[str(configuration["variant"])].verified:
                if wrong:
                    return row | {"status": "wrong", "reason": wrong}
                return row | self._time(configuration, work, first)
            return row | unverified(self._time(configuration, work, first), found)
        except LaunchFailed as error:
            if error.fatal:
                raise
            return row | {"reason": str(error)}
        except OutOfMemory as error:
            return row | {"status": "out_of_memory", "reason": str(error)}

    def _time(self, configuration: Configuration, work: Runnable, first: float) -> dict[str, Any]:
        """Time a verified configuration; ``first`` is the time of its first launch, ms. Returns
        status, times, times of stages, begin and end; ``slow`` with the shortest of two
        launches, more of a short kernel, only if all exceed the early-stop threshold."""
        context, device = self._context, self.device
        by_host = isinstance(work, HostRun)
        # The baseline is what everything is compared with: always known well.
        compared_with = configuration == context.baseline
        if first > context.method.slow_factor * context.mark_ms:
            # A busy host delays launches, also between their events; work that it drives touches
            # memory for the first time.
            more = max(1, min(MOST_LOOKED_AT, int(LOOKED_AT_MS / first)))
            with context.spending("time"):
                first = min(first, *times_ms(device, work, more))
        if first > context.method.slow_factor * context.mark_ms and not compared_with:
            reason = f"launches of {first / context.mark_ms:.1f} times the best so far"
            once = Repeated([first], "host" if by_host else "events", 1)
            return timed_row("slow", once, "warm") | {"reason": reason}
        best = math.inf if compared_with else context.best_ms
        with context.spending("time"):
            began = time.monotonic()
            times, l2 = context.time(self.session, work, first, best)
            when = {"began": began, "ended": time.monotonic()}
            stages = self.session.stages(work)
        return timed_row("ok", times, l2) | when | {f"{k}_ms": v for k, v in stages.items()}


def measure_energy(context: ProblemContext, session: Session, configuration: Configuration) -> None:
    """Run a configuration long enough for the card's energy counter, and report the interval."""
    if not context.method.energy_ms:
        return
    with unless_fatal():
        work = session.launch(configuration)
        if work.restores:
            # Between launches the copies would be counted, and without them data would be wrong.
            return
        names = {**context.problem, **configuration}
        once = statistics.median(times_ms(context.device, work, 3))
        short = once < len(work.launches) * context.method.graph_below_us / 1e3
        context.say({"event": "energy", "names": names, **sustained(context, work, once, short)})


def sustained(
    context: ProblemContext, work: Runnable | LibraryRun, once_ms: float, in_graphs: bool
) -> dict[str, Any]:
    """Run work back to back for ``energy_ms``, after a third of that to settle.

    ``once_ms``: what one problem takes alone, ms. ``in_graphs``: whether graphs are replayed, since
    the host queues launches more slowly than the device runs them. Returns ``began`` and ``ended``,
    s, of the host's clock, ``launches`` (runs of a problem) and ``time_ms`` of one.
    """
    device, method = context.device, context.method
    once = max(once_ms * work.solves, 1e-3)
    in_graph = min(MOST_LAUNCHES_PER_GRAPH, math.ceil(10 * GRAPH_MS / once))

    def run(launches: int) -> float | None:
        if isinstance(work, HostRun):
            times_ms(device, work, launches)
        elif in_graphs:
            count = math.ceil(launches / in_graph)
            return statistics.median(replayed(device, work, count, in_graph).times_ms)
        else:
            device.sustain(work, launches)
        return None

    launches = math.ceil(method.energy_ms / once)
    run(math.ceil(launches / 3))
    if in_graphs:
        launches = in_graph * math.ceil(launches / in_graph)
    began = time.monotonic()
    found = run(launches)
    ended = time.monotonic()
    solved = launches * work.solves
    time_ms = 1e3 * (ended - began) / solved if found is None else found
    return {"began": began, "ended": ended, "launches": solved, "time_ms": time_ms}


@contextlib.contextmanager
def unless_fatal() -> Iterator[None]:
    """Ignore non-fatal errors: those of a configuration are in its own row."""
    try:
        yield
    except OutOfMemory:
        pass
    except LaunchFailed as error:
        if error.fatal:
            raise


class OpenLayouts:
    """Layouts of configurations in any order, kept open while memory lasts."""

    def __init__(self, context: ProblemContext) -> None:
        self._context = context
        self._open: dict[Any, LayoutRun] = {}

    def of(self, configuration: Configuration) -> LayoutRun:
        """The layout of a configuration; OutOfMemory when it does not fit even alone."""
        layout = self._context.workload.layout(configuration)
        if layout not in self._open:
            try:
                self._open[layout] = LayoutRun(self._context, layout)
            except OutOfMemory:
                if not self._open:
                    raise
                self.close()
                self._open[layout] = LayoutRun(self._context, layout)
        return self._open[layout]

    def close(self) -> None:
        for run in self._open.values():
            run.close()
        self._open.clear()
