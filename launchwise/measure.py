"""Measuring one configuration after another on an open device.

This runs in the measuring process. It says what it does in JSON lines: ``start`` before a
configuration is touched, ``row`` when it is done, ``problem`` when a problem's inputs are ready.
Whoever reads them (:mod:`launchwise.sweep`) knows after a crash which configuration was to blame.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from launchwise.settings import Method
from launchwise.space import Configuration, Problem
from launchwise.storage import digest
from launchwise.workload import Device, Launch, Session, Workload

Say = Callable[[dict[str, Any]], None]


class LaunchFailed(Exception):
    """A launch was refused or failed; ``fatal`` when the device's context is lost with it."""

    def __init__(self, reason: str, fatal: bool) -> None:
        super().__init__(reason)
        self.fatal = fatal


class OutOfMemory(Exception):
    """The device has not enough free memory."""


class TimingDevice(Device, Protocol):
    """A device that can also time launches."""

    l2_bytes: int

    def timed(self, launch: Launch, repeats: int, flush: bool) -> list[float]:
        """Launch ``repeats`` times; milliseconds of each, L2 emptied before each if ``flush``."""

    def resources(self, launch: Launch) -> dict[str, int]:
        """Registers, spill_bytes and shared_bytes of the launched kernel."""


@dataclass(frozen=True)
class Task:
    """One problem and what is still to be measured of it.

    ``best_ms`` is the best time known so far (None at the beginning).
    """

    problem: Problem
    configurations: list[Configuration]
    best_ms: float | None = None


def relative_error(times_ms: list[float]) -> float:
    """Relative standard error of the median of ``times_ms``; infinite for a single time.

    The spread comes from the median absolute deviation (times 1.4826, as for a normal law), so that
    one disturbed repeat does not hide how steady the others are; the median's standard error is
    1.2533 times the mean's.
    """
    if len(times_ms) < 2:
        return math.inf
    median = statistics.median(times_ms)
    spread = 1.4826 * statistics.median(abs(time - median) for time in times_ms)
    return 1.2533 * spread / math.sqrt(len(times_ms)) / median


def problem_seed(seed: int, problem: Mapping[str, Any]) -> int:
    """Seed of a problem's inputs and order: the same problem gets the same one in every run."""
    return (seed + int(digest(dict(problem)), 16)) % 2**48


def serve(
    device: TimingDevice,
    workload: Workload,
    method: Method,
    tasks: list[Task],
    seed: int,
    say: Say,
) -> None:
    """Measure every configuration of ``tasks`` in order and say a row for each.

    Raises
    ------
    LaunchFailed
        When the context is lost; the configuration at fault was announced by ``start``.
    """
    for task in tasks:
        inputs_seed = problem_seed(seed, task.problem)
        if complaint := workload.self_check(device, task.problem, inputs_seed):
            raise LaunchFailed(complaint, fatal=True)
        _measure_problem(device, workload, method, task, inputs_seed, say)


def _measure_problem(
    device: TimingDevice, workload: Workload, method: Method, task: Task, seed: int, say: Say
) -> None:
    best: float = task.best_ms if task.best_ms is not None else math.inf
    for layout, configurations in _by_layout(workload, task.configurations, seed):
        say({"event": "problem", "problem": task.problem})
        try:
            session = workload.open(device, task.problem, layout, seed)
        except OutOfMemory as error:
            for configuration in configurations:
                row = {"status": "out_of_memory", "reason": str(error)}
                say(_said(task.problem, configuration, seed, row))
            continue
        try:
            for number, configuration in enumerate(configurations):
                say({"event": "start", **task.problem, **configuration})
                if number == 0:
                    # After its start: a process that dies in here must not leave nobody to blame.
                    _warm_up(device, session, configuration)
                row = measure(device, session, configuration, method, best)
                if row["status"] == "ok":
                    best = min(best, float(row["time_ms"]))
                say(_said(task.problem, configuration, seed, row))
        finally:
            session.close()


def _said(
    problem: Problem, configuration: Configuration, seed: int, row: dict[str, Any]
) -> dict[str, Any]:
    return {"event": "row", **problem, **configuration, "seed": seed, **row}


def _by_layout(
    workload: Workload, configurations: list[Configuration], seed: int
) -> Iterator[tuple[Any, list[Configuration]]]:
    """Configurations grouped by layout, in random order from ``seed``, the very first one first.

    The first is the baseline in a fresh sweep: it sets the mark that hopeless ones are held to.
    """
    groups: dict[Any, list[Configuration]] = {}
    for configuration in configurations:
        groups.setdefault(workload.layout(configuration), []).append(configuration)
    shuffle = random.Random(seed).shuffle
    for layout, members in groups.items():
        rest = members[1:]
        shuffle(rest)
        yield layout, [members[0], *rest]


def _warm_up(device: TimingDevice, session: Session, configuration: Configuration) -> None:
    """Bring clocks and caches to a working state, about 20 ms of launches.

    A configuration that cannot be launched shows that in its own row, not here.
    """
    try:
        launch = session.launch(configuration)
        once = device.timed(launch, 1, flush=False)[0]
        device.timed(launch, max(1, min(200, int(20.0 / max(once, 1e-3)))), flush=False)
    except OutOfMemory:
        pass
    except LaunchFailed as error:
        if error.fatal:
            raise


def measure(
    device: TimingDevice,
    session: Session,
    configuration: Configuration,
    method: Method,
    best_ms: float,
) -> dict[str, Any]:
    """Verify and time one configuration.

    Returns
    -------
    Columns of the measurement that do not name it: status, reason, times and resources.

    Raises
    ------
    LaunchFailed
        Only when the context is lost.
    """
    row: dict[str, Any] = {"status": "failed", "reason": ""}
    try:
        launch = session.launch(configuration)
        row |= device.resources(launch)
        session.poison()
        first = device.timed(launch, 1, flush=False)[0]
        found = session.check()
        # Neither the journal nor the table takes NaN or infinity; the reason says it.
        finite = math.isfinite(found.max_error)
        max_error = found.max_error if finite else None
        row |= {"first_ms": first, "max_error": max_error, "tolerance": found.tolerance}
        if found.wrong or not finite:
            reason = found.wrong or f"the largest error is {found.max_error}"
            return row | {"status": "wrong", "reason": reason}
        if first > method.slow_factor * best_ms:
            reason = f"first launch {first / best_ms:.1f} times the best so far"
            return row | _timed("slow", [first], "warm") | {"reason": reason}
        flush = session.working_set_bytes <= device.l2_bytes
        times = _repeat(device, launch, method, first, flush)
        return row | _timed("ok", times, "cold" if flush else "warm")
    except LaunchFailed as error:
        if error.fatal:
            raise
        return row | {"reason": str(error)}
    except OutOfMemory as error:
        return row | {"status": "out_of_memory", "reason": str(error)}


def _timed(status: str, times: list[float], l2: str) -> dict[str, Any]:
    spread = relative_error(times)
    return {
        "status": status,
        "time_ms": statistics.median(times),
        "times_ms": times,
        "repeats": len(times),
        "relative_error": spread if math.isfinite(spread) else None,
        "l2": l2,
    }


def _repeat(
    device: TimingDevice, launch: Launch, method: Method, first: float, flush: bool
) -> list[float]:
    """Repeat until the median is known well enough or the budget of device time is spent."""
    repeats = method.repeats
    long = first * repeats.minimum > repeats.budget_ms
    batch = min(repeats.few, repeats.minimum) if long else repeats.minimum
    times = device.timed(launch, batch, flush)
    while (
        len(times) < repeats.maximum
        and sum(times) < repeats.budget_ms
        and relative_error(times) > repeats.precision
    ):
        times += device.timed(launch, min(batch, repeats.maximum - len(times)), flush)
    return times
