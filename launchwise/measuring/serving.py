"""Serving the tasks of a measuring process.

It reports in JSON lines: ``problem`` when one is begun, ``start`` before a
configuration is touched, ``row`` when it is done, ``control`` and ``energy`` when those were
measured, ``done`` with the seconds that a problem took. Whoever reads them
(:mod:`launchwise.measuring.listening`) knows after a crash which configuration was to blame.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from launchwise.base.storage import digest
from launchwise.experiment.method import Method
from launchwise.gpus.machine import Fastest
from launchwise.measuring.explore import RandomDraws, TransferExplorer
from launchwise.measuring.measure import (
    LaunchFailed,
    LayoutRun,
    OpenLayouts,
    OutOfMemory,
    ProblemContext,
    Say,
    TimingDevice,
    measure_energy,
    times_ms,
    unless_fatal,
)
from launchwise.measuring.pairs.rounds import measure_pairs
from launchwise.measuring.repeats import Rest
from launchwise.workloads.builds import Build
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.workload import Workload


@dataclass(frozen=True)
class Watched:
    """Problem and configuration of the reference kernel."""

    problem: Problem
    configuration: Configuration
    known: bool = False  # whether it was measured and verified before
    reference_ms: float | None = None  # its first time on this card, ms; None if not measured yet


@dataclass
class Control:
    """Measures the reference kernel at intervals and reports its time relative to the first one. It
    runs only after it has been verified as a row of its own, where a failure or crash shows. It is
    disabled if its buffers do not fit beside those of the sweep."""

    _context: ProblemContext
    _watched: Watched

    def __post_init__(self) -> None:
        self._reference_ms = self._watched.reference_ms
        self._run: LayoutRun | None = None
        self._given_up = False
        self._measured_at = 0.0
        self._rows = 0
        if self._watched.known:
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


Need = Callable[[Sequence[Build]], None]

AHEAD = 16  # Proposals whose kernels a search asks for before it makes them

EXPLORERS: dict[str, Any] = {"random": RandomDraws, "transfer": TransferExplorer}
"""Strategy of the settings to its explorer."""


@dataclass(frozen=True)
class Task:
    """One problem and its configurations still to be measured.

    ``best_ms`` and ``mark_ms`` are what :class:`ProblemContext` knows already of the problem (None
    at the beginning); ``attempt`` is 2 for rows that are measured again. With
    ``explore`` (kind, budget, seconds, guesses, known, gpu_facts and, of a search that starts from
    other GPUs, prior), what is measured is chosen by an explorer, and ``configurations`` is empty.
    With ``energy``, they are not timed but run in loops long enough for the card's counter. With
    ``pairs`` (precision, seconds, references), they run in turn (see
    :mod:`launchwise.measuring.pairs.rounds`).
    """

    problem: Problem
    configurations: list[Configuration]
    best_ms: float | None = None
    mark_ms: float | None = None
    attempt: int = 1
    explore: dict[str, Any] | None = None
    energy: bool = False
    pairs: dict[str, Any] | None = None


def problem_seed(seed: int, problem: Mapping[str, Any]) -> int:
    """Seed of a problem's inputs and order: the same problem gets the same one in every run."""
    return (seed + int(digest(dict(problem)), 16)) % 2**48


def serve(
    device: TimingDevice,
    workload: Workload,
    method: Method,
    tasks: Iterable[Task],
    seed: int,
    say: Say,
    watched: Watched | None = None,
    fastest: Fastest = Fastest(),  # noqa: B008 (frozen)
    need: Need = lambda _: None,
) -> None:
    """Measure every configuration of ``tasks`` in order and report a row for each. ``watched``: the
    reference kernel, measured at intervals. ``fastest``: peak rates of the device, which bound the
    run times of kernels; without them any problem may have short kernels. ``need``: waits for the
    first of some builds, and asks for the others; without it all are there. Raises LaunchFailed
    when the context is lost; ``start`` announced the configuration at fault."""

    def context(task: Task) -> ProblemContext:
        problem, seeded = task.problem, problem_seed(seed, task.problem)
        best, mark = (math.inf if ms is None else ms for ms in (task.best_ms, task.mark_ms))
        how = (device, workload, method, problem, task.attempt)
        return ProblemContext(*how, best, mark, seeded, say, rest, fastest)

    rest = Rest(method.rest)
    control: Control | None = None
    for task in tasks:
        if watched is not None and control is None:
            # Not before the first task: its kernels are there now.
            control = Control(context(Task(watched.problem, [])), watched)
        of_task = context(task)
        if control is not None:
            of_task.after_row = partial(control.after, task.problem)
        _measure_problem(of_task, task, need)
        if control is not None:
            # Whoever hears that it is done may ask at once which rows are in doubt.
            with of_task.spending("control"):
                control.settle()
        say({"event": "done", "problem": task.problem, "seconds": of_task.seconds})
    if control is not None:
        control.close()


def _measure_problem(context: ProblemContext, task: Task, need: Need) -> None:
    problem = task.problem
    context.say(
        {
            "event": "problem",
            "problem": problem,
            "attempt": task.attempt,
            "explored": task.explore is not None,
            "energy": task.energy,
        }
    )
    with context.spending("inputs"):
        complaint = context.workload.self_check(context.device, problem, context.seed)
    if complaint:
        raise LaunchFailed(complaint, fatal=True)
    if task.energy:
        _measure_energies(context, task.configurations)
    elif task.pairs is not None:
        measure_pairs(context, task.configurations, **task.pairs)
    elif task.explore is None:
        for layout, configurations in _by_layout(context, task.configurations):
            _measure_layout(context, layout, configurations)
    else:
        _explore(context, task.explore, need)


def _measure_energies(context: ProblemContext, configurations: list[Configuration]) -> None:
    for layout, members in _by_layout(context, configurations):
        with unless_fatal(), closing(LayoutRun(context, layout)) as run:
            for configuration in members:
                with context.spending("energy"):
                    measure_energy(context, run.session, configuration)


def _by_layout(
    context: ProblemContext, configurations: list[Configuration]
) -> Iterator[tuple[Any, list[Configuration]]]:
    """Configurations grouped by layout, in random order after the first one. In a fresh sweep the
    first is the baseline, which sets the early-stop threshold."""
    groups: dict[Any, list[Configuration]] = {}
    for configuration in configurations:
        groups.setdefault(context.workload.layout(configuration), []).append(configuration)
    shuffle = random.Random(context.seed).shuffle
    for layout, members in groups.items():
        rest = members[1:]
        shuffle(rest)
        yield layout, [members[0], *rest]


def _measure_layout(
    context: ProblemContext, layout: Any, configurations: list[Configuration]
) -> None:
    try:
        run = LayoutRun(context, layout)
    except OutOfMemory as error:
        for configuration in configurations:
            context.say_row(configuration, {"status": "out_of_memory", "reason": str(error)})
        return
    with closing(run):
        for configuration in configurations:
            run.measure(configuration)


def _explore(context: ProblemContext, how: dict[str, Any], need: Need) -> None:
    """Measure an explorer's proposals until its budget or its time is spent, or none is left. To
    wait for a compiler takes none of that time."""
    until = time.monotonic() + (how["seconds"] or math.inf)
    names = context.workload.spec.tunable_columns
    prior = [
        (gpu, [(dict(zip(names, values, strict=True)), time_ms) for values, time_ms in measured])
        for gpu, measured in how.get("prior", [])
    ]
    explorer = EXPLORERS[how["kind"]](
        context.workload.spec,
        context.problem,
        how["gpu_facts"],
        how["budget"],
        context.seed,
        how["guesses"],
        [(configuration, time_ms) for configuration, time_ms in how["known"]],
        prior,
        how.get("gpu", {}),
        **how.get("options", {}),
    )
    with closing(OpenLayouts(context)) as runs:
        while (configuration := explorer.propose()) is not None:
            began = time.monotonic()
            ahead = [configuration, *explorer.likely(AHEAD)]
            need([context.workload.build(context.problem, each) for each in ahead])
            until += time.monotonic() - began
            try:
                row = runs.of(configuration).measure(configuration)
            except OutOfMemory as error:
                row = {"status": "out_of_memory", "reason": str(error)}
                context.say_row(configuration, row)
            explorer.tell(configuration, row.get("time_ms"))
            if time.monotonic() > until:
                break
    context.say({"event": "concluded", **explorer.conclusion()})
