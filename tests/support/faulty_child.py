"""A measuring process that goes wrong where and how its job says; the CPU is its device.

``fault`` is one of :data:`FAULTS`, ``at`` the place where it happens: ``launch`` of the marked
configuration (``column`` with tz = 2), ``row`` right after its row was said, ``every`` so
many rows, ``open`` while the device is opened. With ``once`` (a file, made when the supervisor has
read all that was said before) only the first process has it. Every start adds the process id to the
file that $STARTS names.
"""

import array
import fcntl
import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # First of all: a process that is killed while it still imports has started, too.
    with open(os.environ["STARTS"], "a") as started:
        started.write(f"{os.getpid()}\n")

sys.path.insert(0, str(Path(__file__).resolve().parent))

from host_device import HostDevice, of_job

from launchwise.cuda import child
from launchwise.measuring.measure import LaunchFailed, OutOfMemory
from launchwise.workloads.device import Launch

PIPE = os.dup(1)  # The pipe that events go to: `run` puts another file in its place

FAILED = "cuLaunchKernel failed"
MARKED = {"variant": "column", "tz": 2}


def is_marked(launch: Launch) -> bool:
    """Whether a launch is one of the configuration that has a fault."""
    return launch.kernel == MARKED["variant"] and ("tz", str(MARKED["tz"])) in launch.build.defines


def wait_until_heard() -> None:
    """Wait until the supervisor has read all that was said."""
    unread = array.array("i", [1])
    while unread[0]:
        fcntl.ioctl(PIPE, termios.FIONREAD, unread)
        time.sleep(0.001)


def die_of(number: signal.Signals) -> None:
    """End at once, as the kernel or the system would end this process."""
    os.kill(os.getpid(), number)


def fail(error: Exception) -> None:
    """What a launch raises."""
    raise error


def divide_by_zero() -> None:
    """A mistake in a workload's own Python."""
    1 / 0  # noqa: B018


def talk_nonsense(then: Callable[[], None]) -> None:
    """Say what is not JSON."""
    os.write(PIPE, b"\x00\xffwarning: cosmic ray\n")
    then()


def say_half_a_row_and_die() -> None:
    """Be killed in the middle of a line."""
    os.write(PIPE, b'{"event":"row","n":20,"dtype":"float32","order":2,"varia')
    die_of(signal.SIGKILL)


def fall_mute() -> None:
    """Close the pipe and live on."""
    pipe = os.fstat(PIPE)
    for number in map(int, os.listdir("/proc/self/fd")):
        try:
            same = os.path.samestat(os.fstat(number), pipe)
        except OSError:  # The folder's own handle, closed by now.
            continue
        if same:
            os.close(number)
    sleep_for_ever()


def sleep_for_ever() -> None:
    """Do nothing, whatever signal comes."""
    while True:
        signal.pause()


def end_with(code: int, words: bytes) -> None:
    """End by itself, with last words that may be no text."""
    os.write(2, words)
    os._exit(code)


def wait_to_be_told() -> None:
    """Wait for the file $STARTS.go, then be as good as any other."""
    while not Path(os.environ["STARTS"] + ".go").exists():
        time.sleep(0.005)


def lose_the_card() -> None:
    """What a card does that falls off the bus: this process and all that follow are without it."""
    Path(os.environ["STARTS"] + ".lost").touch()
    raise LaunchFailed("cuCtxSynchronize failed: unspecified launch failure", fatal=True)


FAULTS: dict[str, Callable[[], None]] = {
    "killed": lambda: die_of(signal.SIGKILL),
    "crashed": lambda: die_of(signal.SIGSEGV),
    # A launch with too many threads, and a buffer on a full card: the context lives on.
    "refused": lambda: fail(LaunchFailed(f"{FAILED}: too many resources requested", fatal=False)),
    "memory": lambda: fail(OutOfMemory("0.07 GB cannot be allocated")),
    # What a card with worn memory says at any launch.
    "memory cells": lambda: fail(
        LaunchFailed(f"{FAILED}: uncorrectable ECC error encountered", fatal=True)
    ),
    "python": divide_by_zero,
    "nonsense": lambda: talk_nonsense(sleep_for_ever),
    "nonsense, dead": lambda: talk_nonsense(lambda: die_of(signal.SIGKILL)),
    "half a row, dead": say_half_a_row_and_die,
    "mute": fall_mute,
    "asleep": sleep_for_ever,
    "ended": lambda: end_with(0, b"no licence\n"),
    "bytes, dead": lambda: end_with(9, b"\xff\xfe\x80 no text\n"),
    "waiting": wait_to_be_told,
    "lost": lose_the_card,
}


class FaultyDevice(HostDevice):
    """A host device whose marked configuration does what ``fault`` does when it is launched."""

    fault: Callable[[], None] | None = None

    def launch(self, launch: Launch, stream: Any = None) -> None:
        """See HostDevice."""
        if self.fault is not None and is_marked(launch):
            self.fault()
        super().launch(launch, stream)


def open_device(job: dict[str, Any]) -> HostDevice:
    """A faulty device for the job's workload."""
    if Path(os.environ["STARTS"] + ".lost").exists():
        raise LaunchFailed("cuInit failed: no CUDA-capable device is detected", fatal=True)
    device = of_job(job, FaultyDevice, job.get("device_bytes", 1 << 30))
    if "fault" not in job or ("once" in job and Path(job["once"]).exists()):
        return device

    def fault() -> None:
        if "once" in job:
            wait_until_heard()
            Path(job["once"]).touch()
        FAULTS[job["fault"]]()

    if job["at"] == "open":
        fault()
    elif job["at"] == "launch":
        device.fault = fault
    else:
        _after_rows(fault, job.get("every"))
    return device


def _after_rows(fault: Callable[[], None], every: int | None) -> None:
    """Let ``fault`` happen between two rows: after the marked one, or after ``every`` so many."""
    serve: Callable[..., None] = child.serve

    def faulty_serve(*arguments: Any) -> None:
        *before, say, watched, fastest, need = arguments
        count = 0

        def faulty_say(event: dict[str, Any]) -> None:
            nonlocal count
            say(event)
            if event["event"] == "row":
                count += 1
                marked = all(event[name] == value for name, value in MARKED.items())
                if marked if every is None else count % every == 0:
                    fault()

        serve(*before, faulty_say, watched, fastest, need)

    child.serve = faulty_serve  # type: ignore[assignment]


if __name__ == "__main__":
    sys.exit(child.run(open_device))
