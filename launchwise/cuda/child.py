"""The measuring process: reads tasks from standard input, writes events to standard output.

The first line is the job, perhaps after a question for the attributes of the device; then come
bundles of kernels and tasks, in the order in which they are ready, until the pipe is closed. The
device is opened as soon as the job is known, so that a context is made while nvcc still runs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from launchwise.base.errors import UserError
from launchwise.base.work import end_with_the_starter
from launchwise.experiment.method import Method
from launchwise.gpus.machine import Fastest
from launchwise.measuring.measure import LaunchFailed, OutOfMemory, Say, TimingDevice
from launchwise.measuring.serving import Task, Watched, serve
from launchwise.workloads.builds import Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec


def _obey_the_supervisor_alone() -> None:
    """End with the supervisor; ignore SIGTERM and SIGINT, which the supervisor handles. Slurm sends
    SIGTERM to every process of a job step; this one must finish its row."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    end_with_the_starter()
    listener = select.poll()
    listener.register(sys.stdout, 0)
    if listener.poll(0):
        # The pipe is closed: the supervisor died before that.
        os._exit(3)


class Served(TimingDevice, Protocol):
    """A timing device that takes its kernels from bundles."""

    def add_bundle(self, path: Path) -> None:
        """Load the kernels of the bundle at ``path``."""

    def holds(self, build: Build) -> bool:
        """Whether a bundle has kernels of ``build``, or says why there are none."""


class Inbox:
    """Tasks from standard input, in order, and the kernels that come between them."""

    def __init__(self, device: Served, say: Say) -> None:
        self._device, self._say = device, say
        self._tasks: deque[Task] = deque()

    def __iter__(self) -> Iterator[Task]:
        while self._tasks or self._read():
            if self._tasks:
                yield self._tasks.popleft()

    def _read(self) -> bool:
        line = sys.stdin.readline()
        message = json.loads(line) if line else {}
        if "bundle" in message:
            self._device.add_bundle(Path(message["bundle"]))
        elif message:
            self._tasks.append(Task(**message["task"]))
        return bool(message)

    def need(self, builds: Sequence[Build]) -> None:
        """Wait for the first of ``builds``, and ask for the others, which are likely to be needed
        next. Raises EOFError when it will not come."""
        lacking = [each for each in dict.fromkeys(builds[1:]) if not self._device.holds(each)]
        if lacking or not self._device.holds(builds[0]):
            asked = [
                {"source": each.source, "defines": dict(each.defines), "kernels": each.kernels}
                for each in (builds[0], *lacking)
            ]
            self._say({"event": "wanted", "builds": asked})
        while not self._device.holds(builds[0]):
            if not self._read():
                raise EOFError


def run(
    open_device: Callable[[dict[str, Any]], Served],
    attributes: Callable[[Any], dict[str, Any]] | None = None,
) -> int:
    """Serve one job; exit code 0 when all of it is measured, 3 when the context is lost.

    The job is one JSON object: folder, method, seed, and what ``open_device`` needs; later lines
    are ``{"bundle": path}`` or ``{"task": {...}}``. Before the job, ``{"describe": {...}}`` opens
    the device with what it holds and asks for its ``attributes``. Anything else that prints goes to
    standard error, so that only events are on the pipe.
    """
    began = time.perf_counter()
    _obey_the_supervisor_alone()
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(event: dict[str, Any]) -> None:
        pipe.write(json.dumps(event, separators=(",", ":")) + "\n")
        pipe.flush()

    line = sys.stdin.readline()
    device = None
    try:
        if attributes and "describe" in (asked := json.loads(line)):
            device = open_device(asked["describe"])
            say({"event": "attributes", "attributes": attributes(device)})
            line = sys.stdin.readline()
            if not line:
                return 0  # There was nothing to measure.
        job = json.loads(line)
        folder = Path(job["folder"])
        workload = load_workload(folder, load_spec(folder))
        device = device or open_device(job)
        if device.sms != job.get("expected_sms", device.sms):
            message = f"the device has {device.sms} SMs, its profile says {job['expected_sms']}"
            raise UserError("sweep", "", message)
        say({"event": "ready", "seconds": time.perf_counter() - began})
        method = Method.model_validate(job["method"])
        watched = Watched(**job["control"]) if job.get("control") else None
        fastest = Fastest(**job.get("fastest", {}))
        inbox = Inbox(device, say)
        serve(device, workload, method, inbox, job["seed"], say, watched, fastest, inbox.need)
    except EOFError:
        return 0  # The supervisor knows why a kernel does not come.
    except UserError as error:
        # No other process would do better.
        mistake = [error.where, error.key, error.message]
        say({"event": "fatal", "reason": str(error), "mistake": mistake})
        return 3
    except (LaunchFailed, OutOfMemory) as error:
        say({"event": "fatal", "reason": str(error)})
        return 3
    return 0


def open_cuda(job: dict[str, Any]) -> Served:
    """The first visible CUDA device."""
    from launchwise.cuda.device import CudaDevice

    return CudaDevice(job["slice_sms"])


def attributes_of_cuda(device: Any) -> dict[str, Any]:
    from launchwise.cuda.device import attributes_of

    return attributes_of(device)


if __name__ == "__main__":
    code = run(open_cuda, attributes_of_cuda)
    sys.stdout.flush()
    # A lost context makes PyCUDA's own clean-up complain; the process ends here anyway.
    os._exit(code)
