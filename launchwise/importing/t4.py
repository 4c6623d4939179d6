"""Reads and writes T4 of the Auto-Tuning Association: the results of a tuner.

T4 states results but no device, no kernel and no problem: a T1 beside it, or the user, does. Its
objective may be anything, such as GFLOP/s or joules: the time is looked for by names and units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import write_text
from launchwise.importing.foreign_sweep import (
    NO_TIME_STATED,
    SPELLED,
    TO_MS,
    ForeignSweep,
    Row,
    as_mapping,
    as_time,
    as_times,
    failure_status,
    is_overhead,
    is_time_name,
    mean,
    notes_on_unit,
    problem_of,
    row_of,
    sweep_of,
    time_among,
    time_unit,
    unit_in_name,
)
from launchwise.importing.t1 import Space

SCHEMA_VERSION = "1.0.0"

INVALIDITY = {
    "correct": ("ok", ""),
    "": ("ok", ""),
    "timeout": ("timeout", "timeout"),
    "correctness": ("wrong", "correctness"),
    "compile": ("failed", "CompilationFailedConfig"),
    "runtime": ("failed", "RuntimeFailedConfig"),
    "constraints": ("failed", "InvalidConfig"),
}
"""``invalidity`` of a result to our status, and the words of its failure: those of Kernel Tuner
where it has any."""

MARKS = ("configuration", "invalidity", "measurements", "objectives")
"""Keys of which a result has at least one."""

HEADS = ("schema_version", "metadata")  # Keys of which a file without results has at least one

MEASUREMENTS = ("time", "kernel_time", "runtime", "kernel_runtime", "duration")
"""Measurements that are read as the time, the first that a file has, if no objective is one."""

REPEATS = ("runtimes", "kernel_times", "times", "runtime", "kernel_time", "time")
"""Keys of ``times`` that hold the times of repeats."""


def is_t4(content: object) -> bool:
    results = as_mapping(content).get("results")
    if not isinstance(results, list):
        return False
    if not results:
        return any(key in as_mapping(content) for key in HEADS)
    entries = map(as_mapping, results)
    return any(
        any(key in entry for key in MARKS) or isinstance(entry.get("times"), Mapping)
        for entry in entries
    )


def sweep_of_t4(
    content: Mapping[str, Any], path: str | Path, space: Space | None = None
) -> ForeignSweep:
    metadata = as_mapping(content.get("metadata"))
    results = content["results"]
    notes: list[str] = []
    times = _times(results, metadata, path, notes)
    rows = [_row(each, number, times, path) for number, each in enumerate(results)]
    if times.complaint and any(row.reason == NO_TIME_STATED for row in rows):
        raise UserError(path, "results", times.complaint)
    if times.complaint and times.objectives and any(row.time_ms for row in rows):
        told = ", ".join(times.objectives)
        notes.append(f"the objective is {told}, no time: the mean of the repeats is the time")
    return sweep_of(
        path,
        "T4",
        rows,
        "results.{}.configuration",
        space.tunables if space else (),
        space.tunables if space else None,
        metadata.get("device_name") or metadata.get("device"),
        space.kernel_name if space else metadata.get("kernel_name"),
        problem_of(metadata.get("problem_size")) or (space.problem if space else {}),
        notes,
    )


@dataclass(frozen=True)
class _Times:
    # Name of a measurement; empty where none is a time: then the complaint says why.
    measurement: str
    complaint: str
    objectives: tuple[str, ...]  # what was optimised; a failure's words may stand there
    # Unit of times that state none, and that of the measurement where its own entry states none.
    unit: str
    own_unit: str

    def repeats(self, entry: Mapping[str, Any]) -> tuple[float, ...]:
        times = entry.get("times")
        if isinstance(times, Mapping):
            times = next((times[name] for name in REPEATS if name in times), [])
            times = times if isinstance(times, list) else [times]
        return as_times(times, TO_MS[self.unit])

    def stated(self, entry: Mapping[str, Any]) -> tuple[float | None, str]:
        """Time that a result states, ms, and words in its place or that of an objective."""
        words, time = "", None
        for name, value, unit in _measured_in(entry):
            if name not in (self.measurement, *self.objectives):
                continue
            if isinstance(value, str) and as_time(value) is None:
                words = words or value
            if name == self.measurement:
                given = mean(as_times(value)) or as_time(value)
                factor = TO_MS[time_unit(unit) or self.own_unit]
                time = given if given is None or factor == 1.0 else given * factor
        return time, words


def _measured_in(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    listed = entry.get("measurements")
    if isinstance(listed, Mapping):
        yield from ((str(name), value, "") for name, value in listed.items())
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, Mapping):
            yield str(each.get("name")), each.get("value"), str(each.get("unit") or "").strip()


def _times(
    results: Sequence[object], metadata: Mapping[str, Any], path: str | Path, notes: list[str]
) -> _Times:
    """Where the results of a file hold their time. An objective that is a time, by its unit or else
    by its name; otherwise the first of :data:`MEASUREMENTS`; otherwise any measurement that is one.
    ``notes`` gets a sentence where it is no objective, and on the unit."""
    units: dict[str, set[str]] = {}
    objectives: dict[str, None] = {}
    for entry in map(as_mapping, results):
        named = entry.get("objectives")
        listed = named if isinstance(named, list) else [named] if named else []
        objectives.update(dict.fromkeys(str(name) for name in listed))
        for name, _, unit in _measured_in(entry):
            units.setdefault(name, set()).add(unit)
    times = [name for name, own in units.items() if _is_time(name, own)]
    wanted = [*objectives, *MEASUREMENTS, time_among(times), *times]
    chosen = next((name for name in wanted if name in times), "")
    told = ", ".join(objectives) or "none"
    if chosen and objectives and chosen not in objectives:
        notes.append(f"the objective is {told}, no time: {chosen} is read as the time")
    in_name = unit_in_name(chosen) or ""
    own = {time_unit(unit) or in_name for unit in units.get(chosen, ())}
    unit = _unit(metadata, own.pop() if len(own) == 1 else "", path, notes)
    measured = ", ".join(_with_units(name, own) for name, own in units.items()) or "none"
    complaint = f"hold no time: objectives {told}; measurements {measured}"
    return _Times(chosen, "" if chosen else complaint, (*objectives,), unit, in_name or unit)


def _is_time(name: str, units: set[str]) -> bool:
    """Whether all units of a measurement are of a time, or else its name is that of one."""
    stated = {unit for unit in units if unit}
    if not stated:
        return is_time_name(name)
    return all(time_unit(unit) for unit in stated) and not is_overhead(name)


def _with_units(name: str, units: set[str]) -> str:
    stated = " or ".join(sorted(unit for unit in units if unit and unit != name))
    return f"{name} in {stated}" if stated else name


def _unit(metadata: Mapping[str, Any], measured: str, path: str | Path, notes: list[str]) -> str:
    """Unit of times that state none themselves. ``measured``: the one unit of the time in all
    results; empty where they state none, or several."""
    stated = metadata.get("timeunit") or metadata.get("time_unit")
    unit = time_unit(stated) if stated else None
    if stated and unit is None:
        raise UserError(path, "metadata.timeunit", f"{stated!r} is no unit of time")
    if unit is not None:
        notes += notes_on_unit(unit)
    elif measured:
        notes.append(f"states the unit of its measurements alone: {SPELLED[measured]}, repeats too")
    else:
        notes.append("states no unit of time: milliseconds, as the T4 schema has it")
    return unit or measured or "ms"


def _row(entry: object, number: int, times: _Times, path: str | Path) -> Row:
    configuration = as_mapping(entry).get("configuration")
    if not isinstance(entry, Mapping) or not isinstance(configuration, Mapping):
        raise UserError(path, f"results.{number}.configuration", "is missing")
    runtimes = times.repeats(entry)
    stated, words = times.stated(entry)
    invalidity = str(entry.get("invalidity") or "").strip().lower()
    status, failure = INVALIDITY.get(invalidity, (failure_status(invalidity), invalidity))
    return row_of(
        configuration,
        mean(runtimes) if stated is None else stated,
        runtimes,
        words or failure,
        "" if status == "ok" else status,
        compiled={"registers": as_mapping(entry.get("compilation_data")).get("registers")},
        measured_at=entry.get("timestamp"),
    )


def write_t4(path: str | Path, sweep: ForeignSweep) -> None:
    """Write ``sweep`` as T4, schema 1.0.0."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "metadata": {
            "timeunit": "milliseconds",
            "device_name": sweep.device_name,
            "kernel_name": sweep.kernel_name,
            "problem_size": list(sweep.problem.values()),
        },
        "results": [_written(row, list(sweep.tunables)) for row in sweep.rows],
    }
    write_text(path, json.dumps(content, allow_nan=False))


def _written(row: Row, names: Sequence[str]) -> dict[str, Any]:
    stamp = {"timestamp": row.extra["measured_at"]} if "measured_at" in row.extra else {}
    value: Any = row.time_ms if row.status == "ok" else row.reason
    return {
        **stamp,
        "configuration": {name: row.configuration[name] for name in names},
        "times": {"runtimes": list(row.times_ms)},
        "invalidity": invalidity_of(row),
        "correctness": 1.0 if row.status == "ok" else 0.0,
        "measurements": [{"name": "time", "value": value, "unit": "milliseconds"}],
        "objectives": ["time"],
    }


def invalidity_of(row: Row) -> str:
    if row.status in ("ok", "timeout", "wrong"):
        return {"ok": "correct", "timeout": "timeout", "wrong": "correctness"}[row.status]
    words = row.reason.lower()
    if "compil" in words:
        return "compile"
    return "constraints" if "invalid" in words or "constraint" in words else "runtime"
