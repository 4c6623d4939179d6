"""Which names and units of measurements are those of a time."""

from __future__ import annotations

import re

TO_MS = {
    "s": 1e3,
    "ms": 1.0,
    "us": 1e-3,
    "ns": 1e-6,
}
"""Unit of a time to milliseconds."""

_UNITS = {
    **{name: "s" for name in ("second", "seconds", "sec", "secs")},
    **{name: "ms" for name in ("millisecond", "milliseconds", "msec", "msecs", "millis")},
    **{name: "ms" for name in ("milisecond", "miliseconds")},
    **{name: "us" for name in ("microsecond", "microseconds", "usec", "usecs", "micros")},
    **{name: "us" for name in ("µs", "μs", "µsec", "μsec")},
    **{name: "ns" for name in ("nanosecond", "nanoseconds", "nsec", "nsecs", "nanos")},
    **{name: name for name in TO_MS},
}
"""Names that files use for units, one of them misspelt as real files have it."""

SPELLED = {"ms": "milliseconds", "s": "seconds", "us": "microseconds", "ns": "nanoseconds"}

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
    """Whether a measurement of this name is the time of a kernel, such as ``kernel_time``.

    Overheads (``compile_time``), rates (``GB/s``, ``GFLOP per time``), spreads and time stamps are
    not.
    """
    return (
        "/" not in name
        and any(word in _TIMES for word in _words(name))
        and not (is_overhead_name(name))
    )


def is_overhead_name(name: str) -> bool:
    """Whether a name is that of a time of something else than the kernel, or of a spread."""
    return any(word in _OTHERS for word in _words(name))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def unit_in_name(name: str) -> str | None:
    """Unit at the end of a name, such as ``time_us`` and ``duration (ns)``; None without one."""
    words = re.split(r"[^0-9A-Za-zµμ]+", name.rstrip(")] "))
    return time_unit(words[-1]) if len(words) > 1 else None
