"""Limits of the process in which a user's file runs: it reads, computes, and harms nothing."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

CPU_SECONDS = 6  # Most CPU time of the process

MEMORY_BYTES = 2 << 30

_REFUSED = (
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "os.utime", "os.setxattr", "shutil.", "tempfile.", "sqlite3."),
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.kill"),
    *("ctypes.", "signal.pthread_kill", "resource.", "http.", "urllib.", "ftplib."),
)
"""Events of Python's audit that write files, start processes or ask the network."""

_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class TimeLimit(BaseException):
    """Part of a file takes too long."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End a block after so much CPU time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TimeLimit:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _stop(number: int, frame: FrameType | None) -> None:
    raise TimeLimit


def _refuse(event: str, given: tuple[Any, ...]) -> None:
    if event == "open":
        _, mode, flags = given
        if {*(mode or "")} & {*"wax+"} or (isinstance(flags, int) and flags & _FLAGS):
            raise PermissionError(f"a file is opened to write: {given[0]!r:.100}")
    elif event.startswith(_REFUSED):
        raise PermissionError(f"{event} is not allowed while launchwise reads a file")


def confine() -> None:
    """Bound memory and time, and refuse what writes files, starts processes or asks the network."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    bytes_allowed = MEMORY_BYTES if most < 0 else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_AS, (bytes_allowed, bytes_allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _stop)
    sys.addaudithook(_refuse)
