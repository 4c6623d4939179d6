"""Reads and writes T4 of the Auto-Tuning Association: the results of a tuner.

T4 states results but no device, no kernel and no problem: a T1 beside it, or the user, does. Its
objective may be anything, such as GFLOP/s or joules: the time is looked for by names and units.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import write_text
from launchwise.importing.sweep import (
    ForeignSweep,
    Row,
    as_time,
    as_times,
    as_value,
    failure_status,
    problem_of,
)
from launchwise.importing.t1 import Space
from launchwise.importing.t4_times import TimeSource, measured_in, time_source
from launchwise.importing.time_names import SPELLED, TO_MS, time_unit
from launchwise.workloads.parts import Value

FORMAT = "T4"
SCHEMA_VERSION = "1.0.0"

STATUS_OF = {
    "correct": "ok",
    "": "ok",
    "timeout": "timeout",
    "correctness": "wrong",
    "compile": "failed",
    "runtime": "failed",
    "constraints": "failed",
}
"""``invalidity`` of a T4 result to our status."""

WORDS_OF = {
    "compile": "CompilationFailedConfig",
    "runtime": "RuntimeFailedConfig",
    "constraints": "InvalidConfig",
    "correctness": "correctness",
    "timeout": "timeout",
}
"""``invalidity`` of a T4 result to the words of its failure: those of Kernel Tuner where it has
any."""


MARKS = ("configuration", "invalidity", "measurements", "objectives")
"""Keys of which a result of T4 has at least one."""

HEADS = ("schema_version", "metadata")
"""Keys of which a T4 file without results has at least one."""


def is_t4(content: object) -> bool:
    """Whether the content of a JSON file is T4."""
    if not isinstance(content, Mapping) or not isinstance(content.get("results"), list):
        return False
    results = content["results"]
    if not results:
        return any(key in content for key in HEADS)
    return any(_is_result(each) for each in results)


def _is_result(entry: object) -> bool:
    if not isinstance(entry, Mapping):
        return False
    return any(key in entry for key in MARKS) or isinstance(entry.get("times"), Mapping)


def sweep_of_t4(
    content: object, path: str | Path, space: Space | None = None, cut: bool = False
) -> ForeignSweep:
    """Sweep in the content of a T4 file."""
    if not isinstance(content, Mapping) or not isinstance(content.get("results"), list):
        raise UserError(path, "results", "is missing: not a T4 file")
    notes = ["the file was cut off: results up to its last complete one were read"] if cut else []
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    results = content["results"]
    source = time_source([each for each in results if isinstance(each, Mapping)], notes)
    unit = _unit(metadata, source, path, notes)
    rows = [_result(each, n, source, unit, path) for n, each in enumerate(results)]
    if source.complaint and any(row.reason == NO_TIME_STATED for row in rows):
        raise UserError(path, "results", source.complaint)
    if source.complaint and source.objectives and any(row.time_ms for row in rows):
        told = ", ".join(source.objectives)
        notes.append(f"the objective is {told}, no time: the mean of the repeats is the time")
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name=str(metadata.get("device_name") or metadata.get("device") or "").strip(),
        kernel_name=space.kernel_name if space else str(metadata.get("kernel_name") or ""),
        problem=problem_of(metadata.get("problem_size")) or (dict(space.problem) if space else {}),
        tunables=_tunables(rows, path, space),
        rows=rows,
        notes=notes,
    )


def _unit(
    metadata: Mapping[str, Any], source: TimeSource, path: str | Path, notes: list[str]
) -> str:
    """Unit of times that state none themselves."""
    stated = metadata.get("timeunit") or metadata.get("time_unit")
    unit = time_unit(stated) if stated else None
    if stated and unit is None:
        raise UserError(path, "metadata.timeunit", f"{stated!r} is no unit of time")
    if unit is None and source.unit:
        notes.append(
            f"states the unit of its measurements alone: {SPELLED[source.unit]}, repeats too"
        )
        return source.unit
    if unit is None:
        notes.append("states no unit of time: milliseconds, as the T4 schema has it")
        return "ms"
    if unit != "ms":
        notes.append(f"converted from {SPELLED[unit]} to milliseconds")
    return unit


def _tunables(rows: Sequence[Row], path: str | Path, space: Space | None) -> dict[str, list[Value]]:
    """Tunables with the values of the space, then those that only results have."""
    names = list(space.tunables) if space else list(rows[0].configuration) if rows else []
    for number, row in enumerate(rows):
        if others := [name for name in row.configuration if name not in names]:
            known = "the space (T1)" if space else "the first result"
            message = f"has the parameter {others[0]}, which {known} has not"
            raise UserError(path, f"results.{number}.configuration", message)
        if lacking := [name for name in names if name not in row.configuration]:
            raise UserError(path, "results", f"a configuration lacks {lacking[0]}")
    return {
        name: list(
            dict.fromkeys(
                [
                    *(space.tunables[name] if space else []),
                    *(row.configuration[name] for row in rows),
                ]
            )
        )
        for name in names
    }


NO_TIME_STATED = "no time"
"""Reason of a row that is said to be right and has no time."""


def _result(entry: object, number: int, source: TimeSource, unit: str, path: str | Path) -> Row:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("configuration"), Mapping):
        raise UserError(path, f"results.{number}.configuration", "is missing")
    configuration = {str(name): as_value(value) for name, value in entry["configuration"].items()}
    runtimes = source.repeats(entry, unit)
    stated, words = _stated(entry, source, unit)
    invalidity = str(entry.get("invalidity") or "").strip().lower()
    status = STATUS_OF.get(invalidity, failure_status(invalidity))
    extra = _extra(entry)
    if status == "ok":
        if stated is None and runtimes and not words:
            stated = math.fsum(runtimes) / len(runtimes)
        if stated is not None and not words:
            return Row(configuration, "ok", "", runtimes, stated, extra)
        status = failure_status(words or NO_TIME_STATED)
    known = "" if STATUS_OF.get(invalidity) == "ok" else WORDS_OF.get(invalidity, invalidity)
    reason = words or known or NO_TIME_STATED
    return Row(configuration, status, reason, runtimes, None, extra)


def _extra(entry: Mapping[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if isinstance(entry.get("timestamp"), str):
        extra["measured_at"] = entry["timestamp"]
    compiled = entry.get("compilation_data")
    if isinstance(compiled, Mapping) and isinstance(as_value(compiled.get("registers")), int):
        extra["registers"] = as_value(compiled["registers"])
    return extra


def _stated(entry: Mapping[str, Any], source: TimeSource, unit: str) -> tuple[float | None, str]:
    """Time that a result states, ms, and the words that stand in its place or an objective's."""
    words, time = "", None
    for name, value, own in measured_in(entry):
        if name != source.measurement and name not in source.objectives:
            continue
        if isinstance(value, str) and as_time(value) is None:
            words = words or value
        if name == source.measurement:
            repeats = as_times(value)
            found = math.fsum(repeats) / len(repeats) if repeats else as_time(value)
            factor = TO_MS[time_unit(own) or source.unit_of_name or unit]
            time = found if found is None or factor == 1.0 else found * factor
    return time, words


def write_t4(path: str | Path, sweep: ForeignSweep) -> None:
    """Write ``sweep`` as T4, schema 1.0.0."""
    results = [_written(row, list(sweep.tunables)) for row in sweep.rows]
    content = {
        "schema_version": SCHEMA_VERSION,
        "metadata": {
            "timeunit": "milliseconds",
            "device_name": sweep.device_name,
            "kernel_name": sweep.kernel_name,
            "problem_size": list(sweep.problem.values()),
        },
        "results": results,
    }
    write_text(path, json.dumps(content, allow_nan=False))


def _written(row: Row, names: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if "measured_at" in row.extra:
        result["timestamp"] = row.extra["measured_at"]
    value: Any = row.time_ms if row.status == "ok" else row.reason
    return {
        **result,
        "configuration": {name: row.configuration[name] for name in names},
        "times": {"runtimes": list(row.times_ms)},
        "invalidity": invalidity_of(row),
        "correctness": 1.0 if row.status == "ok" else 0.0,
        "measurements": [{"name": "time", "value": value, "unit": "milliseconds"}],
        "objectives": ["time"],
    }


def invalidity_of(row: Row) -> str:
    """``invalidity`` of a row in T4."""
    if row.status in ("ok", "timeout", "wrong"):
        return {"ok": "correct", "timeout": "timeout", "wrong": "correctness"}[row.status]
    words = row.reason.lower()
    if "compil" in words:
        return "compile"
    return "constraints" if "invalid" in words or "constraint" in words else "runtime"
