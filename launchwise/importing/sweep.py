"""A sweep that somebody else measured, in memory, whatever file it came from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from launchwise.workloads.parts import Value

NO_TIME = 1e20
"""Times from this on stand for failures: of old Kernel Tuner, or the largest number of a type."""

SHORTEST = 1e-12
"""Shortest time of a launch, in whatever unit a file has: a picosecond of seconds."""

LARGEST = 2**63 - 1
"""Largest integer of a table; those beyond stay texts."""


@dataclass(frozen=True)
class Row:
    """One configuration of a foreign sweep.

    Parameters
    ----------
    status
        One of :data:`launchwise.workloads.statuses.STATUSES`.
    reason
        What the file says of a failure; empty for a timed row.
    times_ms
        Time of each repeat, ms.
    time_ms
        Time that the file states for the row (of Kernel Tuner the mean), ms; None if it has none.
    extra
        Other metrics of :data:`launchwise.workloads.metrics.SWEEP` by their names.
    """

    configuration: dict[str, Value]
    status: str
    reason: str
    times_ms: tuple[float, ...]
    time_ms: float | None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ForeignSweep:
    """Content of one file: a device, a kernel, a problem, and rows.

    Parameters
    ----------
    source
        Path of the file.
    format
        Name of its format.
    device_name, kernel_name
        As the file states them; empty where it does not.
    problem
        Problem parameter to its value; empty where the file states none.
    tunables
        Tunable to its values, in the order of the file.
    constraints
        Conditions of the space that launchwise can evaluate.
    defaults
        Default value of some tunables.
    notes
        What the reader converted, repaired or left out, one sentence each.
    """

    source: str
    format: str
    device_name: str
    kernel_name: str
    problem: dict[str, Value]
    tunables: dict[str, list[Value]]
    rows: list[Row]
    constraints: list[str] = field(default_factory=list)
    defaults: dict[str, Value] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def timed(self) -> list[Row]:
        """Rows with a time."""
        return [row for row in self.rows if row.status == "ok"]


def as_value(value: object) -> Value:
    """A tunable's or problem's value as launchwise has it: an integer, else a text.

    Integers come as texts, floats and booleans in real files.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else str(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= LARGEST else repr(value)
    text = str(value).strip()
    try:
        whole = int(text)
        return whole if abs(whole) <= LARGEST else text
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else text


def as_time(value: object) -> float | None:
    """Time from :data:`SHORTEST` to below :data:`NO_TIME`; None for all else (a failure, NaN)."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and SHORTEST <= number < NO_TIME else None


def as_times(values: object, to_ms: float = 1.0) -> tuple[float, ...]:
    """Times of repeats, ms; empty where one of them is no time."""
    if not isinstance(values, list | tuple):
        return ()
    times = [as_time(value) for value in values]
    if any(time is None for time in times):
        return ()
    return tuple(time * to_ms if to_ms != 1.0 else time for time in times if time is not None)


def failure_status(words: str) -> str:
    """Status of a row that a file's words of a failure mean."""
    text = words.lower()
    if "timeout" in text or "timed" in text:
        return "timeout"
    if "memory" in text and "out" in text:
        return "out_of_memory"
    if any(word in text for word in ("correct", "verif", "validation", "wrong")):
        return "wrong"
    return "failed"


def median(times: Iterable[float]) -> float:
    """Median, ms."""
    return float(statistics.median(times))


def problem_of(size: object) -> dict[str, Value]:
    """Problem parameters of a size as files state it: a number, a list, a text of either.

    One size is ``n``, two are ``w`` and ``h``, more are ``n1``, ``n2``, and so on. Trailing ones
    of a list of three are no sizes. A mapping has names of its own.
    """
    if isinstance(size, Mapping):
        return {str(name): as_value(value) for name, value in size.items()}
    sizes = list(size) if isinstance(size, list | tuple) else _numbers_in(size)
    while len(sizes) > 1 and as_value(sizes[-1]) == 1:
        sizes.pop()
    if len(sizes) == 1:
        names = ["n"]
    elif len(sizes) == 2:
        names = ["w", "h"]
    else:
        names = [f"n{number}" for number in range(1, len(sizes) + 1)]
    return {name: as_value(value) for name, value in zip(names, sizes, strict=True)}


def _numbers_in(size: object) -> list[object]:
    """Parts of a size that is a text such as ``4096, 4096``, ``(4096, 4096)`` or ``4096x4096``."""
    if size is None or size == "":
        return []
    if not isinstance(size, str):
        return [size]
    parts = size.strip().strip("()[]").replace("x", ",").split(",")
    numbers = [part.strip() for part in parts if part.strip()]
    if numbers and all(isinstance(as_value(part), int) for part in numbers):
        return list(numbers)
    return [size.strip()]
