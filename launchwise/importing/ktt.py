"""Reads results of KTT in its JSON format.

``Metadata`` holds device and unit of time, ``Results`` a status, ``TotalDuration``, a
``Configuration`` of names and values, and ``ComputationResults`` of the launches with the
compiler's figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.importing.sweep import ForeignSweep, Row, as_time, as_value, failure_status
from launchwise.importing.time_names import SPELLED, TO_MS, time_unit
from launchwise.workloads.parts import Value

FORMAT = "KTT"

HEAD = ("TimeUnit", "KttVersion", "ComputeApi", "Platform", "Device")
"""Keys of ``Metadata`` of which a file has at least one, or its results are as KTT's."""


def is_ktt(content: object) -> bool:
    """Whether the content of a JSON file is KTT's."""
    if not isinstance(content, Mapping) or not isinstance(content.get("Results"), list):
        return False
    metadata = content.get("Metadata")
    if isinstance(metadata, Mapping) and any(key in metadata for key in HEAD):
        return True
    return any(
        isinstance(each, Mapping) and isinstance(each.get("Configuration"), list)
        for each in content["Results"]
    )


def sweep_of_ktt(content: object, path: str | Path, cut: bool = False) -> ForeignSweep:
    """Sweep in the content of a file of KTT."""
    if not isinstance(content, Mapping) or not isinstance(content.get("Results"), list):
        raise UserError(path, "Results", "is missing: not a file of KTT")
    metadata = content.get("Metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    unit = time_unit(metadata.get("TimeUnit", ""))
    if unit is None:
        allowed = "Seconds, Milliseconds, Microseconds, Nanoseconds"
        raise UserError(path, "Metadata.TimeUnit", f"is missing or no unit (allowed: {allowed})")
    notes = ["the file was cut off: results up to its last complete one were read"] if cut else []
    if unit != "ms":
        notes.append(f"converted from {SPELLED[unit]} to milliseconds")
    results = content["Results"]
    rows = [_result(each, number, TO_MS[unit], path) for number, each in enumerate(results)]
    names = list(rows[0].configuration) if rows else []
    for number, row in enumerate(rows):
        if set(row.configuration) != set(names):
            message = "has other parameters than the first result"
            raise UserError(path, f"Results.{number}.Configuration", message)
    notes.append("one time per configuration: its repeats are not in the file")
    kernels = [each.get("KernelName") for each in results if isinstance(each, Mapping)]
    if len(named := sorted({str(name) for name in kernels if name})) > 1:
        message = f"are of several kernels ({', '.join(named)}): leave one in the file"
        raise UserError(path, "Results", message)
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name=str(metadata.get("Device") or "").strip(),
        kernel_name=str(next(filter(None, kernels), "")),
        problem={},
        tunables={
            name: list(dict.fromkeys(row.configuration[name] for row in rows)) for name in names
        },
        rows=rows,
        notes=notes,
    )


def _result(entry: object, number: int, to_ms: float, path: str | Path) -> Row:
    key = f"Results.{number}.Configuration"
    listed = entry.get("Configuration") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(listed, list):
        raise UserError(path, key, "is missing")
    configuration: dict[str, Value] = {}
    for each in listed:
        if not isinstance(each, Mapping) or "Name" not in each or "Value" not in each:
            raise UserError(path, key, "must be a list of names and values")
        configuration[str(each["Name"])] = as_value(each["Value"])
    computed = entry.get("ComputationResults")
    listed_launches = computed if isinstance(computed, list) else []
    launches = [one for one in listed_launches if isinstance(one, Mapping)]
    status, extra = str(entry.get("Status") or "Ok"), _compiled(launches)
    time = as_time(entry.get("TotalDuration"))
    if time is None and len(launches) == 1:
        time = as_time(launches[0].get("Duration"))
    if status.lower() != "ok" or time is None:
        reason = status if status.lower() != "ok" else "no time"
        return Row(configuration, _status(reason), reason, (), None, extra)
    found = time * to_ms if to_ms != 1.0 else time
    return Row(configuration, "ok", "", (found,), found, extra)


def _status(words: str) -> str:
    if words in ("ValidationFailed",):
        return "wrong"
    return failure_status(words)


def _compiled(launches: list[Any]) -> dict[str, Any]:
    """Registers and bytes of the launch with most registers."""
    found: dict[str, Any] = {}
    for launch in launches:
        data = launch.get("CompilationData")
        if not isinstance(data, Mapping):
            continue
        for name, key in (("registers", "RegistersCount"), ("shared_bytes", "LocalMemorySize")):
            value = as_value(data.get(key, ""))
            if isinstance(value, int) and value >= found.get(name, 0):
                found[name] = value
    return found
