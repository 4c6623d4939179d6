"""The ``sweep`` stage: a supervisor that keeps a measuring process busy and a journal complete.

The supervisor never touches CUDA. It knows which configuration is being measured, so a crash, a
hang or a lost context becomes a row with a status and a reason, and a new process goes on.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

import numpy as np
import pandas as pd

from launchwise.errors import UserError
from launchwise.journal import Journal
from launchwise.provenance import now
from launchwise.settings import Method
from launchwise.space import Problem, configurations
from launchwise.spec import Spec
from launchwise.tables import MEASURED

log = logging.getLogger("launchwise")

PATIENCE = 3
"""Measuring processes that may die in a row without one new measurement."""

EXIT_RESUMABLE = 75
"""Exit code after SIGTERM: what was measured is kept, run the same command again."""


class Interrupted(Exception):
    """SIGTERM or SIGINT arrived; the journal is whole and the sweep can go on later."""


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
    job: Mapping[str, Any] = field(default_factory=dict)


def measure_shard(shard: Shard, journal: Journal) -> None:
    """Measure whatever ``journal`` lacks of ``shard``; the journal must be open.

    Raises
    ------
    UserError
        When measuring processes die again and again without a measurement.
    Interrupted
        After SIGTERM or SIGINT, once the row in hand is written.
    """
    with _stop_requests() as stop:
        _note_what_does_not_fit(shard, journal)
        barren = 0
        while tasks := remaining(shard, journal):
            if stop:
                raise _interrupted(stop, journal)
            before = len(journal.rows)
            reason = _run_child(shard, journal, tasks, stop)
            barren = 0 if len(journal.rows) > before else barren + 1
            if barren >= PATIENCE:
                raise UserError("sweep", str(shard.labels["gpu"]), f"cannot measure: {reason}")


def remaining(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks (see :class:`launchwise.measure.Task`) for everything that has no row yet."""
    best = _best_times(shard.spec, journal.rows)
    tasks = []
    for problem in shard.problems:
        todo = [
            configuration
            for configuration in configurations(shard.spec, problem, shard.gpu_facts)
            if {"gpu": shard.labels["gpu"], **problem, **configuration} not in journal
        ]
        if todo:
            known = best.get(tuple(problem.values()))
            tasks.append({"problem": problem, "configurations": todo, "best_ms": known})
    return tasks


def _best_times(spec: Spec, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], float]:
    best: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if row["status"] == "ok":
            key = tuple(row[name] for name in spec.problem_columns)
            best[key] = min(best.get(key, np.inf), row["time_ms"])
    return best


def _note_what_does_not_fit(shard: Shard, journal: Journal) -> None:
    """Rows for problems whose buffers exceed the card, without trying."""
    capacity = shard.gpu_facts["gpu_memory_bytes"]
    for task in remaining(shard, journal):
        needed = shard.spec.value(shard.spec.work.footprint_bytes, task["problem"])
        if needed > capacity:
            reason = f"needs {needed / 1e9:.1f} GB, the card has {capacity / 1e9:.1f} GB"
            for configuration in task["configurations"]:
                names = {**task["problem"], **configuration}
                journal.append(_row(shard, names, {"status": "out_of_memory", "reason": reason}))


def _row(shard: Shard, names: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """One whole row: labels, names, and neutral values for what was not found."""
    empty: dict[str, Any] = {
        "time_ms": None,
        "times_ms": [],
        "repeats": 0,
        "relative_error": None,
        "first_ms": None,
        "l2": "",
        "max_error": None,
        "tolerance": None,
        "registers": 0,
        "spill_bytes": 0,
        "shared_bytes": 0,
        "reason": "",
        "seed": 0,
    }
    return {**shard.labels, **names, **empty, "measured_at": now(), **found}


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


def _run_child(shard: Shard, journal: Journal, tasks: list[dict[str, Any]], stop: list[int]) -> str:
    """One measuring process, from start to end. Why it ended, or ''."""
    job = {
        "folder": str(shard.folder),
        "method": shard.method.model_dump(mode="json"),
        "seed": shard.seed,
        "tasks": tasks,
        **shard.job,
    }
    # A driver's last words need not be text.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        child = subprocess.Popen(
            shard.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(shard.environment),
            # Its own group: a Ctrl-C reaches the supervisor alone, which lets the row finish.
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            # A thread of its own: a process that hangs before it reads would hold this one, too.
            threading.Thread(target=_send, args=(child.stdin, job), daemon=True).start()
            listener = _Listener(shard, journal, stop)
            listener.listen(child.stdout)
            if listener.silence or listener.fatal:
                child.kill()
            try:
                code = child.wait(shard.method.timeout_s)
            except subprocess.TimeoutExpired:
                child.kill()
                code = child.wait()
                lived_on = "the measuring process closed its pipe and lived on"
                listener.fatal = listener.fatal or lived_on
            errors.seek(0)
            said = errors.read().strip().splitlines()
            listener.blame(code, said[-1] if said else "")
            return listener.fatal or listener.silence or (said[-1] if said else _death(code))
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            child.stdout.close()


def _send(pipe: IO[bytes], job: dict[str, Any]) -> None:
    # A child that dies at once closes the pipe; its exit code says more than this would.
    with contextlib.suppress(BrokenPipeError), pipe:
        pipe.write(json.dumps(job).encode())


class _Listener:
    """Turns the events of one measuring process into journal rows."""

    def __init__(self, shard: Shard, journal: Journal, stop: list[int]) -> None:
        self.shard = shard
        self.journal = journal
        self.stop = stop
        self.in_hand: dict[str, Any] | None = None
        self.silence = ""
        self.fatal = ""

    def listen(self, pipe: IO[bytes]) -> None:
        """Read events until the pipe closes or nothing came for too long."""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            pending = b""
            waited = 0.0
            while waited < self.shard.method.timeout_s:
                if not selector.select(timeout=0.5):
                    waited += 0.5
                    self._maybe_stop()
                    continue
                waited = 0.0
                chunk = os.read(pipe.fileno(), 1 << 16)
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    event = _event(line)
                    if event is None:
                        # Whatever comes behind it cannot be trusted either.
                        said = line[:80].decode(errors="replace")
                        self.fatal = f"the measuring process said what is no event: {said!r}"
                        return
                    self._hear(event)
        self.silence = f"nothing came for {self.shard.method.timeout_s:g} s"

    def _hear(self, event: dict[str, Any]) -> None:
        kind = event.pop("event")
        if kind == "start":
            self.in_hand = event
        elif kind == "row":
            self.journal.append(_row(self.shard, {}, event))
            self.in_hand = None
            self._maybe_stop()
        elif kind == "fatal":
            self.fatal = event["reason"]
        elif kind == "problem":
            log.info(
                "%s: %s (%d rows)",
                self.shard.labels["gpu"],
                event["problem"],
                len(self.journal.rows),
            )

    def _maybe_stop(self) -> None:
        if self.stop and self.in_hand is None:
            raise _interrupted(self.stop, self.journal)

    def blame(self, code: int, last_words: str) -> None:
        """After the end of the process: a row for the configuration that it died in."""
        if self.in_hand is None:
            return
        if self.silence:
            found = {"status": "timeout", "reason": self.silence}
        else:
            # A process that ended by itself said why; one that was ended had no time to.
            said = f": {last_words}" if last_words and code > 0 else ""
            reason = self.fatal or _death(code) + said
            found = {"status": "failed", "reason": reason}
        self.journal.append(_row(self.shard, self.in_hand, found))


def _interrupted(stop: list[int], journal: Journal) -> Interrupted:
    return Interrupted(f"signal {stop[0]}: {len(journal.rows)} rows are kept")


def _event(line: bytes) -> dict[str, Any] | None:
    """The event that a line holds; None when it holds none. NaN is no JSON and refused."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        event = json.loads(line, parse_constant=refuse)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def _death(code: int) -> str:
    if code < 0:
        return f"the measuring process died of {signal.Signals(-code).name}"
    return f"the measuring process ended with code {code}"


def rows_to_table(rows: list[dict[str, Any]], spec: Spec, columns: list[str]) -> pd.DataFrame:
    """Journal rows as a table: sorted by key, missing numbers as NaN, columns in order."""
    table = pd.DataFrame(rows, columns=columns)
    real = ["time_ms", "relative_error", "first_ms", "max_error", "tolerance"]
    table[real] = table[real].astype(float)
    table["times_ms"] = table["times_ms"].map(lambda times: np.asarray(times, dtype=float))
    unmeasured = ~table["status"].isin(MEASURED)
    table.loc[unmeasured, "time_ms"] = np.nan
    return table.sort_values(spec.key_columns, ignore_index=True)
