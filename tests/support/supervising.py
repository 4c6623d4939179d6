"""Supervisors to be signalled and killed, and what must hold whatever happened to them."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launchwise.base.errors import Interrupted, UserError
from launchwise.base.scripting import EXIT_RESUMABLE
from launchwise.measuring.journal import Journal, read_journal
from launchwise.measuring.shard import Shard
from launchwise.measuring.sweep import measure_shard
from launchwise.workloads.space import configurations

FINGERPRINT = "print"
PATIENCE_S = 60.0


def until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_S) -> Any:
    """Wait for ``condition`` and return what it returned."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(0.01)
    return found


def has_ended(pid: int, seconds: float = PATIENCE_S) -> bool:
    """Whether the process, ours or not, ends in time."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


class Supervisor:
    """``work`` in a process of its own: a fork of this one, where everything is imported already.

    ``work``: its return value is the exit code; an exception is 1.
    ``said``: file for the message of a UserError, or the traceback of anything else.
    """

    def __init__(self, work: Callable[[], int], said: Path) -> None:
        self.code: int | None = None
        self.said = said
        said.unlink(missing_ok=True)
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            code = work()
        except UserError as error:
            said.write_text(str(error))
        except BaseException:
            said.write_text(traceback.format_exc())
        finally:
            os._exit(code)

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """Its exit code; minus the signal's number if one ended it."""
        if self.code is None:
            assert has_ended(self.pid, seconds), "the supervisor does not end"
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs (a process not waited for keeps its id)."""
        if self.code is None:
            os.kill(self.pid, number)

    def has_noticed(self) -> bool:
        """Whether every signal that was sent has been delivered, and its handler has run: Python
        calls those of signals that wait together by their numbers."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        pending = [line.split()[1] for line in lines if line.startswith(("SigPnd", "ShdPnd"))]
        return not any(int(mask, 16) for mask in pending) and self.is_waiting()

    def is_waiting(self) -> bool:
        """Whether it sleeps on: then it has done with all that it has read."""
        for _ in range(10):  # A pause of one lock or one file is none.
            stat = Path(f"/proc/{self.pid}/stat").read_text()
            if stat.rpartition(")")[2].split()[0] != "S":
                return False
            time.sleep(0.005)
        return True

    def child(self) -> int | None:
        """Process id of its measuring process, if it has one now."""
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:  # It has ended.
            return None
        return int(children[0]) if children else None

    def end(self) -> None:
        """Kill it and its measuring process, whatever they do."""
        child = None if self.code is not None else self.child()
        self.send(signal.SIGKILL)
        self.wait()
        if child is not None and not has_ended(child, 1.0):
            os.kill(child, signal.SIGKILL)


def sweep(shard: Shard, path: Path, fingerprint: str = FINGERPRINT) -> None:
    """Measure what the journal lacks."""
    with Journal(path, fingerprint, shard.spec.key_columns) as journal:
        measure_shard(shard, journal)


def supervise(shard: Shard, path: Path) -> Supervisor:
    """:func:`sweep` in a process of its own, with the exit codes of the stage's script."""

    def work() -> int:
        try:
            sweep(shard, path)
        except Interrupted:
            return EXIT_RESUMABLE
        return 0

    # Not beside the journal: that disk may be full.
    return Supervisor(work, shard.folder.parent / "said")


def ending(shard: Shard, path: Path) -> tuple[int, str]:
    """Exit code of a whole sweep in a process of its own, and what it said of its end."""
    supervisor = supervise(shard, path)
    try:
        code = supervisor.wait()
    finally:
        supervisor.end()
    return code, supervisor.said.read_text() if supervisor.said.exists() else ""


def row_lines(path: Path) -> list[bytes]:
    """The whole lines of a journal that are rows, byte by byte, doubled ones too."""
    *lines, _ = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return [line for line in lines if b'"status":' in line]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a journal, doubled ones too."""
    return [row for row in read_journal(path)[1] if "status" in row]


def names(row: dict[str, Any], shard: Shard) -> tuple[Any, ...]:
    """The key of a row."""
    return tuple(row[name] for name in shard.spec.key_columns)


def expected_keys(shard: Shard) -> list[tuple[Any, ...]]:
    """Keys that a finished sweep has, each once."""
    gpu = shard.labels["gpu"]
    return sorted(
        names({"gpu": gpu, **problem, **configuration}, shard)
        for problem in shard.problems
        for configuration in configurations(shard.spec, problem, shard.gpu_facts)
    )


def finished(
    shard: Shard, path: Path, kept: list[bytes] | None = None, fingerprint: str = FINGERPRINT
) -> list[dict[str, Any]]:
    """Rows of a sweep that is said to be finished. Every row is there once, those of ``kept``
    (lines of an earlier look) come first and are the same byte by byte, and a second run starts no
    process and changes no byte of a row."""
    lines = row_lines(path)
    assert lines[: len(kept or [])] == (kept or [])
    sweep(dataclasses.replace(shard, command=["/no/such/program"]), path, fingerprint)
    assert row_lines(path) == lines
    rows = rows_of(path)
    assert sorted(names(row, shard) for row in rows) == expected_keys(shard)
    return rows


def pids(shard: Shard) -> list[int]:
    """Process ids of the measuring processes so far (see ``faulty_child.py``)."""
    return [int(line) for line in Path(shard.environment["STARTS"]).read_text().split()]
