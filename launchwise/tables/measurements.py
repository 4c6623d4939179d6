"""Schemas of what is measured: sweeps, hardware counters, priors (units: ``files.UNITS``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from launchwise.tables.columns import (
    POSITIVE,
    build_schema,
    configuration_schema,
    finding_schema,
    origin_columns,
    problem_schema,
    real_column,
    stage_schema,
    text_column,
    timed_check,
    whole_column,
)
from launchwise.workloads.spec import Spec
from launchwise.workloads.statuses import MEASURED, STATUSES, UNVERIFIED
from launchwise.workloads.statuses import UNKNOWN as UNKNOWN

SINCE_2: dict[str, Any] = {
    "spread_ms": np.nan,
    "outlier_repeats": 0,
    "timer": "events",
    "launches_per_repeat": 1,
    "occupancy": np.nan,
    "bandwidth_gbs": np.nan,
    "flop_rate_gflops": np.nan,
    "sm_clock_mhz": np.nan,
    "memory_clock_mhz": np.nan,
    "temperature_c": np.nan,
    "power_w": np.nan,
    "energy_j": np.nan,
    "throttle": UNKNOWN,
    "control_ratio": np.nan,
    "attempt": 1,
}
"""Columns of measurements that version 1 lacks, with their values for its tables."""

UNTIL_2 = ("bandwidth_percent", "flop_percent")
"""Columns of measurements that version 3 dropped: rates relative to ceilings measured with the
sweep. Rates relative to the profile's ceilings are computed where they are shown."""


def _are_times(row: Any) -> bool:
    times = np.asarray(row, dtype=float)
    return times.ndim == 1 and bool(np.all(np.isfinite(times) & (times > 0)))


_EVERY_TIME = pa.Check(
    lambda column: column.map(_are_times), error="must hold positive, finite numbers"
)


def measurement_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of a sweep: one row per (GPU, problem, configuration).

    Time: ``time_ms`` is the median of ``times_ms`` (the first launch is never in it, except in a
    ``slow`` row, which has only that one), one per repeat of ``launches_per_repeat`` launches timed
    by ``timer`` (``host``: the host's clock, for what it drives; ``restored``: arrays that launches
    change are put back before each); ``spread_ms`` is their robust spread, ``relative_error`` the
    relative standard error of the median, ``outlier_repeats`` how many lie outside the Tukey filter
    (none is removed); the workload's stages have columns too.

    Trust: ``max_error`` is the largest deviation from the float64 reference, ``tolerance`` what is
    allowed (only an ``unverified`` row may have a time and a larger one), and the workload's
    findings have columns too; ``control_ratio`` is reference time after this row / first
    reference time on that card; ``throttle`` lists the reasons for throttling, joined by ``+``
    (``unknown`` if the card cannot be queried); ``attempt`` is 2 where a first measurement was
    in doubt and repeated.

    Rates: bytes and FLOP of the problem divided by its time.
    """
    repeats = pa.Check(
        lambda table: table["times_ms"].map(len) == table["repeats"],
        name="repeats",
        error="must be the length of times_ms",
    )
    return pa.DataFrameSchema(
        {
            "gpu": text_column(),
            "workload": text_column(checks=pa.Check.eq(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "status": text_column(checks=pa.Check.isin(STATUSES)),
            "reason": text_column(),
            **_time_columns(),
            **stage_schema(spec),
            **finding_schema(spec),
            **_kernel_columns(),
            **_card_columns(),
            **origin_columns(),
        },
        checks=[timed_check(), repeats, _fitting_statuses(spec)],
        unique=spec.key_columns,
        strict=True,
        name="measurements",
    )


def _fitting_statuses(spec: Spec) -> pa.Check:
    """Check that rows have status ``unverified`` exactly where the variant is not verified."""
    unverified = [name for name, variant in spec.variants.items() if not variant.verified]

    def fits(table: pd.DataFrame) -> pd.Series:
        # An ok row of a variant that races would train models.
        judged = table["status"].isin([*MEASURED, "wrong"])
        return ~judged.where(table["variant"].isin(unverified), table["status"] == UNVERIFIED)

    error = "must be unverified (never ok, slow or wrong) exactly where the variant is not verified"
    return pa.Check(fits, name="status", error=error)


def _time_columns() -> dict[str, pa.Column]:
    """Columns of times, their errors, and verification."""
    return {
        "time_ms": real_column(POSITIVE, nullable=True),
        "times_ms": pa.Column(object, checks=_EVERY_TIME),
        "repeats": whole_column(),
        "spread_ms": real_column(pa.Check.ge(0), nullable=True),
        "relative_error": real_column(pa.Check.ge(0), nullable=True),
        "outlier_repeats": whole_column(),
        "timer": text_column(checks=pa.Check.isin(["", "events", "graph", "restored", "host"])),
        "launches_per_repeat": whole_column(),
        "first_ms": real_column(POSITIVE, nullable=True),
        "l2": text_column(checks=pa.Check.isin(["", "cold", "warm"])),
        "max_error": real_column(pa.Check.ge(0), nullable=True),
        "tolerance": real_column(pa.Check.ge(0), nullable=True),
    }


def _kernel_columns() -> dict[str, pa.Column]:
    """Columns of the kernel: resources, occupancy, rates."""
    return {
        **build_schema(),
        "shared_bytes": whole_column(),
        "occupancy": real_column(pa.Check.in_range(0, 1), nullable=True),
        "bandwidth_gbs": real_column(POSITIVE, nullable=True),
        "flop_rate_gflops": real_column(pa.Check.ge(0), nullable=True),
    }


def _card_columns() -> dict[str, pa.Column]:
    """Columns of telemetry."""
    return {
        "sm_clock_mhz": real_column(pa.Check.ge(0), nullable=True),
        "memory_clock_mhz": real_column(pa.Check.ge(0), nullable=True),
        "temperature_c": real_column(nullable=True),
        "power_w": real_column(pa.Check.ge(0), nullable=True),
        "energy_j": real_column(POSITIVE, nullable=True),
        "throttle": text_column(),
        "control_ratio": real_column(POSITIVE, nullable=True),
        "attempt": whole_column(1),
    }


def counters_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of hardware counters: one row per launch of a (GPU, problem, configuration).

    ``position`` counts the launches of a run from 0. ``occupancy`` is what registers, shared memory
    and block size leave room for, ``achieved_occupancy`` the mean of active warps on SMs at work,
    both by the most warps that an SM holds. Throughputs are by the card's peak: of memory, L2, L1
    with shared memory, the SMs' pipelines; tables of earlier versions have the first alone.
    """
    share = pa.Check.in_range(0, 1)
    later = real_column(share, nullable=True, required=False)
    return pa.DataFrameSchema(
        {
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "position": whole_column(),
            "launches": whole_column(1),
            "kernel": text_column(),
            "grid_blocks": whole_column(1),
            "block_threads": whole_column(1),
            **{
                name: real_column(share, nullable=True)
                for name in ("occupancy", "achieved_occupancy")
            },
            "dram_throughput": real_column(share, nullable=True),
            **dict.fromkeys(("l2_throughput", "l1_throughput", "sm_throughput"), later),
        },
        unique=[*spec.key_columns, "position"],
        strict=True,
        name="counters",
    )


def prior_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of a sweep's priors: one row per (problem, other GPU, configuration).

    The problem is the one that is to be measured; ``time_ms`` was measured on ``gpu``, of this
    problem or of the nearest one (the file's facts say which). It is empty where the configuration
    failed.
    """
    return pa.DataFrameSchema(
        {
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "time_ms": real_column(POSITIVE, nullable=True),
        },
        unique=spec.key_columns,
        strict=True,
        name="priors",
    )
