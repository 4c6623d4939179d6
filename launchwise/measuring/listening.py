"""Supervisor of measuring processes: starts them, reads their events, explains their deaths."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from launchwise.base.errors import Interrupted, UserError
from launchwise.measuring.journal import Journal
from launchwise.measuring.process import KILLED_S, Feeder, MeasuringProcess, death
from launchwise.measuring.progress import Progress
from launchwise.measuring.repeats import make_row
from launchwise.measuring.shard import Shard
from launchwise.measuring.telemetry import Telemetry
from launchwise.workloads.builds import Build
from launchwise.workloads.metrics import UNKNOWN
from launchwise.workloads.space import label

NOTICE_S = 0.5  # Interval at which the supervisor checks for a request to stop, s

MAX_BARREN_PROCESSES = 3  # Most consecutive measuring processes that die without a new measurement

ENERGY_KNOWN_S = 0.3
"""Delay until samples cover an interval, s: energy counters step every 20 to 100 ms."""

CARD_FAULTS = (
    "no CUDA-capable device",
    "uncorrectable ECC error",
    "uncorrectable NVLink error",
    "busy or unavailable",
    "system not yet initialized",
)
"""Parts of CUDA's messages that are about the card, whatever was launched on it."""


def supervise(
    command: str,
    tasks: Callable[[], list[dict[str, Any]]],
    listener_of: Callable[[], Listener],
    control: Callable[[], dict[str, Any] | None] = lambda: None,
    started: MeasuringProcess | None = None,
) -> None:
    """Run measuring processes until no tasks are left, whatever these die of.

    ``command``: who asks, for messages. ``tasks``: those that are left. ``listener_of``: makes the
    listener of the next process. ``control``: the reference kernel. ``started``: a process that
    waits for its job, for the first tasks.
    Raises UserError when processes die again and again without a result, or kernels cannot be
    compiled. Raises Interrupted after SIGTERM or SIGINT, once the row in hand is written.
    """
    barren = 0
    blamed: dict[str, Any] | None = None
    while todo := tasks():
        listener = listener_of()
        listener.maybe_stop()
        reason = _run_child(todo, control(), listener, started)
        started = None
        barren = 0 if listener.rows or listener.done else barren + 1
        blamed = listener.blamed or (None if listener.ready else blamed)
        if barren >= MAX_BARREN_PROCESSES:
            if blamed:
                # The card has not answered since: it was lost, not the configuration at fault.
                listener.journal.withdraw(blamed)
            gpu = str(listener.shard.labels["gpu"])
            raise UserError(command, gpu, f"cannot measure: {reason}")


def _run_child(
    tasks: list[dict[str, Any]],
    control: dict[str, Any] | None,
    listener: Listener,
    started: MeasuringProcess | None,
) -> str:
    """Run one measuring process to its end; returns why it failed, or ''. Raises UserError when it
    does not end, not even killed: the next one would hang on the same card."""
    shard, began = listener.shard, time.perf_counter()
    child = started or MeasuringProcess(shard.command, shard.environment)
    feeder = Feeder(shard, tasks, control, child.asks)
    feeder.start()
    try:
        listener.listen(child.events, feeder)
        if listener.silence or listener.fatal:
            child.kill()
        code = child.exit_code(shard.method.timeout_s)
        if code is None:
            child.kill()
            code = child.exit_code(KILLED_S)
            lived_on = "the measuring process closed its pipe but did not exit"
            listener.fatal = listener.fatal or lived_on
        said = child.last_words()
        listener.blame(-signal.SIGKILL if code is None else code, said)
        if code is None:
            message = (
                f"the measuring process {child.popen.pid} does not end, not even killed: the "
                "driver holds it, and the card may need a reset"
            )
            raise UserError("sweep", str(shard.labels["gpu"]), message)
        if listener.mistake is not None:
            raise UserError(*listener.mistake)
        return listener.fatal or listener.silence or said or death(code)
    finally:
        child.end()
        listener.note_seconds(time.perf_counter() - began, shard.parts.seconds)
        feeder.end()


@dataclass
class Listener:
    """Turns the events of one measuring process into journal rows and notes."""

    shard: Shard
    journal: Journal
    stop: list[int]
    telemetry: Telemetry | None
    progress: Progress | None
    # Further tasks, requested whenever the process has finished its own; a start takes a second or
    # more, so the same process continues.
    afterwards: Callable[[], list[dict[str, Any]]]

    def __post_init__(self) -> None:
        self.in_hand: dict[str, Any] | None = None
        self.silence = ""
        self.fatal = ""
        self.mistake: list[str] | None = None
        """Where, key and message of a mistake of the user's, which ended the process."""
        self.rows = 0  # rows that this process brought
        self.ready = False  # whether the card answered this process
        self.blamed: dict[str, Any] | None = None
        """Row of the configuration in whose hands this process died, unless it stands anyway."""
        self.done = 0  # tasks that this process finished
        self._wants = False  # whether it waits for kernels that it asked for
        self._attempt = 1
        self._kind: dict[str, Any] = {}
        self._since_control: list[list[Any]] = []
        self._energies: list[dict[str, Any]] = []
        self._seconds: dict[str, float] = {}

    def listen(self, pipe: IO[bytes], feeder: Feeder) -> None:
        """Read events until the pipe closes or the timeout passes without an event."""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            pending = b""
            waited = 0.0
            while waited < self.shard.method.timeout_s:
                if not selector.select(timeout=NOTICE_S):
                    # Waiting for the compiler does not count as silence.
                    starved = feeder.is_alive() and (self._wants or feeder.sent == self.done)
                    waited = 0.0 if starved else waited + NOTICE_S
                    self.maybe_stop()
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
                        self.fatal = f"the measuring process sent an invalid event: {said!r}"
                        return
                    kind = self._hear(event)
                    self._wants = kind == "wanted"
                    if self._wants:
                        feeder.want(tuple(Build.of(**each) for each in event["builds"]))
                    elif kind == "done" and self.done == feeder.given:
                        feeder.more(self.afterwards())
        self.silence = f"no event for {self.shard.method.timeout_s:g} s"

    def _hear(self, event: dict[str, Any]) -> str:
        kind = str(event.pop("event"))
        if kind == "start":
            self.in_hand = event
        elif kind == "row":
            self._hear_row(event)
        elif kind == "control":
            self._hear_control(event)
        elif kind == "energy":
            self._energies.append(event)
        elif kind == "problem":
            self._hear_problem(event)
        elif kind == "concluded":
            self._kind["concluded"] = event
        elif kind == "done":
            self.done += 1
            self._add_seconds(event["seconds"])
            self._note_what_is_done(event["problem"])
        elif kind == "ready":
            self.ready = True
            self._add_seconds({"start": event["seconds"]})
        elif kind == "fatal":
            self.fatal = event["reason"]
            self.mistake = event.get("mistake")
        return kind

    def _hear_problem(self, event: dict[str, Any]) -> None:
        self._attempt = event["attempt"]
        self._kind = event
        self._note_energies()
        if self.progress:
            self.progress.problem(
                " ".join(f"{name}={value}" for name, value in event["problem"].items())
            )

    def _note_what_is_done(self, problem: dict[str, Any]) -> None:
        """Note the end of a task whose rows do not show it."""
        if self._kind.get("explored"):
            how = self.shard.exploration | self._kind.get("concluded", {})
            self.journal.note("explored", problem=problem, **how)
        if self._kind.get("energy"):
            self.journal.note("energies", problem=problem)

    def _hear_row(self, event: dict[str, Any]) -> None:
        began = event.pop("began", None)
        ended = event.pop("ended", None)
        if self.telemetry is not None and began is not None and ended is not None:
            event |= self.telemetry.during(began, ended)
            if event["throttle"] is None:
                event["throttle"] = UNKNOWN
        self._append(make_row(self.shard.labels, {}, event))
        self.in_hand = None
        self._note_energies()
        self.maybe_stop()

    def _append(self, row: dict[str, Any]) -> None:
        with self._writing():
            self.journal.append(row)
        self.rows += 1
        self._since_control.append([row[name] for name in self.shard.spec.key_columns])
        if self.progress and row["attempt"] == 1:
            spec = self.shard.spec
            names = {name: row[name] for name in spec.tunable_columns}
            self.progress.row(row["status"], row["time_ms"], label(names, spec))

    def _hear_control(self, event: dict[str, Any]) -> None:
        rows = [list(key) for key in self._since_control]
        self._since_control.clear()
        with self._writing():
            card = self.shard.labels["card"]
            self.journal.note("control", **event, card=card, attempt=self._attempt, rows=rows)

    def _note_energies(self, wait_s: float = 0.0) -> None:
        """Note the energies that telemetry can compute so far."""
        waiting = []
        for event in self._energies:
            began, ended = event["began"], event["ended"]
            spent = self.telemetry and self.telemetry.energy_j(began, ended, wait_s=wait_s)
            if spent:
                names = {"gpu": self.shard.labels["gpu"], **event["names"]}
                own = {"energy_j": spent / event["launches"], "sustained_ms": event["time_ms"]}
                self.journal.note("energy", names=names, **own)
            elif time.monotonic() - event["ended"] < ENERGY_KNOWN_S:
                waiting.append(event)
        self._energies = waiting

    def _add_seconds(self, seconds: Mapping[str, float]) -> None:
        for name, value in seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + value

    @contextlib.contextmanager
    def _writing(self) -> Any:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._add_seconds({"write": time.perf_counter() - began})

    def note_seconds(self, total: float, compiling: float) -> None:
        """Note the seconds that the process spent on each activity."""
        with contextlib.suppress(UserError):
            self._note_energies(ENERGY_KNOWN_S)
            self.journal.note(
                "seconds",
                total=total,
                spent={**self._seconds, "compile": compiling},
                rows=self.rows,
            )

    def maybe_stop(self) -> None:
        """Raise Interrupted after a request to stop, unless a configuration is in hand."""
        if self.stop and self.in_hand is None:
            message = f"signal {self.stop[0]}: {self._kept()} are kept"
            raise Interrupted(message, self.stop[0])

    def _kept(self) -> str:
        return f"{len(self.journal.rows)} rows"

    def blame(self, code: int, last_words: str) -> None:
        """After the process has died: write down the configuration that it was measuring."""
        from_outside = code == -signal.SIGKILL and not self.silence and not self.fatal
        if self.in_hand is None or (from_outside and self._is_first_time()):
            return
        if self.silence:
            found = {"status": "timeout", "reason": self.silence}
        else:
            # A process that ended by itself said why; one that was ended had no time to.
            said = f": {last_words}" if last_words and code >= 0 else ""
            reason = self.fatal or death(code) + said
            if any(fault in reason for fault in CARD_FAULTS):
                return
            found = {"status": "failed", "reason": reason}
        self._write_blame(self.in_hand, found)

    def _write_blame(self, names: dict[str, Any], found: dict[str, Any]) -> None:
        row = make_row(self.shard.labels, names, found)
        if self._attempt > 1:
            # What was measured in the first attempt stays; it is not tried a third time.
            key = [row[name] for name in self.shard.spec.key_columns]
            columns = self.shard.spec.key_columns
            row = next(old for old in self.journal.rows if [old[name] for name in columns] == key)
        else:
            self.blamed = row
        self._append({**row, "attempt": self._attempt})

    def _is_first_time(self) -> bool:
        """Whether the row in hand was not yet in hand of a killed process; notes that it is now.
        The sender of SIGKILL (out-of-memory killer, administrator) rarely targets one
        configuration, so the configuration is tried once more before it is blamed."""
        assert self.in_hand is not None
        names = dict(self.in_hand)
        if any(note["note"] == "killed" and note["names"] == names for note in self.journal.notes):
            return False
        self.journal.note("killed", names=names)
        return True


def _event(line: bytes) -> dict[str, Any] | None:
    """Event in a line; None if the line is not a valid event (NaN is not JSON)."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        event = json.loads(line, parse_constant=refuse)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None
