"""Reads and writes cache files of Kernel Tuner.

The format is that of Kernel Tuner 1.x (``kernel_tuner/util.py``): a header, and ``cache`` that maps
the comma-joined values of a configuration to an entry with the parameters, the objective, ``time``
(mean of ``times``, ms) and ``times``. A failure is a text in the objective's field or in
``__error__``. A killed run lacks the closing brackets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import write_text
from launchwise.importing.files import Repeated
from launchwise.importing.sweep import (
    ForeignSweep,
    Row,
    as_time,
    as_times,
    as_value,
    failure_status,
    problem_of,
)
from launchwise.workloads.parts import Value

FORMAT = "Kernel Tuner cache"
TIME = "time"
ERROR = "__error__"

OVERHEADS = (
    *("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"),
)
"""Times of an entry that are not the kernel's."""

NOT_TUNABLES = {
    *(TIME, "times", ERROR, "timestamp", *OVERHEADS),
    *("GFLOP/s", "GFLOPS", "GB/s", "num_regs", "objective"),
}
"""Keys of an entry that are no parameter, where the header does not list the parameters."""

HEAD = (
    *("device_name", "kernel_name", "problem_size", "tune_params_keys", "tune_params"),
    "objective",
)
"""Keys of which a cache has at least one, or one of :data:`MARKS` in an entry."""

MARKS = (TIME, "times", ERROR, *OVERHEADS)

UNKNOWN_FAILURE = "no time"

MEAN_TOLERANCE = 1e-6
"""Relative difference up to which a stated time counts as the mean of its repeats."""


def is_cache(content: object) -> bool:
    """Whether the content of a JSON file is a Kernel Tuner cache."""
    if not isinstance(content, Mapping) or not isinstance(content.get("cache"), Mapping):
        return False
    entries = content["cache"].values()
    return any(key in content for key in HEAD) or any(
        isinstance(entry, Mapping) and any(key in entry for key in MARKS) for entry in entries
    )


def sweep_of_cache(content: object, path: str | Path, cut: bool = False) -> ForeignSweep:
    """Sweep in the content of a cache file."""
    if not isinstance(content, Mapping) or not isinstance(content.get("cache"), Mapping):
        raise UserError(path, "cache", "is missing: not a cache of Kernel Tuner")
    cache: Mapping[str, Any] = content["cache"]
    notes = ["the file was cut off: entries up to its last complete one were read"] if cut else []
    names = _parameters(content, cache)
    objective = str(content.get("objective") or TIME)
    rows = [row_of(key, entry, names, objective, path) for key, entry in cache.items()]
    if isinstance(cache, Repeated):
        notes.append(f"{cache.count} entries repeat a configuration: the last of each is kept")
    notes += notes_on(list(cache.values()), names, rows)
    listed = content.get("tune_params")
    values = listed if isinstance(listed, Mapping) else {}
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name=str(content.get("device_name") or "").strip(),
        kernel_name=str(content.get("kernel_name") or "").strip(),
        problem=problem_of(content.get("problem_size")),
        tunables={name: _values(values.get(name), name, rows) for name in names},
        rows=rows,
        notes=notes,
    )


def _parameters(content: Mapping[str, Any], cache: Mapping[str, Any]) -> list[str]:
    """Names of the tunables in the order of the keys."""
    for key in ("tune_params_keys", "tune_params"):
        named = content.get(key)
        if isinstance(named, list | Mapping) and named:
            return [str(name) for name in named]
    first = next((entry for entry in cache.values() if isinstance(entry, Mapping)), {})
    return [str(name) for name in first if name not in NOT_TUNABLES]


def _values(listed: object, name: str, rows: Sequence[Row]) -> list[Value]:
    """Values of a tunable: those of the header, then those that only rows have."""
    given = [as_value(value) for value in listed] if isinstance(listed, list | tuple) else []
    return list(dict.fromkeys([*given, *(row.configuration[name] for row in rows)]))


def row_of(key: str, entry: object, names: Sequence[str], objective: str, path: str | Path) -> Row:
    """Row of one entry.

    Parameters
    ----------
    key
        Values of the tunables, joined by commas.
    objective
        Key where the words of a failure may stand, beside :data:`TIME` and :data:`ERROR`.

    Raises
    ------
    UserError
        When it is no entry, or a tunable's value stands nowhere.
    """
    if not isinstance(entry, Mapping):
        raise UserError(path, f"cache.{key}", "is not an entry with parameters and times")
    words = key.split(",")
    inside = [n for n, value in entry.items() if isinstance(value, Mapping) and "times" in value]
    if inside:
        message = f"holds the entry {inside[0]!r}: a bracket is missing"
        raise UserError(path, f"cache.{key}", message)
    configuration: dict[str, Value] = {}
    for place, name in enumerate(names):
        if name in entry:
            configuration[name] = as_value(entry[name])
        elif len(words) == len(names):
            configuration[name] = as_value(words[place])
        else:
            raise UserError(path, f"cache.{key}.{name}", "is missing")
    times = as_times(entry.get("times"))
    stated = as_time(entry.get(TIME))
    failure = _failure(entry, objective)
    # A stated time that is none, such as 1e20 or NaN, is a failure, whatever the repeats say.
    if entry.get(TIME) is None and times and not failure:
        stated = math.fsum(times) / len(times)
    extra: dict[str, Any] = {}
    if isinstance(entry.get("timestamp"), str):
        extra["measured_at"] = entry["timestamp"]
    if isinstance(registers := as_value(entry.get("num_regs", "")), int):
        extra["registers"] = registers
    if failure or stated is None:
        words_of_it = failure or UNKNOWN_FAILURE
        return Row(configuration, failure_status(words_of_it), words_of_it, times, None, extra)
    return Row(configuration, "ok", "", times, stated, extra)


def _failure(entry: Mapping[str, Any], objective: str) -> str:
    """Words of a failure; empty for a row with a time."""
    error = entry.get(ERROR)
    if error:
        return error if isinstance(error, str) else json.dumps(error, default=str)
    for name in (objective, TIME):
        value = entry.get(name)
        if isinstance(value, str) and as_time(value) is None:
            return value
    return ""


def notes_on(entries: Sequence[object], names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """What was left out of ``entries`` with the tunables ``names``, and what is odd in ``rows``."""
    notes = []
    used = {*names, TIME, "times", ERROR, "timestamp", "num_regs"}
    left = {str(name) for entry in entries if isinstance(entry, Mapping) for name in entry} - used
    if left:
        notes.append(f"not taken over: {', '.join(sorted(left))}")
    means = [
        row
        for row in rows
        if row.time_ms is not None and row.times_ms and not _is_mean(row.time_ms, row.times_ms)
    ]
    broken = sum(
        bool(entry.get("times")) and not as_times(entry["times"])
        for entry in entries
        if isinstance(entry, Mapping)
    )
    if broken:
        notes.append(f"{broken} rows have a repeat that is no time: their repeats are left out")
    if means:
        notes.append(f"{len(means)} rows state a time that is not the mean of their repeats")
    return notes


def _is_mean(time_ms: float, times_ms: Sequence[float]) -> bool:
    mean = math.fsum(times_ms) / len(times_ms)
    return math.isclose(time_ms, mean, rel_tol=MEAN_TOLERANCE)


def write_cache(path: str | Path, sweep: ForeignSweep) -> None:
    """Write ``sweep`` as a cache file.

    A failed row has the words of its failure as its time, as Kernel Tuner writes it.
    """
    names = list(sweep.tunables)
    cache = {}
    for row in sweep.rows:
        values = [row.configuration[name] for name in names]
        entry: dict[str, Any] = dict(zip(names, values, strict=True))
        entry[TIME] = row.time_ms if row.status == "ok" else row.reason or "ErrorConfig"
        entry["times"] = list(row.times_ms)
        if "measured_at" in row.extra:
            entry["timestamp"] = row.extra["measured_at"]
        cache[",".join(map(str, values))] = entry
    content = {
        "device_name": sweep.device_name,
        "kernel_name": sweep.kernel_name,
        "problem_size": list(sweep.problem.values()),
        "tune_params_keys": names,
        "tune_params": sweep.tunables,
        "objective": TIME,
        "cache": cache,
    }
    write_text(path, json.dumps(content, allow_nan=False))
