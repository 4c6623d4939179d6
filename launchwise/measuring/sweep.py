"""The ``sweep`` stage: a supervisor that keeps a measuring process busy and a journal complete.

The supervisor never touches CUDA. It knows which configuration is being measured, so a crash, a
hang or a lost context becomes a row with a status and a reason, and a new process goes on. Rows in
doubt (throttling, drift, repeats far apart) are measured once more at the end.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from launchwise.base.errors import UserError
from launchwise.measuring.journal import Journal
from launchwise.measuring.listening import (
    Listener,
    explored,
    interrupted,
    kept_rows,
    run_child,
)
from launchwise.measuring.process import MeasuringProcess
from launchwise.measuring.progress import Progress
from launchwise.measuring.rows import make_row
from launchwise.measuring.shard import Shard
from launchwise.measuring.tasks import (
    claim_control,
    control_of,
    energy_tasks,
    remaining,
    second_attempts,
)
from launchwise.measuring.telemetry import Telemetry
from launchwise.workloads.space import Problem, baseline

MAX_BARREN_PROCESSES = 3
"""Most consecutive measuring processes that die without a new measurement."""


def measure_shard(
    shard: Shard,
    journal: Journal,
    telemetry: Telemetry | None = None,
    progress: Progress | None = None,
    started: MeasuringProcess | None = None,
) -> None:
    """Measure the rows of ``shard`` that ``journal`` (open) lacks.

    Problems that the shard takes from others are measured first, then what is in doubt a second
    time, then energies.

    Parameters
    ----------
    telemetry
        What the card does meanwhile, running; its figures stay empty without.
    progress
        Where to show how far the sweep is.
    started
        A measuring process that waits for its job, for the first tasks.

    Raises
    ------
    UserError
        When measuring processes die again and again without a measurement, or kernels cannot be
        compiled.
    Interrupted
        After SIGTERM or SIGINT, once the row in hand is written.
    """

    def afterwards() -> list[dict[str, Any]]:
        return (
            (remaining(shard, journal) if shard.searches_from_others else [])
            or _newly_taken(shard, journal, progress)
            or second_attempts(shard, journal)
            or (energy_tasks(shard, journal) if telemetry else [])
        )

    with stop_requests() as stop:
        claim_control(shard)
        _note_what_does_not_fit(shard, journal, shard.problems)
        barren = 0
        blamed: dict[str, Any] | None = None
        while tasks := remaining(shard, journal) or afterwards():
            if stop:
                raise interrupted(stop, kept_rows(journal))
            listener = Listener(shard, journal, stop, telemetry, progress, afterwards)
            control = control_of(shard, journal)
            reason = run_child(shard, tasks, control, listener, started)
            started = None
            barren = 0 if listener.rows or listener.done else barren + 1
            blamed = listener.blamed or (None if listener.ready else blamed)
            if barren >= MAX_BARREN_PROCESSES:
                if blamed:
                    # The card has not answered since: it was lost, not the configuration at fault.
                    journal.withdraw(blamed)
                raise UserError("sweep", str(shard.labels["gpu"]), f"cannot measure: {reason}")


def seconds_of(notes: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds that a sweep took by what was done, over every visit, from its journal's notes.

    ``total`` is the supervisor's clock; ``start`` to open the device, ``inputs`` to make inputs and
    references, ``verify``, ``warm_up``, ``time``, ``control`` and ``energy`` the measuring process;
    ``compile`` nvcc, beside the rest; ``write`` the journal. What is left of the total is Python
    and waiting.
    """
    seconds: dict[str, float] = {}
    for note in notes:
        if note["note"] == "seconds":
            for name, value in {"total": note["total"], **note["spent"]}.items():
                seconds[name] = seconds.get(name, 0.0) + value
    return {name: round(value, 3) for name, value in seconds.items()}


def _newly_taken(shard: Shard, journal: Journal, progress: Progress | None) -> list[dict[str, Any]]:
    """Tasks of the next problem that no shard has measured yet, if there is one."""
    tasks: list[dict[str, Any]] = []
    while not tasks and (problem := shard.take()):
        _note_what_does_not_fit(shard, journal, [problem])
        tasks = remaining(shard, journal, [problem])
    if progress:
        progress.expect(shard.size())
    return tasks


def _note_what_does_not_fit(shard: Shard, journal: Journal, problems: list[Problem]) -> None:
    """Write rows, without a launch, for problems whose buffers exceed the card's memory."""
    capacity = shard.gpu_facts["gpu_memory_bytes"]
    for problem in problems:
        needed = shard.spec.value(shard.spec.work.footprint_bytes, problem)
        if needed <= capacity:
            continue
        reason = f"needs {needed / 1e9:.1f} GB, the card has {capacity / 1e9:.1f} GB"
        found = {"status": "out_of_memory", "reason": reason}
        for task in remaining(shard, journal, [problem]):
            if task.get("explore"):
                journal.note("explored", problem=problem, **explored(shard))
            # An explorer's baseline stands for all that was not tried.
            for configuration in task["configurations"] or [baseline(shard.spec)]:
                journal.append(make_row(shard.labels, {**problem, **configuration}, found))


@contextlib.contextmanager
def stop_requests() -> Iterator[list[int]]:
    """A list that fills when SIGTERM or SIGINT arrives; handlers are put back afterwards."""
    received: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        received.append(number)

    old = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
