"""A sweep that somebody else measured, in memory, whatever file it came from.

Every reader of a format makes rows with :func:`row_of` and a sweep with :func:`sweep_of`: what
stands where is the format's, what a value, a time and a failure are is the same for all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.literals import LARGEST, real, whole
from launchwise.workloads.parts import Value

TO_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}  # Unit of a time to milliseconds

SPELLED = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

_UNITS = {
    name: unit
    for unit, names in {
        "s": "s second seconds sec secs",
        # Two of them misspelt, as real files have them.
        "ms": "ms millisecond milliseconds msec msecs millis milisecond miliseconds",
        "us": "us microsecond microseconds usec usecs micros µs μs µsec μsec",
        "ns": "ns nanosecond nanoseconds nsec nsecs nanos",
    }.items()
    for name in names.split()
}
"""Names that files use for units."""

_TIMES = {"time", "times", "runtime", "runtimes", "duration", "durations", "latency", "elapsed"}

_OTHERS = {
    # What is timed is not the kernel.
    *("compile", "compilation", "verification", "validation", "verify", "benchmark", "framework"),
    *("strategy", "search", "overhead", "tuning", "transfer", "copy", "host", "setup"),
    # Not a time, or none of one launch.
    *("stamp", "timestamp", "timeout", "out", "std", "stddev", "deviation", "var", "variance"),
    *("error", "cv", "relative", "ratio", "speedup", "spread", "per", "rate", "count", "unit"),
}

_WORD = re.compile(r"[A-Z]?[a-zµμ]+|[A-Z]+(?![a-z])|\d+")


def time_unit(name: object) -> str | None:
    """Key of :data:`TO_MS` that a file's name of a unit means; None where it is none."""
    return _UNITS.get(str(name).strip().strip("[]()").strip().lower())


def is_time_name(name: str) -> bool:
    """Whether a measurement of this name is the time of a kernel: ``kernel_time``, ``lat_us``,
    ``ns/iteration``. Overheads (``compile_time``), rates (``GB/s``, ``GFLOP per time``), spreads
    and time stamps are not; nor is ``s``, which may be anything."""
    is_named = "/" not in name and not _TIMES.isdisjoint(_words(name))
    return (is_named or unit_in_name(name) is not None) and not is_overhead(name)


def is_overhead(name: str) -> bool:
    """Whether a name is that of a time of something else than the kernel, or of a spread."""
    return not _OTHERS.isdisjoint(_words(name))


def time_among(names: Iterable[str]) -> str:
    """The first name of a time; one of the CPU only where there is no other; empty where none."""
    times = [name for name in names if is_time_name(name)]
    return min(times, key=lambda name: "cpu" in _words(name), default="")


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def unit_in_name(name: str) -> str | None:
    """Unit at the end of a name, such as ``time_us``, ``duration (ns)`` and ``ns/iteration``; None
    without one. One letter is a unit beside a word for time alone."""
    last = re.split(r"[^0-9A-Za-zµμ]+", name.partition("/")[0].strip("([)] "))[-1]
    return time_unit(last) if len(last) > 1 or not _TIMES.isdisjoint(_words(name)) else None


NO_TIME = 1e20
"""Times from this on stand for failures: of old Kernel Tuner, or the largest number of a type."""

SHORTEST = 1e-12  # Shortest time of a launch, in whatever unit a file has: a picosecond of seconds
NO_TIME_STATED = "no time"  # Reason of a row without a time and without words of a failure

ONE_TIME = "one time per configuration: its repeats are not in the file"

Configuration = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Row:
    configuration: dict[str, Value]
    status: str  # one of launchwise.workloads.metrics.STATUSES
    reason: str  # what the file says of a failure
    # Of each repeat, and what the file states for the row (of Kernel Tuner the mean), ms.
    times_ms: tuple[float, ...]
    time_ms: float | None
    # Other metrics of launchwise.workloads.metrics.SWEEP by their names.
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Configuration:
        """The configuration, such that it can be looked up."""
        return tuple(self.configuration.items())


@dataclass(frozen=True)
class ForeignSweep:
    """Content of one file: a device, a kernel, a problem, and rows; what it lacks is empty."""

    source: str
    format: str
    device_name: str
    kernel_name: str
    problem: dict[str, Value]
    tunables: dict[str, list[Value]]  # tunable to its values, in the order of the file
    rows: list[Row]
    # What the reader converted, repaired or left out, one sentence each.
    notes: list[str] = field(default_factory=list)

    @property
    def times_ms(self) -> dict[Configuration, float]:
        return {row.key: row.time_ms for row in self.rows if row.time_ms is not None}


def row_of(
    configuration: Mapping[str, object],
    time_ms: float | None,
    times_ms: Sequence[float] = (),
    words: str = "",
    status: str = "",
    compiled: Mapping[str, object] | None = None,
    measured_at: object = None,
) -> Row:
    """Row of one entry of a file. ``time_ms``: time that the file states; None for a failure.
    ``words``: of a failure: they count more than a time. ``status``: of a failure, where the format
    tells it otherwise than by words. ``compiled``, ``measured_at``: ``registers``,
    ``shared_bytes``, and a time stamp, as the file has them; what is no integer, or no text, is
    left out."""
    whole = {name: as_value(value) for name, value in (compiled or {}).items()}
    extra: dict[str, Any] = {name: n for name, n in whole.items() if isinstance(n, int)}
    if isinstance(measured_at, str):
        extra["measured_at"] = measured_at
    values = {str(name): as_value(value) for name, value in configuration.items()}
    if time_ms is None or words:
        words = words or NO_TIME_STATED
        return Row(values, status or failure_status(words), words, tuple(times_ms), None, extra)
    return Row(values, "ok", "", tuple(times_ms), time_ms, extra)


def sweep_of(
    path: str | Path,
    format_: str,
    rows: Sequence[Row],
    keys: str,
    names: Iterable[str] = (),
    listed: Mapping[str, Sequence[Value]] | None = None,
    device: object = "",
    kernel: object = "",
    problem: Mapping[str, Value] | None = None,
    notes: Sequence[str] = (),
) -> ForeignSweep:
    """Sweep of the rows of a file. ``keys``: key of a row's configuration in the file, with ``{}``
    for its number. ``names``: tunables, where something else than the first row states them.
    ``listed``: tunable to the values that the file or the space states; those that only rows have
    follow. Raises UserError when a row has other tunables."""
    known = list(names) or list(rows[0].configuration if rows else ())
    for number, row in enumerate(rows):
        if strange := sorted(row.configuration.keys() ^ set(known)):
            has = "has no" if strange[0] in known else "has the"
            others = "the space (T1)" if listed else "the first result"
            message = f"{has} parameter {strange[0]}, unlike {others}"
            raise UserError(path, keys.format(number), message)
    stated = listed or {}
    return ForeignSweep(
        source=str(path),
        format=format_,
        device_name=str(device or "").strip(),
        kernel_name=str(kernel or "").strip(),
        problem=dict(problem or {}),
        tunables={
            name: list(
                dict.fromkeys([*stated.get(name, ()), *(row.configuration[name] for row in rows)])
            )
            for name in known
        },
        rows=list(rows),
        notes=list(notes),
    )


def notes_on_unit(unit: str) -> list[str]:
    """Sentence on the unit of a file's times, one of :data:`SPELLED`; none for milliseconds."""
    return [] if unit == "ms" else [f"converted from {SPELLED[unit]} to milliseconds"]


MOST_KEYS = 500  # Most keys of the rows of a file: each is looked for in every row


def keys_of(rows: Iterable[Mapping[str, Any]], path: str | Path) -> list[str]:
    """Every key of some rows, in order. Raises UserError when there are too many."""
    found = dict.fromkeys(str(key) for row in rows for key in row)
    if len(found) > MOST_KEYS:
        raise UserError(path, "", f"has rows of {len(found):,} keys, more than {MOST_KEYS}")
    return list(found)


def mean(times: Sequence[float]) -> float | None:
    """Mean of repeats; None without any."""
    return math.fsum(times) / len(times) if times else None


def as_mapping(content: object) -> Mapping[str, Any]:
    """``content`` where it is a mapping, else an empty one."""
    return content if isinstance(content, Mapping) else {}


def as_value(value: object) -> Value:
    """A tunable's or problem's value as launchwise has it: an integer of 64 bits, else a text.
    Integers come as texts, floats and booleans in real files."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else str(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= LARGEST else repr(value)
    text = str(value).strip()
    if (integer := whole(text)) is not None:
        return integer if abs(integer) <= LARGEST else text
    number = real(text)
    if number is None or not number.is_integer() or abs(number) >= 2**53:
        return text
    return int(number)


def as_time(value: object) -> float | None:
    """Time from :data:`SHORTEST` to below :data:`NO_TIME`; None for all else (a failure, NaN)."""
    if isinstance(value, bool) or value is None:
        return None
    number = real(value.strip()) if isinstance(value, str) else value
    if not isinstance(number, int | float):
        return None
    return float(number) if SHORTEST <= number < NO_TIME else None


def as_times(values: object, to_ms: float = 1.0) -> tuple[float, ...]:
    """Times of repeats, ms; empty where one of them is no time."""
    if not isinstance(values, list | tuple):
        return ()
    times = [time * to_ms for time in map(as_time, values) if time is not None]
    return tuple(times) if len(times) == len(values) else ()


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


def problem_of(size: object) -> dict[str, Value]:
    """Problem parameters of a size as files state it: a number, a list, a text of either. One size
    is ``n``, two are ``w`` and ``h``, more are ``n1``, ``n2``, and so on. Trailing ones of a list
    of three are no sizes. A mapping has names of its own."""
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
