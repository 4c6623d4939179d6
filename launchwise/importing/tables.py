"""A foreign sweep as a table of measurements, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.importing.sweep import ForeignSweep, Row
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import IMPORTED, of_formulas, of_repeats
from launchwise.workloads.metrics import SWEEP, absent
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

STATED = "stated_ms"
"""Column with the time that a file states; ``time_ms`` is the median of the repeats, as in every
sweep."""

FORMAT_KEY = "foreign"
"""Key of a table's facts: the names that the files have for what the columns hold."""


def table_of(
    sweeps: Sequence[ForeignSweep], gpu: str, spec: Spec, problems: Sequence[Mapping[str, Value]]
) -> pd.DataFrame:
    """Measurements of one GPU (:func:`launchwise.tables.measurements.measurement_schema`).

    What a file lacks is empty: driver, toolkit, card, clocks, verification.

    ``sweeps``: of this GPU, one per problem; their names and values are those of ``spec``.
    ``problems``: problem of each sweep.
    """
    variant = next(iter(spec.variants))
    rows = [
        {
            **absent(SWEEP),
            "gpu": gpu,
            "workload": spec.workload,
            **problem,
            "variant": variant,
            **{name: row.configuration[name] for name in spec.tunables},
            "status": row.status,
            "reason": row.reason,
            STATED: row.time_ms,
            "backend": IMPORTED,
            **row.extra,
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
    table["measured_at"] = table["measured_at"].astype(str)
    table = table.assign(**of_repeats([row.times_ms for row in flat]))
    # A spec that an import made has 1 byte and no FLOP where they are unknown.
    table = table.assign(**of_formulas(table, spec, least_work=1))
    return table[list(measurement_schema(spec).columns)].sort_values(
        spec.key_columns, ignore_index=True
    )


def sweep_of(
    table: pd.DataFrame, spec: Spec, facts: Mapping[str, Any], problem: Mapping[str, Value]
) -> ForeignSweep:
    """Foreign sweep of one problem in a table: the way back, for the writers.

    Of several variants, ``variant`` is a tunable: rows that differ in nothing else stay apart.

    ``facts``: of the table: names of device, kernel, and of the parameters in the file.
    """
    foreign = facts.get(FORMAT_KEY, {})
    values = {name: list(each.values) for name, each in spec.tunables.items()}
    if len(spec.variants) > 1:
        values = {"variant": list(spec.variants), **values}
    own = {name: foreign.get("tunables", {}).get(name, name) for name in values}
    chosen = np.ones(len(table), dtype=bool)
    for name, value in problem.items():
        chosen &= (table[name] == value).to_numpy()
    stated = STATED in table
    # Kernel Tuner reads no cache whose kernel has no name.
    kernel = next(
        (name for each in spec.variants.values() for name in each.kernel_names), spec.workload
    )
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
        kernel_name=str(foreign.get("kernel") or kernel),
        problem=dict(problem),
        tunables={told: values[name] for name, told in own.items()},
        rows=rows,
    )
