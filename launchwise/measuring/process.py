"""A process that answers lines of JSON, as who started it holds it; of a sweep also its tasks.

It is started with nothing but its command, so that it loads its libraries and opens the device
while the supervisor still prepares the job, and nvcc runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from launchwise.base.errors import UserError
from launchwise.measuring.job import Part, builds_for
from launchwise.measuring.shard import Shard
from launchwise.workloads.builds import Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.workload import Workload

KILLED_S = 30.0  # Time for a killed process to end, s: a driver that hangs keeps it for good
OPENED_S = 120.0  # Time that a process may take to open its device, s


class MeasuringProcess:
    """A process of :mod:`launchwise.cuda.child`. ``command``, ``environment``: what is run, and its
    variables."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # A driver's last words need not be text.
        self._errors: IO[str] = tempfile.TemporaryFile(  # noqa: SIM115 (:meth:`end` closes it)
            "w+", encoding="utf-8", errors="replace"
        )
        self.popen = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
            # Its own group: a Ctrl-C reaches the supervisor alone, which lets the row finish.
            start_new_session=True,
        )
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        # Pipes to the process and from it.
        self.asks: IO[bytes] = self.popen.stdin
        self.events: IO[bytes] = self.popen.stdout

    def attributes(self, folder: Path, slice_sms: int | None) -> dict[str, Any]:
        """Attributes of the first visible device, or of its slice, which the process opens.
        ``folder``: folder of the workload that it will measure. Raises UserError when the device
        cannot be opened."""
        self.send({"describe": {"folder": str(folder), "slice_sms": slice_sms}})
        try:
            line = self.heard(OPENED_S)
        except TimeoutError:
            message = f"the driver does not respond within {OPENED_S:g} s"
            raise UserError("describe", "", message) from None
        if not line:
            self.exit_code(KILLED_S)
            raise UserError("describe", "", self.last_words() or "the measuring process died")
        event = json.loads(line)
        if event["event"] != "attributes":
            raise UserError("describe", "", event["reason"])
        found: dict[str, Any] = event["attributes"]
        return found

    def send(self, message: Mapping[str, Any]) -> None:
        """Give it a line of JSON; one that has died says more than a broken pipe."""
        with contextlib.suppress(BrokenPipeError):
            self.asks.write(json.dumps(message).encode() + b"\n")
            self.asks.flush()

    def heard(self, seconds: float | None) -> bytes:
        """The next line that it says; empty where it has ended. Raises TimeoutError when there is
        none within so many seconds; None is for as long as it takes."""
        line, until = b"", time.monotonic() + (seconds or 0.0)
        while not line.endswith(b"\n"):
            left = None if seconds is None else max(0.0, until - time.monotonic())
            if not select.select([self.events], [], [], left)[0]:
                raise TimeoutError
            if not (chunk := os.read(self.events.fileno(), 1 << 16)):
                return b""
            line += chunk
        return line

    def exit_code(self, seconds: float) -> int | None:
        """Exit code of a process that ends within some seconds; None if it does not."""
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def last_words(self) -> str:
        """Last line of its standard error."""
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()
        return said[-1] if said else ""

    def kill(self) -> None:
        """End it at once."""
        self.popen.kill()

    def end(self) -> None:
        """Kill it, if it still runs; what it says is not heard any more."""
        if self.popen.poll() is None:
            self.kill()
            self.exit_code(KILLED_S)
        self.events.close()
        self._errors.close()

    def close(self) -> None:
        """:meth:`end` for a process that no thread feeds."""
        self.end()
        # What was not yet written has no reader any more.
        with contextlib.suppress(OSError):
            self.asks.close()


def death(code: int) -> str:
    if code < 0:
        return f"the measuring process was killed by {signal.Signals(-code).name}"
    return f"the measuring process ended with code {code}"


GRACE_S = 1.0
"""Time for the thread to end after its process, s; a request to stop does not wait for nvcc."""


class Feeder(threading.Thread):
    """Thread that sends a measuring process its job, then kernels and tasks as they are ready.
    Compiling and measuring overlap: a problem is sent as soon as its kernels are there."""

    def __init__(
        self,
        shard: Shard,
        tasks: list[dict[str, Any]],
        control: dict[str, Any] | None,
        pipe: IO[bytes],
    ) -> None:
        super().__init__(daemon=True)
        self._control = control
        self._shard = shard
        self._tasks = tasks
        self._pipe = pipe
        self._error: BaseException | None = None
        # Kernels; builds that the process asks for; tasks, none at the end.
        self._inbox: queue.SimpleQueue[Future[Part] | tuple[Build, ...] | list[dict[str, Any]]]
        self._inbox = queue.SimpleQueue()
        self.given = len(tasks)  # tasks that this feeder was given
        self.sent = 0  # tasks that the process was given

    def run(self) -> None:
        """Send until all tasks are sent or the process has ended."""
        # A child that dies at once closes the pipe; its exit code says more than this would.
        try:
            with contextlib.suppress(BrokenPipeError), self._pipe:
                self._feed()
        except Exception as error:
            self._error = error

    def more(self, tasks: list[dict[str, Any]]) -> None:
        """Further tasks for the same kernels; none ends the process once it has done the others."""
        self.given += len(tasks)
        self._inbox.put(tasks)

    def end(self) -> None:
        """Raise what stopped the thread, such as kernels that cannot be compiled."""
        self.more([])
        self.join(GRACE_S)
        if isinstance(self._error, UserError):
            raise self._error
        if self._error is not None:
            raise RuntimeError("cannot write to the measuring process") from self._error

    def _send(self, message: Mapping[str, Any]) -> None:
        self._pipe.write(json.dumps(message).encode() + b"\n")
        self._pipe.flush()

    def want(self, builds: tuple[Build, ...]) -> None:
        """Compile what the process asks for: it waits for the first one, and is likely to ask for
        the others next."""
        self._inbox.put(builds)

    def _feed(self) -> None:
        shard = self._shard
        how = {"folder": str(shard.folder), "method": shard.method.model_dump(mode="json")}
        self._send({**how, "seed": shard.seed, "control": self._control, **shard.job})
        shard.parts.listen(self._inbox.put)
        self._inbox.put(self._tasks)
        have: set[str] | None = set()  # keys of builds that were sent; None when all were
        waiting: list[tuple[dict[str, Any], set[str]]] = []
        while found := self._inbox.get():
            if isinstance(found, tuple):
                shard.parts.want(found[:1], found[1:])
            elif isinstance(found, list):
                needs = [{} if have is None else self._needed(task) for task in found]
                shard.parts.want(build for builds in needs for build in builds)
                keys = [{build.key for build in builds} for builds in needs]
                waiting += zip(found, keys, strict=True)
            elif not found.cancelled():
                part = found.result()
                self._send({"bundle": str(part.path)})
                have = None if have is None or part.keys is None else have | part.keys
            ready = [task for task, keys in waiting if have is None or keys <= have]
            waiting = [each for each in waiting if have is not None and not each[1] <= have]
            for task in ready:
                self.sent += 1
                self._send({"task": task})

    def _needed(self, task: dict[str, Any]) -> dict[Build, None]:
        """Builds that a task waits for, in the order of need. What an explorer will propose is not
        known: the process asks for it."""
        asked = [(task["problem"], task["configurations"])]
        if self._control is not None and self._control["known"]:
            asked.append((self._control["problem"], [self._control["configuration"]]))
        return builds_for(self._workload, asked)

    @cached_property
    def _workload(self) -> Workload:
        return load_workload(self._shard.folder, self._shard.spec)
