"""Reads lists of results: rows with tunables and a time, as ``tune_kernel`` returns them.

``json.dump(results)`` of Kernel Tuner writes a list of objects, ``json.dump((results, env))`` a
list of that list and the environment. Other programs write such rows as a list, or one per line. A
row does not say which of its keys are tunables: those before its first measurement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.importing.files import no_format
from launchwise.importing.kernel_tuner import ERROR, MARKS, NOT_TUNABLES, TIME, notes_on, row_of
from launchwise.importing.sweep import ForeignSweep, Row, as_time, as_value
from launchwise.importing.t1 import Space
from launchwise.importing.time_names import SPELLED, TO_MS, is_time_name, unit_in_name
from launchwise.workloads.parts import Value

FORMAT = "Kernel Tuner results"

Entry = Mapping[str, Any]

OBSERVED = ("nvml_", "ps_", "pmt", "pwr_", "ncu_", "temperature", "core_freq", "mem_freq", "power")
"""Beginnings of the keys that Kernel Tuner's observers write."""

DEVICE_KEYS = ("device_name", "device", "gpu_name", "gpu")
"""Keys of a row, or of the environment, that name the device."""


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
    """Key of a row's time: Kernel Tuner's, or one whose name ends with a unit; empty if none."""
    if TIME in row or "times" in row or ERROR in row:
        return TIME
    return next((key for key in row if is_time_name(key) and unit_in_name(key)), "")


def sweep_of_rows(
    rows: Sequence[Entry],
    environment: Entry,
    path: str | Path,
    space: Space | None = None,
    cut: bool = False,
) -> ForeignSweep:
    """Sweep of the rows of a list of results (see :func:`rows_in`).

    Parameters
    ----------
    environment
        What Kernel Tuner returns beside the rows; empty where there is nothing.
    space
        T1 of the kernel: then its tunables are taken.

    Raises
    ------
    UserError
        When no key is a tunable, or a row lacks one.
    """
    notes = ["the file was cut off: rows up to its last complete one were read"] if cut else []
    key = next(filter(None, map(_time_key, rows)))
    to_ms = _to_ms(key, notes)
    entries = [_entry(row, key, to_ms) for row in rows]
    named = _device_key(rows)
    names = list(space.tunables) if space else _tunables(entries, named)
    if not names:
        raise no_format(path, f"a list of rows without a tunable (keys: {_keys(rows)})")
    if not space:
        notes.append(f"tunables: {', '.join(names)}; a T1 file names others (--space)")
    objective = _objective(entries, names)
    read = []
    for number, entry in enumerate(entries):
        if lacking := [name for name in names if name not in entry]:
            raise UserError(path, f"{number}.{lacking[0]}", "is missing")
        read.append(row_of(str(number), entry, names, objective, path))
    told = [{k: v for k, v in entry.items() if k != named} for entry in entries]
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name=_device(rows, environment, named, path),
        kernel_name=space.kernel_name if space else str(environment.get("kernel_name") or ""),
        problem=dict(space.problem) if space else {},
        tunables={name: _values(name, read, space) for name in names},
        rows=read,
        notes=[*notes, *notes_on(told, names, read)],
    )


def _to_ms(key: str, notes: list[str]) -> float:
    """Milliseconds per unit of the times under ``key``; what is assumed of it goes to ``notes``."""
    unit = unit_in_name(key) or "ms"
    if key == TIME:
        notes.append("the time is read as milliseconds, as Kernel Tuner writes it")
    elif unit != "ms":
        notes.append(f"converted from {SPELLED[unit]} to milliseconds")
    return TO_MS[unit]


def _values(name: str, rows: Sequence[Row], space: Space | None) -> list[Value]:
    """Values of a tunable: those of T1 first, then those of rows alone."""
    listed = space.tunables[name] if space else []
    return list(dict.fromkeys([*listed, *(row.configuration[name] for row in rows)]))


def _entry(row: Entry, key: str, to_ms: float) -> dict[str, Any]:
    """``row`` as an entry of a cache: its time in ms, its repeats as a list."""
    found = {str(name): value for name, value in row.items() if name != key}
    value = row.get(key)
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
    if before and _distinct(entries, before) == _distinct(entries, candidates):
        return before
    return candidates


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


def _distinct(entries: Sequence[Entry], names: Sequence[str]) -> int:
    return len({tuple(as_value(entry[name]) for name in names) for entry in entries})


def _objective(entries: Sequence[Entry], names: Sequence[str]) -> str:
    """Key where failures stand as words: the first that holds both numbers and texts."""
    for key in dict.fromkeys(key for entry in entries for key in entry):
        values = [entry[key] for entry in entries if key in entry]
        texts = sum(isinstance(value, str) and as_time(value) is None for value in values)
        if key not in names and 0 < texts < len(values):
            return key
    return TIME


def _device_key(rows: Sequence[Entry]) -> str:
    for key in DEVICE_KEYS:
        if all(isinstance(row.get(key), str) for row in rows):
            return key
    return ""


def _device(rows: Sequence[Entry], environment: Entry, named: str, path: str | Path) -> str:
    if named:
        found = sorted({str(row[named]).strip() for row in rows})
        if len(found) > 1:
            message = f"rows are of several devices ({', '.join(found)}): leave one in the file"
            raise UserError(path, named, message)
        return found[0]
    return next((str(environment[key]).strip() for key in DEVICE_KEYS if environment.get(key)), "")


def _keys(rows: Sequence[Entry]) -> str:
    return ", ".join(dict.fromkeys(str(key) for row in rows for key in row))
