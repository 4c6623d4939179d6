"""A foreign sweep as a table of measurements, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.tukey import MIN_SAMPLE_SIZE, fences_of_rows
from launchwise.importing.sweep import ForeignSweep, Row
from launchwise.tables.measurements import UNKNOWN, measurement_schema
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

STATED = "stated_ms"
"""Column with the time that a file states; ``time_ms`` is the median of the repeats, as in every
sweep."""

BACKEND = "imported"

FORMAT_KEY = "foreign"
"""Key of a table's facts: the names that the files have for what the columns hold."""


def table_of(
    sweeps: Sequence[ForeignSweep], gpu: str, spec: Spec, problems: Sequence[Mapping[str, Value]]
) -> pd.DataFrame:
    """Measurements of one GPU (:func:`launchwise.tables.measurements.measurement_schema`).

    What a file lacks is empty: driver, toolkit, card, clocks, verification.

    Parameters
    ----------
    sweeps
        Of this GPU, one per problem; their names and values are those of ``spec``.
    problems
        Problem of each sweep.
    """
    variant = next(iter(spec.variants))
    rows = [
        {
            "gpu": gpu,
            "workload": spec.workload,
            **problem,
            "variant": variant,
            **{name: row.configuration[name] for name in spec.tunables},
            "status": row.status,
            "reason": row.reason,
            STATED: row.time_ms,
            **{name: row.extra.get(name, 0) for name in ("registers", "spill_bytes")},
            "shared_bytes": row.extra.get("shared_bytes", 0),
            "measured_at": str(row.extra.get("measured_at", "")),
        }
        for sweep, problem in zip(sweeps, problems, strict=True)
        for row in sweep.rows
    ]
    table = pd.DataFrame(rows)
    flat = [row for sweep in sweeps for row in sweep.rows]
    table["times_ms"] = pd.Series([np.asarray(row.times_ms, dtype=float) for row in flat])
    timed = [row.times_ms or (row.time_ms,) for row in flat]
    ok = (table["status"] == "ok").to_numpy()
    medians = [
        float(np.median(times)) if fine else math.nan  # type: ignore[arg-type]
        for times, fine in zip(timed, ok, strict=True)
    ]
    table["time_ms"] = medians
    table[STATED] = table[STATED].astype(float)
    table = table.assign(**_of_repeats(flat), **_rates(table, spec), **_empty())
    return table[list(measurement_schema(spec).columns)].sort_values(
        spec.key_columns, ignore_index=True
    )


def _empty() -> dict[str, Any]:
    """Columns that no file of others states."""
    texts = ("timer", "l2", "card", "driver", "toolkit", "commit")
    real = (
        *("first_ms", "max_error", "tolerance", "occupancy", "sm_clock_mhz", "memory_clock_mhz"),
        *("temperature_c", "power_w", "energy_j", "control_ratio"),
    )
    return {
        **dict.fromkeys(texts, ""),
        **dict.fromkeys(real, math.nan),
        "throttle": UNKNOWN,
        "attempt": 1,
        "launches_per_repeat": 0,
        "backend": BACKEND,
        "seed": 0,
    }


def _of_repeats(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """Number, robust spread, relative error of the median and outliers of each row's repeats.

    Spread: median absolute deviation x 1.4826. Error: 1.2533 x spread / sqrt(repeats) / median.
    """
    counts = np.array([len(row.times_ms) for row in rows], dtype=np.int64)
    spread, error = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    outliers = np.zeros(len(rows), dtype=np.int64)
    for count in np.unique(counts[counts > 1]):
        places = np.flatnonzero(counts == count)
        times = np.array([rows[int(place)].times_ms for place in places])
        medians = np.median(times, axis=1)
        spread[places] = 1.4826 * np.median(np.abs(times - medians[:, None]), axis=1)
        error[places] = 1.2533 * spread[places] / math.sqrt(count) / medians
        if count >= MIN_SAMPLE_SIZE:
            low, high = fences_of_rows(times, 1.5)
            outside = (times < low[:, None]) | (times > high[:, None])
            outliers[places] = outside.sum(axis=1)
    return {
        "repeats": counts,
        "spread_ms": spread,
        "relative_error": error,
        "outlier_repeats": outliers,
    }


def _rates(table: pd.DataFrame, spec: Spec) -> dict[str, np.ndarray]:
    """Bandwidth (GB/s) and FLOP rate (GFLOP/s); NaN where bytes or FLOP are unknown."""
    problems = table[spec.problem_columns]
    found = {
        "bandwidth_gbs": np.full(len(table), np.nan),
        "flop_rate_gflops": np.full(len(table), np.nan),
    }
    for values in problems.drop_duplicates().itertuples(index=False, name=None):
        problem = dict(zip(spec.problem_columns, values, strict=True))
        here = (problems == pd.Series(problem)).all(axis=1).to_numpy()
        seconds = table["time_ms"].to_numpy(dtype=float)[here] / 1e3
        for name, text in (
            ("bandwidth_gbs", spec.work.bytes),
            ("flop_rate_gflops", spec.work.flop),
        ):
            amount = float(spec.value(text, problem))
            if amount > 1:
                found[name][here] = amount / seconds / 1e9
    return found


def sweep_of(
    table: pd.DataFrame, spec: Spec, facts: Mapping[str, Any], problem: Mapping[str, Value]
) -> ForeignSweep:
    """Foreign sweep of one problem in a table: the way back, for the writers.

    Parameters
    ----------
    facts
        Of the table: names of device, kernel, and of the parameters in the file.
    """
    foreign = facts.get(FORMAT_KEY, {})
    own = {name: foreign.get("tunables", {}).get(name, name) for name in spec.tunables}
    chosen = np.ones(len(table), dtype=bool)
    for name, value in problem.items():
        chosen &= (table[name] == value).to_numpy()
    stated = STATED in table
    rows = []
    for record in table[chosen].to_dict("records"):
        time = record[STATED] if stated else record["time_ms"]
        ok = record["status"] in ("ok", "slow", "unverified")
        extra = {"measured_at": record["measured_at"]} if record["measured_at"] else {}
        if record["registers"]:
            extra["registers"] = int(record["registers"])
        rows.append(
            Row(
                configuration={told: record[name] for name, told in own.items()},
                status="ok" if ok else record["status"],
                reason=record["reason"] if not ok else "",
                times_ms=tuple(float(each) for each in record["times_ms"]),
                time_ms=float(time) if ok else None,
                extra=extra,
            )
        )
    return ForeignSweep(
        source="",
        format="",
        device_name=str(foreign.get("device", "")),
        kernel_name=str(foreign.get("kernel", "")),
        problem=dict(problem),
        tunables={told: list(spec.tunables[name].values) for name, told in own.items()},
        rows=rows,
    )
