"""Reads what Kernel Tuner writes, a cache or a list of results, and writes caches.

The format is that of Kernel Tuner 1.x (``kernel_tuner/util.py``): a header, and ``cache`` that maps
the comma-joined values of a configuration to an entry with the parameters, the objective, ``time``
(mean of ``times``, ms) and ``times``. A failure is a text in the objective's field or in
``__error__``. A killed run lacks the closing brackets.

``json.dump(results)`` writes a list of such entries, ``json.dump((results, env))`` a list of that
list and the environment; other programs write rows of the kind as a list, or one per line. A row
does not say which of its keys are tunables: those before its first measurement.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import write_text
from launchwise.importing.foreign_sweep import (
    TO_MS,
    ForeignSweep,
    Row,
    as_mapping,
    as_time,
    as_times,
    as_value,
    is_time_name,
    keys_of,
    mean,
    notes_on_unit,
    problem_of,
    row_of,
    sweep_of,
    time_among,
    unit_in_name,
)
from launchwise.importing.opening import Repeated, no_format
from launchwise.importing.t1 import Space

TIME = "time"
ERROR = "__error__"

OVERHEADS = (
    *("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time"),
)
"""Times of an entry that are not the kernel's."""

MARKS = (TIME, "times", ERROR, *OVERHEADS)  # Measurements: an entry has at least one

HEAD = (
    *("device_name", "kernel_name", "problem_size", "tune_params_keys", "tune_params"),
    "objective",
)
"""Keys of which a cache has at least one, or one of :data:`MARKS` in an entry."""

NOT_TUNABLES = {*(*MARKS, "timestamp", "GFLOP/s", "GFLOPS", "GB/s", "num_regs", "objective")}
"""Keys of an entry that are no parameter, where the header does not list the parameters."""

OBSERVED = ("nvml_", "ps_", "pmt", "pwr_", "ncu_", "temperature", "core_freq", "mem_freq", "power")
"""Beginnings of the keys that observers write."""

DEVICE_KEYS = ("device_name", "device", "gpu_name", "gpu")
"""Keys of a row, or of the environment, that name the device."""

MEAN_TOLERANCE = 1e-6
"""Relative difference up to which a stated time counts as the mean of its repeats."""

Entry = Mapping[str, Any]


def is_cache(content: object) -> bool:
    if not isinstance(content, Mapping) or not isinstance(content.get("cache"), Mapping):
        return False
    entries = map(as_mapping, content["cache"].values())
    return any(key in content for key in HEAD) or any(
        key in entry for entry in entries for key in MARKS
    )


def sweep_of_cache(content: Mapping[str, Any], path: str | Path) -> ForeignSweep:
    cache: Mapping[str, Any] = content["cache"]
    names = _parameters(content, cache)
    objective = str(content.get("objective") or TIME)
    rows = [_row(key, entry, names, objective, path) for key, entry in cache.items()]
    notes = []
    if isinstance(cache, Repeated):
        notes.append(f"{cache.count} entries repeat a configuration: the last of each is kept")
    listed = as_mapping(content.get("tune_params"))
    return sweep_of(
        path,
        "Kernel Tuner cache",
        rows,
        "cache.{}",
        names,
        {
            name: [as_value(value) for value in values]
            for name, values in listed.items()
            if isinstance(values, list)
        },
        content.get("device_name"),
        content.get("kernel_name"),
        problem_of(content.get("problem_size")),
        [*notes, *_notes_on([as_mapping(entry) for entry in cache.values()], names, rows)],
    )


def _parameters(content: Mapping[str, Any], cache: Mapping[str, Any]) -> list[str]:
    for key in ("tune_params_keys", "tune_params"):
        named = content.get(key)
        if isinstance(named, list | Mapping) and named:
            return [str(name) for name in named]
    first: Entry = next((entry for entry in cache.values() if isinstance(entry, Mapping)), {})
    return [str(name) for name in first if name not in NOT_TUNABLES]


def _row(key: str, entry: object, names: Sequence[str], objective: str, path: str | Path) -> Row:
    """Row of one entry. ``key``: values of the tunables, joined by commas. ``objective``: key where
    the words of a failure may stand, beside :data:`TIME` and :data:`ERROR`. Raises UserError when
    it is no entry, or a tunable's value stands nowhere."""
    if not isinstance(entry, Mapping):
        raise UserError(path, f"cache.{key}", "is not an entry with parameters and times")
    inside = [n for n, value in entry.items() if isinstance(value, Mapping) and "times" in value]
    if inside:
        message = f"holds the entry {inside[0]!r}: a bracket is missing"
        raise UserError(path, f"cache.{key}", message)
    words = key.split(",")
    in_key = dict(zip(names, words, strict=True)) if len(words) == len(names) else {}
    if lacking := [name for name in names if name not in entry and name not in in_key]:
        raise UserError(path, f"cache.{key}.{lacking[0]}", "is missing")
    times = as_times(entry.get("times"))
    # A stated time that is none, such as 1e20 or NaN, is a failure, whatever the repeats say.
    stated = mean(times) if entry.get(TIME) is None else as_time(entry[TIME])
    return row_of(
        {name: entry.get(name, in_key.get(name)) for name in names},
        stated,
        times,
        _failure(entry, objective),
        compiled={"registers": entry.get("num_regs")},
        measured_at=entry.get("timestamp"),
    )


def _failure(entry: Entry, objective: str) -> str:
    """Words of a failure; empty for a row with a time."""
    if error := entry.get(ERROR):
        return error if isinstance(error, str) else json.dumps(error, default=str)
    texts = (entry.get(name) for name in (objective, TIME))
    return next((text for text in texts if isinstance(text, str) and as_time(text) is None), "")


def _notes_on(entries: Sequence[Entry], names: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """What was left out of ``entries`` with the tunables ``names``, and what is odd in ``rows``."""
    notes = []
    used = {*names, TIME, "times", ERROR, "timestamp", "num_regs"}
    if left := {str(name) for entry in entries for name in entry} - used:
        notes.append(f"not taken over: {', '.join(sorted(left))}")
    if broken := sum(bool(each.get("times")) and not as_times(each["times"]) for each in entries):
        notes.append(f"{broken} rows have a repeat that is no time: their repeats are left out")
    odd = sum(
        not math.isclose(row.time_ms, mean(row.times_ms) or 0.0, rel_tol=MEAN_TOLERANCE)
        for row in rows
        if row.time_ms is not None and row.times_ms
    )
    if odd:
        notes.append(f"{odd} rows state a time that is not the mean of their repeats")
    return notes


def rows_in(content: object) -> tuple[list[Entry], Entry] | None:
    """Rows of a list of results, and its environment; None where ``content`` is no such list."""
    if isinstance(content, list) and len(content) == 2 and isinstance(content[0], list):
        listed, environment = content
    else:
        listed, environment = content, {}
    if not isinstance(listed, list) or not listed or not isinstance(environment, Mapping):
        return None
    if not all(isinstance(row, Mapping) for row in listed) or not any(map(_time_key, listed)):
        return None
    return listed, environment


def _time_key(row: Entry) -> str:
    """Key of a row's time: Kernel Tuner's, or one that names a unit; empty if none."""
    if TIME in row or "times" in row or ERROR in row:
        return TIME
    return time_among(key for key in row if unit_in_name(key))


def sweep_of_rows(
    rows: Sequence[Entry], environment: Entry, path: str | Path, space: Space | None = None
) -> ForeignSweep:
    """Sweep of the rows of a list of results (see :func:`rows_in`). ``environment``: what Kernel
    Tuner returns beside the rows; empty where there is nothing. ``space``: T1 of the kernel: then
    its tunables are taken. Raises UserError when no key is a tunable, or a row lacks one."""
    time_key = next(filter(None, map(_time_key, rows)))
    unit = unit_in_name(time_key) or "ms"
    notes = notes_on_unit(unit)
    if time_key == TIME:
        notes = ["the time is read as milliseconds, as Kernel Tuner writes it"]
    keys = keys_of(rows, path)
    entries = [_entry(row, time_key, TO_MS[unit]) for row in rows]
    named = next((k for k in DEVICE_KEYS if all(isinstance(r.get(k), str) for r in rows)), "")
    names = list(space.tunables) if space else _tunables(entries, named)
    if not names:
        raise no_format(path, f"a list of rows without a tunable (keys: {', '.join(keys)})")
    if not space:
        notes.append(f"tunables: {', '.join(names)}; a T1 file names others (--space)")
    objective = _objective(entries, names)
    read = []
    for number, entry in enumerate(entries):
        if lacking := [name for name in names if name not in entry]:
            raise UserError(path, f"{number}.{lacking[0]}", "is missing")
        read.append(_row(str(number), entry, names, objective, path))
    told = [{k: v for k, v in entry.items() if k != named} for entry in entries]
    return sweep_of(
        path,
        "Kernel Tuner results",
        read,
        "{}",
        names,
        space.tunables if space else None,
        _device(rows, environment, named, path),
        space.kernel_name if space else environment.get("kernel_name"),
        space.problem if space else None,
        [*notes, *_notes_on(told, names, read)],
    )


def _entry(row: Entry, time_key: str, to_ms: float) -> dict[str, Any]:
    """``row`` as an entry of a cache: its time in ms, its repeats as a list."""
    found = {str(name): value for name, value in row.items() if name != time_key}
    value = row.get(time_key)
    if value is not None:
        time = as_time(value)
        found[TIME] = value if time is None or to_ms == 1.0 else time * to_ms
    if isinstance(found.get("times"), str):
        try:
            found["times"] = json.loads(found["times"])
        except (ValueError, RecursionError):
            del found["times"]
    return found


def _tunables(entries: Sequence[Entry], device: str) -> list[str]:
    """Keys of the tunables: those before the first measurement, if they tell rows apart."""
    keys = list(dict.fromkeys(key for entry in entries for key in entry))
    candidates = [key for key in keys if key != device and _may_be_tunable(key, entries)]
    # The time may have been put at the end: its place among the given keys counts.
    marks = [place for place, key in enumerate(keys) if key in MARKS]
    before = [key for key in candidates if keys.index(key) < min(marks, default=len(keys))]
    few, every = (
        len({tuple(as_value(entry[name]) for name in names) for entry in entries})
        for names in (before, candidates)
    )
    return before if before and few == every else candidates


def _may_be_tunable(key: str, entries: Sequence[Entry]) -> bool:
    if key in NOT_TUNABLES or "/" in key or key.lower().startswith(OBSERVED):
        return False
    if is_time_name(key) or not all(key in entry for entry in entries):
        return False
    values = [entry[key] for entry in entries]
    if not all(isinstance(value, str | int | float | bool) for value in values):
        return False
    measured = any(isinstance(each, float) and not each.is_integer() for each in values)
    return not measured or 2 * len(set(values)) <= len(values)


def _objective(entries: Sequence[Entry], names: Sequence[str]) -> str:
    """Key where failures stand as words: the first that holds both numbers and texts."""
    for key in dict.fromkeys(key for entry in entries for key in entry):
        values = [entry[key] for entry in entries if key in entry]
        texts = sum(isinstance(value, str) and as_time(value) is None for value in values)
        if key not in names and 0 < texts < len(values):
            return key
    return TIME


def _device(rows: Sequence[Entry], environment: Entry, named: str, path: str | Path) -> str:
    if not named:
        return next((str(environment[key]) for key in DEVICE_KEYS if environment.get(key)), "")
    found = sorted({str(row[named]).strip() for row in rows})
    if len(found) > 1:
        message = f"rows are of several devices ({', '.join(found)}): leave one in the file"
        raise UserError(path, named, message)
    return found[0]


def write_cache(path: str | Path, sweep: ForeignSweep) -> None:
    """Write ``sweep`` as a cache file. A failed row has the words of its failure as its time, as
    Kernel Tuner writes it."""
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
