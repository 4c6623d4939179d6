"""Ends what takes too much CPU time, such as reading a file that is made to take long."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from launchwise.base.errors import UserError


@contextmanager
def cpu_limit(seconds: float, where: str | Path) -> Iterator[None]:
    """Limit of the CPU time of a block, in the main thread.

    ``seconds``: of the whole process.
    ``where``: file that the block reads, for the message.
    Raises UserError when the block takes longer.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise UserError(where, "", f"takes more than {seconds:g} s of CPU time to read")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
