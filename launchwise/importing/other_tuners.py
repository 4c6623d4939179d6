"""Reads results of KTT in its JSON format, and the timings that ``triton.autotune`` stores.

KTT: ``Metadata`` holds device and unit of time, ``Results`` a status, ``TotalDuration``, a
``Configuration`` of names and values, and ``ComputationResults`` of the launches with the
compiler's figures, and ``ProfilingData`` where counters were collected, which makes them slower.

Triton: with ``TRITON_CACHE_AUTOTUNING=1``, or ``cache_results=True``, it writes a file
``<kernel>.autotune.json`` per key: ``key`` holds the values of the arguments that the autotuner's
``key`` names, without the names, then the types of all tensors; ``configs_timings`` pairs of a
configuration and its timing. A timing is in ms: a number, or the quantiles .5, .2 and .8. What did
not compile, or needs too much shared memory, is infinite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.importing.foreign_sweep import (
    ONE_TIME,
    TO_MS,
    ForeignSweep,
    Row,
    as_mapping,
    as_time,
    as_value,
    keys_of,
    notes_on_unit,
    row_of,
    sweep_of,
    time_unit,
)
from launchwise.workloads.parts import Value

KTT_HEAD = ("TimeUnit", "KttVersion", "ComputeApi", "Platform", "Device")
"""Keys of ``Metadata`` of which a file has at least one, or its results are as KTT's."""

COMPILED = {"registers": "RegistersCount", "shared_bytes": "LocalMemorySize"}
"""Metric to the key of ``CompilationData``."""


def is_ktt(content: object) -> bool:
    results = as_mapping(content).get("Results")
    if not isinstance(results, list):
        return False
    metadata = as_mapping(as_mapping(content).get("Metadata"))
    return any(key in metadata for key in KTT_HEAD) or any(
        isinstance(as_mapping(each).get("Configuration"), list) for each in results
    )


def sweep_of_ktt(content: Mapping[str, Any], path: str | Path) -> ForeignSweep:
    metadata = as_mapping(content.get("Metadata"))
    unit = time_unit(metadata.get("TimeUnit", ""))
    if unit is None:
        allowed = "Seconds, Milliseconds, Microseconds, Nanoseconds"
        raise UserError(path, "Metadata.TimeUnit", f"is missing or no unit (allowed: {allowed})")
    results = content["Results"]
    rows = [_ktt_row(each, number, TO_MS[unit], path) for number, each in enumerate(results)]
    kernels = dict.fromkeys(str(each["KernelName"]) for each in results if each.get("KernelName"))
    if len(kernels) > 1:
        message = f"are of several kernels ({', '.join(sorted(kernels))}): leave one in the file"
        raise UserError(path, "Results", message)
    profiled = [any("ProfilingData" in one for one in _launches(each)) for each in results]
    plain = {_key(row) for row, slow in zip(rows, profiled, strict=True) if not slow}
    notes = [*notes_on_unit(unit), ONE_TIME]
    kept = [
        row for row, slow in zip(rows, profiled, strict=True) if not (slow and _key(row) in plain)
    ]
    alone = sum(_key(row) not in plain for row in kept)
    if len(kept) < len(rows):
        notes.append(
            f"{len(rows) - len(kept)} rows under a profiler are left out: their configurations "
            "have rows without"
        )
    if alone:
        notes.append(f"{alone} rows have times under a profiler alone, which are longer")
    return sweep_of(
        path,
        "KTT",
        kept,
        "Results.{}.Configuration",
        device=metadata.get("Device"),
        kernel=next(iter(kernels), ""),
        notes=notes,
    )


def _key(row: Row) -> frozenset[tuple[str, Value]]:
    return frozenset(row.configuration.items())


def _ktt_row(entry: object, number: int, to_ms: float, path: str | Path) -> Row:
    key = f"Results.{number}.Configuration"
    listed = as_mapping(entry).get("Configuration")
    if not isinstance(entry, Mapping) or not isinstance(listed, list):
        raise UserError(path, key, "is missing")
    if not all({"Name", "Value"} <= as_mapping(each).keys() for each in listed):
        raise UserError(path, key, "must be a list of names and values")
    launches = _launches(entry)
    status = str(entry.get("Status") or "Ok")
    failure = "" if status.lower() == "ok" else status
    time = as_time(entry.get("TotalDuration"))
    if time is None and len(launches) == 1:
        time = as_time(launches[0].get("Duration"))
    time_ms = time if time is None or to_ms == 1.0 else time * to_ms
    data = [as_mapping(one.get("CompilationData")) for one in launches]
    return row_of(
        {str(each["Name"]): each["Value"] for each in listed},
        time_ms,
        () if time_ms is None or failure else (time_ms,),
        failure,
        # Of the launch with most of them.
        compiled={
            name: max((n for n in found if isinstance(n, int)), default=None)
            for name, own in COMPILED.items()
            for found in ([as_value(one.get(own)) for one in data],)
        },
    )


def _launches(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    computed = entry.get("ComputationResults")
    listed = computed if isinstance(computed, list) else []
    return [one for one in listed if isinstance(one, Mapping)]


SUFFIX = ".autotune.json"

CONFIGS = "configs_timings"

ARGUMENTS = "kwargs"  # Key of a configuration that holds the kernel's own tunables
HOOKS = ("pre_hook",)  # Keys of a configuration that are no tunable

USUAL = {"num_ctas": 1}
"""Options of a launch that are left out where every configuration has the usual value."""

NO_LIMIT = {"maxnreg": 0}
"""Value of an option that a configuration does not set, where others set it."""

UNSET = "none"

_WORDS = {"None": None, "True": True, "False": False}

_TYPE = re.compile(r"(torch\.|jax\.|numpy\.)?(b?float|fp|u?int|bf|complex|bool|tf)[0-9]*[a-z0-9_]*")
"""A type of a tensor's elements, such as ``torch.float16``."""


def is_triton(content: object) -> bool:
    return isinstance(as_mapping(content).get(CONFIGS), list)


def sweep_of_triton(content: Mapping[str, Any], path: str | Path) -> ForeignSweep:
    """Sweep in a file of Triton: the configurations of one key. It states no device. Raises
    UserError when an entry is no pair of a configuration and its timing."""
    pairs = [_pair(each, number, path) for number, each in enumerate(content[CONFIGS])]
    names = _tunables([given for given, _ in pairs], path)
    file = Path(path).name
    unset = [n for n in names if n in NO_LIMIT and any(given.get(n) is None for given, _ in pairs)]
    return sweep_of(
        path,
        "Triton",
        [_timed(given, timing, names) for given, timing in pairs],
        f"{CONFIGS}.{{}}",
        kernel=file.partition(SUFFIX)[0] if SUFFIX in file else "",
        problem=_problem(content.get("key")),
        notes=[
            *(f"{name} {NO_LIMIT[name]} stands for one that is not set" for name in unset),
            ONE_TIME,
        ],
    )


def _pair(entry: object, number: int, path: str | Path) -> tuple[dict[str, Any], Any]:
    key = f"{CONFIGS}.{number}"
    given, timing = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
    if isinstance(given, str):
        # Some libraries store the text of a configuration.
        parts = [part.partition(":") for part in given.split(",") if ":" in part]
        given = {name.strip(): _WORDS.get(value.strip(), value.strip()) for name, _, value in parts}
    if not isinstance(given, Mapping) or not given:
        raise UserError(path, key, "must be a configuration and its timing")
    own = given.get(ARGUMENTS) or {}
    if not isinstance(own, Mapping):
        raise UserError(path, f"{key}.0.{ARGUMENTS}", "must map names to values")
    options = {k: v for k, v in given.items() if k not in (ARGUMENTS, *HOOKS)}
    return {str(name): value for name, value in {**options, **own, **options}.items()}, timing


def _tunables(given: Sequence[Mapping[str, Any]], path: str | Path) -> list[str]:
    """Names in the order of the file, the kernel's own first; without what nobody set."""
    names = keys_of(given, path)
    values = {name: {repr(each.get(name)) for each in given} for name in names}
    unset = [name for name in names if values[name] == {"None"}]
    usual = [name for name, value in USUAL.items() if values.get(name) == {repr(value)}]
    return [name for name in names if name not in (*unset, *usual)]


def _timed(given: Mapping[str, Any], timing: object, names: Sequence[str]) -> Row:
    values = {name: given.get(name) for name in names}
    # The first quantile is the median.
    median = timing[0] if isinstance(timing, list) and timing else timing
    time = as_time(median)
    return row_of(
        {name: NO_LIMIT.get(name, UNSET) if v is None else v for name, v in values.items()},
        time,
        words="" if time is not None else median if isinstance(median, str) else "infinite time",
        status="" if time is not None else "failed",
    )


def _problem(key: object) -> dict[str, Value]:
    """Problem parameters of a key: ``n``, or ``n1``, ``n2``, ... in its order, then ``dtype``. The
    key has no names: ``--problem-names`` gives them."""
    parts = list(key) if isinstance(key, list) else [] if key is None else [key]
    types: list[str] = []
    while parts and isinstance(parts[-1], str) and _TYPE.fullmatch(parts[-1]):
        types.insert(0, str(parts.pop()).rpartition(".")[2])
    names = ["n"] if len(parts) == 1 else [f"n{place}" for place in range(1, len(parts) + 1)]
    # A flag or nothing is a text, since it is no size.
    plain = [str(x).lower() if isinstance(x, bool) or x is None else as_value(x) for x in parts]
    found = dict(zip(names, plain, strict=True))
    if types:
        found["dtype"] = types[0] if len(set(types)) == 1 else "_".join(types)
    return found
