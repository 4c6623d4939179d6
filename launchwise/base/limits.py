"""Limits of time and memory for reading what somebody else wrote."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from launchwise.base.errors import UserError

READING_S = 6  # Most CPU time for reading the sources of a workload


@contextmanager
def cpu_limit(where: str | Path, seconds: float = READING_S) -> Iterator[None]:
    """Limit of the CPU time of a block, in the main thread; ``seconds`` of the whole process.
    Raises UserError when the block, which reads the file ``where``, takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise UserError(where, "", f"takes more than {seconds:g} s of CPU time to read")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


@contextmanager
def memory_limit(where: str | Path, nbytes: int, hint: str = "") -> Iterator[None]:
    """Limit of the memory that a block takes beside what the process has, where the system tells
    that. Raises UserError, which ends with ``hint``, when the block, which reads the file
    ``where``, takes more than ``nbytes``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        most = resource.RLIM_INFINITY - nbytes
    most += nbytes
    # A lower limit is not ours.
    is_ours = most > 0 and (soft == resource.RLIM_INFINITY or most < soft)
    try:
        if is_ours:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        yield
    except MemoryError as error:
        if not is_ours:
            raise
        message = f"takes more than {nbytes // 10**6} MB of memory to read{hint}"
        raise UserError(where, "", message) from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
