"""The measuring process's part: rounds in which each configuration runs once, in random order.

It reports ``entered`` with the outcome of each configuration's verification, then ``round`` with
the times of all of them and when each was taken, at last ``sustained`` with what launches back to
back took; ``start`` before a configuration is touched.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass

from launchwise.base.robust import LEAST_ROUNDS, paired_ratio
from launchwise.experiment.method import peer_of
from launchwise.measuring.measure import (
    GRAPH_MS,
    MOST_LAUNCHES_PER_GRAPH,
    LaunchFailed,
    LayoutRun,
    OpenLayouts,
    OutOfMemory,
    ProblemContext,
    replayed,
    sustained,
    times_ms,
)
from launchwise.measuring.repeats import RESTORED, complaint
from launchwise.workloads.device import HostRun, LibraryRun, Runnable
from launchwise.workloads.space import Configuration

ROUND_MS = 2.0
"""Time that a configuration runs in one round, ms: a median of several launches where they are
short."""

MOST_IN_A_ROUND = 25
MOST_ROUNDS = 400
PATIENCE = 3  # Longest time of a problem over the allowed one, where six rounds take that long
UNSEEN_MS = 1.0  # Longest time of a library outside its events, ms: host work and waiting
LOOK_EVERY = 4  # Rounds between two looks at the intervals


@dataclass(frozen=True)
class Way:
    """Timing method of all configurations of a problem."""

    timer: str  # `events`, `graph`, `restored` or `host`
    l2: str  # whether L2 is `cold` or `warm` before each launch


HOST = Way("host", "warm")


@dataclass
class Entered:
    """A configuration whose result was right."""

    configuration: Configuration
    shortest_ms: float  # of a few launches
    launches: int  # kernels that it launches one after the other
    by_host: bool  # whether the host drives it
    fits_l2: bool  # whether what it reads and writes fits L2
    version: str = ""  # of a library
    restored: bool = False  # whether what it changes is put back before each launch


def measure_pairs(
    context: ProblemContext,
    configurations: list[Configuration],
    precision: float,
    seconds: float,
    references: list[int],
    replays: bool = True,
    back_to_back: Collection[int] = (),
) -> None:
    """Verify configurations and libraries on one problem, then report rounds of all of them. Ends
    when the 95 % interval of each ratio to each reference is at most ``precision`` to either side,
    or when the time is spent.

    ``seconds``: longest time of the rounds; up to :data:`PATIENCE` times as long for the first six.
    ``references``: places in ``configurations`` of those that the others are compared with.
    ``replays``: whether short launches may be replayed in graphs.
    ``back_to_back``: places in ``configurations`` of those that run back to back after the rounds.
    Raises LaunchFailed only when the context is lost.
    """
    runs = OpenLayouts(context)
    home = next(each for each in configurations if peer_of(each) is None)
    try:
        found = [_enter(context, runs, each, home) for each in configurations]
        entered = [each for each in found if isinstance(each, Entered)]
        way = _way(context, entered, replays)
        context.say(
            {
                "event": "entered",
                "configurations": configurations,
                "found": [_outcome(each, way) for each in found],
            }
        )
        if len(entered) < 2:
            return
        kept = [place for place, each in enumerate(found) if isinstance(each, Entered)]
        columns = [kept.index(place) for place in references if place in kept]
        rounds = Rounds(context, runs, entered, way, home)
        began = time.monotonic()
        while not rounds.known(columns, precision) and len(rounds.times) < MOST_ROUNDS:
            spent = time.monotonic() - began
            allowed = seconds * (PATIENCE if len(rounds.times) < LEAST_ROUNDS else 1)
            if rounds.times and spent > allowed:
                break
            rounds.run()
        if context.method.energy_ms:
            for place in (each for each in kept if each in back_to_back):
                rounds.sustain(kept.index(place))
    finally:
        runs.close()


def _insist_on_stream(context: ProblemContext, work: LibraryRun, shortest_ms: float) -> None:
    """A library that works where no event sees it would seem to take no time. Raises RuntimeError
    when it takes much longer by the host's clock than by events."""
    times = []
    for _ in range(3):
        work.restore()
        context.device.synchronize()
        began = time.perf_counter()
        work.queue(None)
        context.device.synchronize()
        times.append(1e3 * (time.perf_counter() - began))
    if min(times) > 2 * shortest_ms + UNSEEN_MS:
        said = f"{min(times):.3g} ms by the host's clock, {shortest_ms:.3g} ms by events"
        raise RuntimeError(f"it does not work on the stream that is timed: {said}")


def _outcome(found: Entered | dict[str, str], way: Way) -> dict[str, str]:
    """Status of a configuration, and how it is timed if it is."""
    if not isinstance(found, Entered):
        return {**found, "timer": "", "l2": ""}
    timed = asdict(HOST if found.by_host else way)
    version = {"version": found.version} if found.version else {}
    return {"status": "ok", "reason": "", **timed, **version}


_Working = tuple[LayoutRun, Runnable | LibraryRun]


def _work(runs: OpenLayouts, configuration: Configuration, home: Configuration) -> _Working:
    """Work of a configuration, or of a library in the session of the configuration ``home``."""
    name = peer_of(configuration)
    run = runs.of(configuration if name is None else home)
    return run, run.session.launch(configuration) if name is None else run.session.peer(name)


def _enter(
    context: ProblemContext, runs: OpenLayouts, configuration: Configuration, home: Configuration
) -> Entered | dict[str, str]:
    """Run a configuration on poisoned outputs and compare them with the reference."""
    context.say({"event": "start", **context.problem, **configuration})
    device = context.device
    try:
        with context.spending("verify"):
            run, work = _work(runs, configuration, home)
            run.session.poison()
            times_ms(device, work, 1)
            if isinstance(work, LibraryRun):
                work.deliver()
            if wrong := complaint(run.session.check()):
                return {"status": "wrong", "reason": wrong}
        with context.spending("warm_up"):
            shortest = min(times_ms(device, work, 3))
            if isinstance(work, LibraryRun):
                _insist_on_stream(context, work, shortest)
    except LaunchFailed as error:
        if error.fatal:
            raise
        return {"status": "failed", "reason": str(error)}
    except OutOfMemory as error:
        return {"status": "out_of_memory", "reason": str(error)}
    except Exception as error:
        # A library may raise what it likes; our own mistakes must not be taken for a failed row.
        if peer_of(configuration) is None:
            raise
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}".splitlines()[0]}
    by_host = isinstance(work, HostRun)
    fits_l2 = run.session.working_set_bytes <= device.l2_bytes
    version = work.version if isinstance(work, LibraryRun) else ""
    restored = bool(work.restores)
    return Entered(configuration, shortest, len(work.launches), by_host, fits_l2, version, restored)


def _way(context: ProblemContext, entered: list[Entered], replays: bool) -> Way:
    """One way for all that the device does alone, libraries too: two timers, or a cold and a warm
    L2, would be compared with each other. What the host drives is timed by the host's clock, as in
    a sweep."""
    alone = [each for each in entered if not each.by_host]
    if not alone:
        return HOST
    if any(each.restored for each in alone):
        return Way(RESTORED, "cold")
    if context.empties_l2 and any(each.fits_l2 for each in alone):
        return Way("events", "cold")
    limit_ms = context.method.graph_below_us / 1e3
    short = replays and any(each.shortest_ms < each.launches * limit_ms for each in alone)
    return Way("graph" if short else "events", "warm")


@dataclass
class Rounds:
    _context: ProblemContext
    _runs: OpenLayouts
    _entered: list[Entered]
    _way: Way
    _home: Configuration

    def __post_init__(self) -> None:
        self._dice = random.Random(self._context.seed)
        # Median time of each configuration in each round, ms.
        self.times: list[list[float]] = []

    def run(self) -> None:
        """Run every configuration once, in random order, and report it."""
        context = self._context
        order = list(range(len(self._entered)))
        self._dice.shuffle(order)
        times = [0.0] * len(order)
        when = [(0.0, 0.0)] * len(order)
        for place in order:
            entrant = self._entered[place]
            context.say({"event": "start", **context.problem, **entrant.configuration})
            # Anew each time: a session may keep the streams of one configuration only.
            run, work = _work(self._runs, entrant.configuration, self._home)
            with context.spending("time"):
                began = time.monotonic()
                times[place] = statistics.median(self._timed(run, work, entrant))
                when[place] = began, time.monotonic()
        self.times.append(times)
        context.say({"event": "round", "times_ms": times, "when": when})

    def sustain(self, place: int) -> None:
        """Run one configuration back to back, and report it. Not what needs data put back between
        launches: the copies would count."""
        entrant, context = self._entered[place], self._context
        _, work = _work(self._runs, entrant.configuration, self._home)
        if work.restores or (isinstance(work, LibraryRun) and work.overwrites):
            return
        context.say({"event": "start", **context.problem, **entrant.configuration})
        with context.spending("energy"):
            in_graphs = self._way.timer == "graph"
            found = sustained(context, work, entrant.shortest_ms, in_graphs)
            context.say({"event": "sustained", "place": place, **found})

    def _timed(self, run: LayoutRun, work: Runnable | LibraryRun, entrant: Entered) -> list[float]:
        device, shortest = run.device, max(entrant.shortest_ms, 1e-3)
        count = max(1, min(MOST_IN_A_ROUND, math.ceil(ROUND_MS / shortest)))
        if isinstance(work, HostRun):
            # The first run after another configuration touches its memory for the first time.
            times_ms(device, work, 1)
            return times_ms(device, work, count)
        if self._way.timer == "graph":
            launches = min(MOST_LAUNCHES_PER_GRAPH, math.ceil(GRAPH_MS / shortest))
            replays = max(3, min(MOST_IN_A_ROUND, math.ceil(ROUND_MS / (shortest * launches))))
            return replayed(device, work, replays, launches).times_ms
        return times_ms(device, work, count, self._way.l2 == "cold")

    def known(self, references: list[int], precision: float) -> bool:
        """Whether every ratio to every reference is known well enough."""
        number = len(self.times)
        if number < LEAST_ROUNDS or (number - LEAST_ROUNDS) % LOOK_EVERY:
            return False
        by_place = list(zip(*self.times, strict=True))
        clocks = [0.0] * number
        return all(
            paired_ratio(by_place[reference], times, clocks, clocks, 1.0).half_width <= precision
            for reference in references
            for place, times in enumerate(by_place)
            if place != reference
        )
