"""Which names and units of measurements are those of a time."""

from __future__ import annotations

import re
from collections.abc import Iterable

TO_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
"""Unit of a time to milliseconds."""

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
    """Whether a measurement of this name is the time of a kernel: ``kernel_time``, ``us``.

    Overheads (``compile_time``), rates (``GB/s``, ``GFLOP per time``), spreads and time stamps are
    not; nor is ``s``, which may be anything.
    """
    words = _words(name)
    is_unit = len(name) > 1 and time_unit(name) is not None
    return "/" not in name and (is_unit or not _TIMES.isdisjoint(words)) and not is_overhead(name)


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
    """Unit at the end of a name, such as ``time_us`` and ``duration (ns)``; None without one."""
    words = re.split(r"[^0-9A-Za-zµμ]+", name.strip("([)] "))
    return time_unit(words[-1]) if len(words) > 1 or len(name) > 1 else None
