"""Progress of a sweep: a live line on a terminal, plain lines at intervals elsewhere."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

WINDOW_S = 20.0  # Window of the row rate, s: the rate depends on the problem size
WINDOW_ROWS = 10  # Fewest rows in the window, whatever their age


@dataclass
class Progress:
    """Shows rows done, rows per second, time left, and the best time of the current problem.

    A context manager. On a terminal: one live line (log to ``sys.stderr`` as it is at that moment
    and the line stays whole). Elsewhere: a plain line after the first row, then one at most every
    ``every_s``. Either way a last line when the block ends. A stream that cannot be written to is
    no failure of the sweep.
    """

    total: int  # rows of the whole sweep, those that are there already included
    title: str  # begins every line
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic  # gives seconds
    every_s: float = 30.0  # shortest time between two plain lines, s
    unit: str = "rows"  # what is counted

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._done = 0
        self._measured = 0
        self._recent: deque[float] = deque()
        self._problem = ""
        self._best_ms = math.inf
        self._best = ""
        self._written: float | None = None
        self._live = self._live_line()

    def _live_line(self) -> Live | None:
        console = Console(file=self.stream)
        # FORCE_COLOR makes any stream interactive for rich, a dumb terminal none.
        if not (self.stream.isatty() and console.is_interactive):
            return None
        return Live(
            self._text(),
            console=console,
            transient=True,  # The last line takes its place, in full.
            redirect_stdout=False,
            redirect_stderr=self.stream is sys.stderr,
        )

    def __enter__(self) -> Progress:
        self._began = self.clock()
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()
        elapsed = self.clock() - self._began
        parts = [f"{self._counted()} in {_duration(elapsed)}"]
        if self._measured and elapsed > 0:
            parts.append(f"{_plain(self._measured / elapsed, 2)} {self.unit}/s")
        self._write(", ".join([*parts, *self._best_so_far()]))

    def problem(self, text: str) -> None:
        """Set the current problem; a new one resets the best time."""
        if text != self._problem:
            self._problem, self._best_ms, self._best = text, math.inf, ""

    def row(self, status: str, time_ms: float | None, label: str) -> None:
        """Count a row that was measured now: its status (only an ``ok`` row can be the best), its
        time, ms, if it has one, and its configuration in words."""
        now = self.clock()
        self._done += 1
        self._measured += 1
        self._recent.append(now)
        while len(self._recent) > WINDOW_ROWS + 1 and self._recent[0] < now - WINDOW_S:
            self._recent.popleft()
        if status == "ok" and time_ms is not None and time_ms < self._best_ms:
            self._best_ms, self._best = time_ms, label
        if self._live is not None:
            self._live.update(self._text())
        elif self._written is None or now - self._written >= self.every_s:
            self._written = now
            self._write(self._line())

    def expect(self, total: int) -> None:
        """Update the number of rows of the sweep."""
        self.total = total

    def skip(self, count: int) -> None:
        """Count rows that exist already; they do not count for the rate."""
        self._done += count
        if self._live is not None:
            self._live.update(self._text())

    def _text(self) -> Text:
        return Text(self._line(), no_wrap=True, overflow="ellipsis")

    def _line(self) -> str:
        rate = self._rate()
        parts = [self._counted()]
        if rate is None:
            parts.append("time left unknown")
        else:
            left = max(0, self.total - self._done) / rate
            parts += [f"{_plain(rate, 2)} {self.unit}/s", f"{_duration(left)} left"]
        return ", ".join([*parts, *self._best_so_far()])

    def _counted(self) -> str:
        # More rows than announced are an error of whoever announced them, not of the count.
        return f"{self.title}: {self._done} of {max(self.total, self._done)} {self.unit}"

    def _rate(self) -> float | None:
        """Rows per second in the window; None until two rows have different times."""
        if len(self._recent) < 2 or self._recent[-1] <= self._recent[0]:
            return None
        # Not from the start: until the first row a process starts and a context is made.
        return (len(self._recent) - 1) / (self._recent[-1] - self._recent[0])

    def _best_so_far(self) -> list[str]:
        if math.isinf(self._best_ms):
            return []
        at = f" at {self._problem}" if self._problem else ""
        return [f"best {_plain(self._best_ms, 4)} ms {self._best}{at}"]

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError):
            self.stream.write(f"{line}\n")
            self.stream.flush()


def _plain(value: float, digits: int) -> str:
    """A number to ``digits`` significant digits, never with an exponent."""
    if value <= 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(value))
    return f"{value:.{max(places, 0)}f}"


def _duration(seconds: float) -> str:
    """``7 s``, ``1 min 10 s``, ``27 h 5 min``."""
    if (whole := round(seconds)) < 60:
        return f"{whole} s"
    large, small = ("min", "s") if whole < 3600 else ("h", "min")
    count, rest = divmod(whole if whole < 3600 else round(seconds / 60), 60)
    return f"{count} {large} {rest} {small}" if rest else f"{count} {large}"
