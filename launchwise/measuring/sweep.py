"""The ``sweep`` stage: a supervisor that keeps a measuring process busy and a journal complete.

The supervisor never touches CUDA. It knows which configuration is being measured, so a crash, a
hang or a lost context becomes a row with a status and a reason, and a new process goes on. Rows
measured while the card was throttled or its control had drifted are measured once more at the end.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from launchwise.errors import UserError
from launchwise.measuring.journal import Journal
from launchwise.measuring.listening import Interrupted, Listener, interrupted, run_child
from launchwise.measuring.parts import Parts
from launchwise.measuring.progress import Progress
from launchwise.measuring.rows import make_row
from launchwise.measuring.telemetry import THROTTLED, Telemetry
from launchwise.settings import Method
from launchwise.space import Configuration, Problem, baseline, configurations
from launchwise.spec import Spec

__all__ = ["EXIT_RESUMABLE", "Interrupted", "Shard", "measure_shard", "remaining"]

CONTROL_SHARE = 1 / 32
"""Part of the card's memory that the control may hold while everything else is measured."""

PATIENCE = 3
"""Measuring processes that may die in a row without one new measurement."""

EXIT_RESUMABLE = 75
"""Exit code after SIGTERM: what was measured is kept, run the same command again."""


@dataclass(frozen=True)
class Shard:
    """A part of a sweep, ready to be measured.

    Parameters
    ----------
    gpu_facts
        Names for constraints (see :data:`launchwise.spec.GPU_NAMES`).
    labels
        Columns that are the same in every row: gpu, workload, card, driver, toolkit, backend,
        commit.
    command, environment, job
        How to start the measuring process and what else it must know.
    parts
        Where its kernels come from.
    guesses
        What an explorer shall try first for a problem, best first; nothing when left out.
    """

    spec: Spec
    folder: Path
    problems: list[Problem]
    method: Method
    seed: int
    gpu_facts: Mapping[str, Any]
    labels: Mapping[str, str]
    command: list[str]
    environment: Mapping[str, str]
    parts: Parts
    job: Mapping[str, Any] = field(default_factory=dict)
    guesses: Callable[[Problem], list[Configuration]] | None = None

    def own(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of this shard's problems: a journal may hold others, of an earlier list."""
        wanted = {tuple(problem.values()) for problem in self.problems}
        columns = self.spec.problem_columns
        return [row for row in rows if tuple(row[name] for name in columns) in wanted]

    def size(self) -> int:
        """Rows that the finished shard has; of an explorer, at most."""
        if (budget := self.method.strategy.budget) is not None:
            return budget * len(self.problems)
        feasible = (configurations(self.spec, each, self.gpu_facts) for each in self.problems)
        return sum(len(found) for found in feasible)


def measure_shard(
    shard: Shard,
    journal: Journal,
    telemetry: Telemetry | None = None,
    progress: Progress | None = None,
) -> None:
    """Measure whatever ``journal`` lacks of ``shard``; the journal must be open.

    Parameters
    ----------
    telemetry
        What the card does meanwhile, running; its figures stay empty without.
    progress
        Where to show how far the sweep is.

    Raises
    ------
    UserError
        When measuring processes die again and again without a measurement, or kernels cannot be
        compiled.
    Interrupted
        After SIGTERM or SIGINT, once the row in hand is written.
    """
    with _stop_requests() as stop:
        _note_what_does_not_fit(shard, journal)
        barren = 0
        while tasks := (
            remaining(shard, journal)
            or second_attempts(shard, journal)
            or (energy_tasks(shard, journal) if telemetry else [])
        ):
            if stop:
                raise interrupted(stop, journal)
            listener = Listener(shard, journal, stop, telemetry, progress)
            reason = run_child(shard, tasks, control_of(shard, journal), listener)
            barren = 0 if listener.rows or listener.done else barren + 1
            if barren >= PATIENCE:
                raise UserError("sweep", str(shard.labels["gpu"]), f"cannot measure: {reason}")


def remaining(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks (see :class:`launchwise.measuring.serving.Task`) for everything that has no row yet."""
    if shard.method.strategy.kind != "exhaustive":
        return _to_explore(shard, journal)
    marks = _marks(shard.spec, journal.rows)
    tasks = []
    for problem in shard.problems:
        todo = [
            configuration
            for configuration in configurations(shard.spec, problem, shard.gpu_facts)
            if {"gpu": shard.labels["gpu"], **problem, **configuration} not in journal
        ]
        if todo:
            known = marks.get(tuple(problem.values()), {})
            tasks.append({"problem": problem, "configurations": todo, **known})
    # The control is measured first: until then there is nothing to hold the card to.
    control = control_problem(shard)
    return sorted(tasks, key=lambda task: task["problem"] != control)


def _to_explore(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks for problems whose budget is not spent and whose space has not come to an end."""
    spec, strategy = shard.spec, shard.method.strategy
    ended = [
        note["problem"]
        for note in journal.notes
        if note["note"] == "explored" and note["budget"] >= (strategy.budget or 0)
    ]
    rows = _by_problem(spec, journal.rows)
    marks = _marks(spec, journal.rows)
    tasks: list[dict[str, Any]] = []
    for problem in shard.problems:
        if problem in ended:
            continue
        key = tuple(problem.values())
        known = [
            [{name: row[name] for name in spec.tunable_columns}, row["time_ms"]]
            for row in rows.get(key, [])
        ]
        explore = {
            "kind": strategy.kind,
            "budget": strategy.budget,
            "guesses": shard.guesses(problem) if shard.guesses else [],
            "known": known,
            "gpu_facts": dict(shard.gpu_facts),
        }
        tasks.append(
            {
                "problem": problem,
                "configurations": [],
                "explore": explore,
                **marks.get(key, {}),
            }
        )
    return tasks


def control_problem(shard: Shard) -> Problem | None:
    """The largest problem that leaves the card to the others: a long kernel has a steady time."""
    if not shard.method.control_s:
        return None
    spec, capacity = shard.spec, shard.gpu_facts["gpu_memory_bytes"]
    small = [
        problem
        for problem in shard.problems
        if spec.value(spec.work.footprint_bytes, problem) <= CONTROL_SHARE * capacity
    ]
    return max(small, key=lambda problem: spec.value(spec.work.bytes, problem), default=None)


def control_of(shard: Shard, journal: Journal) -> dict[str, Any] | None:
    """What :class:`launchwise.measuring.control.Watched` needs: the baseline of one problem.

    None where none is wanted, or where it was measured and is not right. The first time that this
    card took for it is the reference, also in a later visit; another card of the same model has a
    reference of its own.
    """
    problem = control_problem(shard)
    if problem is None:
        return None
    spec = shard.spec
    configuration = baseline(spec)
    names = {"gpu": shard.labels["gpu"], **problem, **configuration}
    found = [
        row for row in journal.rows if all(row[name] == names[name] for name in spec.key_columns)
    ]
    if found and found[0]["status"] != "ok":
        return None
    times = [
        note["time_ms"]
        for note in journal.notes
        if note["note"] == "control"
        and (note["card"], note["problem"]) == (shard.labels["card"], problem)
    ]
    return {
        "problem": problem,
        "configuration": configuration,
        "known": bool(found),
        "reference_ms": times[0] if times else None,
    }


def second_attempts(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks for rows that were measured once, while something was not as it should be.

    That is: the control was off its first time, or the card was throttled and its clock lower than
    the highest of the sweep, by more than the method's ``drift``.
    """
    spec, gpu = shard.spec, shard.labels["gpu"]
    fastest = max((row["sm_clock_mhz"] or 0.0 for row in journal.rows), default=0.0)
    drifted = {
        tuple(names)
        for note in journal.notes
        if note["note"] == "control" and abs(note["ratio"] - 1) > shard.method.drift
        for names in note["rows"]
    }
    marks = _marks(spec, journal.rows)
    doubtful: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in journal.rows:
        key = tuple(row[name] for name in spec.key_columns)
        held_back = (row["sm_clock_mhz"] or fastest) < (1 - shard.method.drift) * fastest
        throttled = held_back and THROTTLED & set(row["throttle"].split("+"))
        again = row["status"] == "ok" and row["attempt"] == 1 and row["gpu"] == gpu
        if again and (throttled or key in drifted):
            problem = tuple(row[name] for name in spec.problem_columns)
            names = {name: row[name] for name in spec.tunable_columns}
            doubtful.setdefault(problem, []).append(names)
    wanted = {tuple(problem.values()): problem for problem in shard.problems}
    return [
        {"problem": wanted[key], "configurations": todo, "attempt": 2, **marks.get(key, {})}
        for key, todo in doubtful.items()
        if key in wanted
    ]


def energy_tasks(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks for the energy of each problem's best and baseline, the control's among them.

    After everything else: loops this long heat the card.
    """
    if not shard.method.energy_ms:
        return []
    spec, default = shard.spec, baseline(shard.spec)
    done = [note["problem"] for note in journal.notes if note["note"] == "energies"]
    found = _by_problem(spec, [row for row in journal.rows if row["status"] == "ok"])
    tasks: list[dict[str, Any]] = []
    for problem in shard.problems:
        rows = found.get(tuple(problem.values()), [])
        if problem in done or not rows:
            continue
        best = min(rows, key=lambda row: row["time_ms"])
        wanted = [{name: best[name] for name in spec.tunable_columns}]
        if wanted[0] != default and any(
            all(row[name] == value for name, value in default.items()) for row in rows
        ):
            wanted.append(default)
        tasks.append({"problem": problem, "configurations": wanted, "energy": True})
    return tasks


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


def _marks(spec: Spec, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, float]]:
    """``best_ms`` and ``mark_ms`` of problems (see :class:`.measure.ProblemContext`)."""
    ok = _by_problem(spec, [row for row in rows if row["status"] == "ok"])
    return {
        key: {
            "best_ms": min(row["time_ms"] for row in members),
            "mark_ms": min(max(row["time_ms"], row["first_ms"]) for row in members),
        }
        for key, members in ok.items()
    }


def _by_problem(
    spec: Spec, rows: list[dict[str, Any]]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Values of a problem to its rows, in order."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in spec.problem_columns), []).append(row)
    return found


def _note_what_does_not_fit(shard: Shard, journal: Journal) -> None:
    """Rows for problems whose buffers exceed the card, without trying."""
    capacity = shard.gpu_facts["gpu_memory_bytes"]
    for task in remaining(shard, journal):
        needed = shard.spec.value(shard.spec.work.footprint_bytes, task["problem"])
        if needed > capacity:
            reason = f"needs {needed / 1e9:.1f} GB, the card has {capacity / 1e9:.1f} GB"
            found = {"status": "out_of_memory", "reason": reason}
            if task.get("explore"):
                budget = shard.method.strategy.budget
                journal.note("explored", problem=task["problem"], budget=budget)
            # An explorer's baseline stands for all that was not tried.
            for configuration in task["configurations"] or [baseline(shard.spec)]:
                names = {**task["problem"], **configuration}
                journal.append(make_row(shard.labels, names, found))


@contextlib.contextmanager
def _stop_requests() -> Iterator[list[int]]:
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
