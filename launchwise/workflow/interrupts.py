"""Ends an interrupted run with one line."""

from __future__ import annotations

import signal
import sys
from types import FrameType

LINE = "launchwise: stopped; the same command goes on with what is not done yet"

_arrived: list[int] = []


def note_interrupts() -> None:
    """Remember that Ctrl-C was pressed; Python raises its exception as ever."""

    def note(number: int, frame: FrameType | None) -> None:
        _arrived.append(number)
        signal.default_int_handler(number, frame)

    _arrived.clear()
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, note)


def tell_interruption() -> bool:
    """Print one line if Ctrl-C ended the run, and say whether it did."""
    if _arrived:
        print(LINE, file=sys.stderr)
    return bool(_arrived)
