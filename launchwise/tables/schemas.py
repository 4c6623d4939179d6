"""Schemas of the pipeline's tables: columns, types and checks (units: ``tables.UNITS``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from launchwise.tables.arrow_checks import ROOFLINE
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec
from launchwise.workloads.statuses import MEASURED, STATUSES, TIMED, UNVERIFIED

UNKNOWN = "unknown"
"""Reasons for throttling if the card cannot be queried."""

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


def text_column(**options: Any) -> pa.Column:
    """Column of texts."""
    return pa.Column(str, **options)


def real_column(*checks: pa.Check, nullable: bool = False, required: bool = True) -> pa.Column:
    """Column of real numbers."""
    # NaN marks a missing value; infinity is an error.
    finite = pa.Check(lambda column: ~np.isinf(column), error="must be finite")
    return pa.Column(float, checks=[*checks, finite], nullable=nullable, required=required)


def _are_times(row: Any) -> bool:
    times = np.asarray(row, dtype=float)
    return times.ndim == 1 and bool(np.all(np.isfinite(times) & (times > 0)))


POSITIVE = pa.Check.gt(0)

_EVERY_TIME = pa.Check(
    lambda column: column.map(_are_times), error="must hold positive, finite numbers"
)


def whole_column(minimum: int = 0) -> pa.Column:
    """Column of whole numbers of at least ``minimum``."""
    return pa.Column("int64", checks=pa.Check.ge(minimum))


def value_column(values: Sequence[Value], metadata: dict[str, Any] | None = None) -> pa.Column:
    """Column that holds some of ``values``: texts if one of them is, else whole numbers."""
    kind: Any = str if any(isinstance(value, str) for value in values) else "int64"
    return pa.Column(kind, checks=pa.Check.isin(values), metadata=metadata)


def problem_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns that name a problem of ``spec``."""
    columns = {}
    for name, parameter in spec.problem.items():
        if parameter.values is not None:
            columns[name] = value_column(parameter.values)
        else:
            checks = [
                pa.Check.ge(parameter.minimum) if parameter.minimum is not None else None,
                pa.Check.le(parameter.maximum) if parameter.maximum is not None else None,
            ]
            columns[name] = pa.Column("int64", checks=[check for check in checks if check])
    return columns


def configuration_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns that name a configuration of ``spec``.

    Their metadata say what a table without the column means, because it is older than the tunable:
    ``neutral`` in every row, and no row of the ``variants`` that have the tunable.
    """
    tunables = {
        name: value_column(
            list(dict.fromkeys([tunable.neutral, *tunable.values])),
            {
                "neutral": tunable.neutral,
                "variants": [each for each, one in spec.variants.items() if name in one.tunables],
            },
        )
        for name, tunable in spec.tunables.items()
    }
    return {"variant": value_column(list(spec.variants)), **tunables}


def stage_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns with the time of each stage of ``spec``, ms; none where it has no stages."""
    return {name: real_column(pa.Check.ge(0), nullable=True) for name in spec.stage_columns}


def finding_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns of check results beside the largest error."""
    return {name: real_column(nullable=True) for name in spec.findings}


def measurement_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of a sweep: one row per (GPU, problem, configuration).

    Time: ``time_ms`` is the median of ``times_ms`` (the first launch is never in it, except in a
    ``slow`` row, which has only that one), one per repeat of ``launches_per_repeat`` launches timed
    by ``timer`` (``host``: the host's clock, for what it drives); ``spread_ms`` is their robust
    spread, ``relative_error`` the relative standard error of the median, ``outlier_repeats`` how
    many lie outside the Tukey filter (none is removed); the workload's stages have columns too.

    Trust: ``max_error`` is the largest deviation from the float64 reference, ``tolerance`` what is
    allowed (only an ``unverified`` row may have a time and a larger one), and the workload's
    findings have columns too; ``control_ratio`` is reference time after this row / first
    reference time on that card; ``throttle`` lists the reasons for throttling, joined by ``+``
    (``unknown`` if the card cannot be queried); ``attempt`` is 2 where a first measurement was
    in doubt and repeated.

    Rates: bytes and FLOP of the problem divided by its time.
    """
    measured = pa.Check(
        lambda table: table["time_ms"].notna() == table["status"].isin(TIMED),
        name="time_ms",
        error="must be given exactly where status is ok, slow or unverified",
    )
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
        checks=[measured, repeats, _fitting_statuses(spec)],
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
        "timer": text_column(checks=pa.Check.isin(["", "events", "graph", "host"])),
        "launches_per_repeat": whole_column(),
        "first_ms": real_column(POSITIVE, nullable=True),
        "l2": text_column(checks=pa.Check.isin(["", "cold", "warm"])),
        "max_error": real_column(pa.Check.ge(0), nullable=True),
        "tolerance": real_column(POSITIVE, nullable=True),
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


def origin_columns() -> dict[str, pa.Column]:
    """Columns of provenance."""
    texts = ("card", "driver", "toolkit", "backend", "commit")
    return {
        **{name: text_column() for name in texts},
        "seed": whole_column(),
        "measured_at": text_column(),
    }


def build_schema() -> dict[str, pa.Column]:
    """Columns of the main kernel's build: registers and spilled bytes per thread."""
    return {"registers": whole_column(), "spill_bytes": whole_column()}


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


def removed_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of filtered rows: keys, time, bounds of the Tukey filter (ms) and its scope."""
    return pa.DataFrameSchema(
        {
            "split": text_column(),
            "fold": text_column(),
            "scope": text_column(checks=pa.Check.isin(["problem", "global"])),
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "time_ms": real_column(pa.Check.gt(0)),
            "lower_ms": real_column(),
            "upper_ms": real_column(),
        },
        strict=True,
        name="removed",
    )


def training_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of training rows: measured rows that pass the Tukey filter.

    Stages keep their times here, and builds what the compiler said of them: models may learn of it.
    ``status`` tells times from those of ``slow`` rows, which are their first launch and no more (of
    what the host drives, the shorter of two).
    """
    return pa.DataFrameSchema(
        {
            "split": text_column(),
            "fold": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "status": value_column(MEASURED),
            "time_ms": real_column(pa.Check.gt(0)),
            **build_schema(),
            **stage_schema(spec),
        },
        unique=["split", "fold", *spec.key_columns],
        strict=True,
        name="training",
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


def recommendation_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of recommendations: the first candidates of every test problem, best first.

    ``predicted_ms`` is empty where a model predicts no time. ``expected_gain`` is the expected time
    of what is usual over that of the row, between ``least_gain`` and ``most_gain``; empty where a
    model expects none.
    """
    return pa.DataFrameSchema(
        {
            "study": text_column(),
            "model": text_column(),
            "split": text_column(),
            "fold": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            "rank": whole_column(1),
            **configuration_schema(spec),
            "predicted_ms": real_column(pa.Check.gt(0), nullable=True),
            **_gains_schema(),
        },
        unique=["model", "split", "fold", "gpu", *spec.problem_columns, "rank"],
        strict=True,
        name="recommendations",
    )


GAINS = ("expected_gain", "least_gain", "most_gain")
"""Columns of an expected gain over what is usual: itself, and the limits of its interval."""


def _gains_schema() -> dict[str, pa.Column]:
    """Columns of an expected gain over what is usual."""
    return {name: real_column(pa.Check.gt(0), nullable=True) for name in GAINS}


def predicted_column(model: str) -> str:
    """Column of a model's predicted times: ms."""
    return f"{model}_ms"


def predicted_times_schema(spec: Spec, models: Iterable[str]) -> pa.DataFrameSchema:
    """Schema of predicted times: one row per (split, fold, GPU, test problem, candidate).

    Parameters
    ----------
    models
        Models of the study that predict times: a column ``<model>_ms`` each.
    """
    time = real_column(pa.Check.gt(0), nullable=True)
    return pa.DataFrameSchema(
        {
            "split": text_column(),
            "fold": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            **{predicted_column(model): time for model in models},
        },
        unique=["split", "fold", *spec.key_columns],
        strict=True,
        name="predicted times",
    )


def evaluation_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of the evaluation: one row per (model, split, fold, GPU, test problem).

    ``time_ms`` is the measured time of the recommended configuration (an expectation for random
    draws); ``improvement`` is baseline over it, ``gain`` what is usual over it (where that has a
    time, else the baseline; ``is_usual``: it is just that), ``fraction`` is best over it. A
    recommendation that no sweep measured has no time; ``status`` says why. ``best_of_5`` and
    ``best_of_20`` are the fraction that measuring so many recommendations reaches. Of the problem,
    ``configurations`` have a measured time; ``needle_index`` of them are within 5 % of the best.
    """
    return pa.DataFrameSchema(
        {
            "study": text_column(),
            "model": text_column(),
            "role": text_column(checks=pa.Check.isin(["model", "baseline", "oracle"])),
            "split": text_column(),
            "fold": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "status": text_column(),
            "predicted_ms": real_column(pa.Check.gt(0), nullable=True),
            **_gains_schema(),
            "time_ms": real_column(pa.Check.gt(0), nullable=True),
            "baseline_ms": real_column(pa.Check.gt(0), nullable=True),
            "usual_ms": real_column(pa.Check.gt(0), nullable=True),
            "is_usual": pa.Column(bool),
            "best_ms": real_column(pa.Check.gt(0)),
            "configurations": whole_column(1),
            "needle_index": whole_column(1),
            "improvement": real_column(nullable=True),
            "gain": real_column(nullable=True),
            "fraction": real_column(nullable=True),
            "best_of_5": real_column(pa.Check.ge(0), nullable=True),
            "best_of_20": real_column(pa.Check.ge(0), nullable=True),
            "improved_runs": real_column(pa.Check.ge(0), nullable=True),
            "spearman": real_column(nullable=True),
            "absolute_percentage_error": real_column(nullable=True),
        },
        unique=["model", "split", "fold", "gpu", *spec.problem_columns],
        strict=True,
        name="evaluation",
    )


def curves_schema() -> pa.DataFrameSchema:
    """Schema of learning curves: one row per (split, GPU, model, number of measurements).

    ``fraction`` is the geometric mean over test problems of best time over the best of the first
    ``measured`` recommendations, ``fraction_p5`` its 5th percentile; the GPU ``all`` is all of them
    together, the model ``random`` the mean over all orders.
    """
    return pa.DataFrameSchema(
        {
            "study": text_column(),
            "split": text_column(),
            "gpu": text_column(),
            "model": text_column(),
            "measured": whole_column(1),
            "problems": whole_column(1),
            "fraction": real_column(pa.Check.in_range(0, 1 + 1e-9)),
            "fraction_p5": real_column(pa.Check.in_range(0, 1 + 1e-9)),
        },
        unique=["split", "gpu", "model", "measured"],
        strict=True,
        name="learning curves",
    )


def best_measured_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of the fastest measured candidates: one row per (GPU, problem).

    ``usual_ms`` and ``baseline_ms`` are empty where these were not timed.
    """
    return pa.DataFrameSchema(
        {
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "time_ms": real_column(pa.Check.gt(0)),
            "usual_ms": real_column(pa.Check.gt(0), nullable=True),
            "baseline_ms": real_column(pa.Check.gt(0), nullable=True),
        },
        unique=["gpu", *spec.problem_columns],
        strict=True,
        name="best measured",
    )


def unmeasured_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of predictions for datasheet-only GPUs: one row per (predictor, GPU, problem).

    ``predicted_ms`` is of the configuration that the predictor takes for the fastest,
    ``baseline_ms`` what it says of the baseline (empty where that copies over a link to the host of
    unknown rate); ``roofline_ms``, ``bytes_ms`` and ``flop_ms`` hold
    for the problem, and no predicted time is below ``roofline_ms``; ``bound_by`` is the largest
    part of the cost model's estimate.
    """
    times = ("predicted_ms", "roofline_ms", "bytes_ms", "flop_ms")
    return pa.DataFrameSchema(
        {
            "predictor": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            "rank": whole_column(1),
            **configuration_schema(spec),
            **{name: real_column(pa.Check.ge(0)) for name in times},
            "baseline_ms": real_column(pa.Check.ge(0), nullable=True),
            "bound_by": text_column(),
        },
        checks=[
            pa.Check(
                lambda table, name=name: ~(table[name] < table["roofline_ms"]),
                name=name,
                error=ROOFLINE,
            )
            for name in ("predicted_ms", "baseline_ms")
        ],
        unique=["predictor", "gpu", *spec.problem_columns, "rank"],
        strict=True,
        name="unmeasured",
    )


def published_times_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of predictions beside published run times: one row per (time, GPU, predictor).

    ``series`` and ``row`` name the published time, ``phases`` what it covers (joined by ``+``;
    empty for the whole run), ``runs`` how many runs (0 where the source does not say).
    ``published_ms`` is the time of all its runs. ``predicted_ms`` is of as many runs, or of one
    where their number is unknown, with the configuration of the row; ``bound_by`` is the largest
    part of the cost model's estimate of it.
    """
    return pa.DataFrameSchema(
        {
            "series": text_column(),
            "row": whole_column(2),
            "phases": text_column(),
            "runs": whole_column(),
            "predictor": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            **configuration_schema(spec),
            "published_ms": real_column(POSITIVE),
            "predicted_ms": real_column(POSITIVE),
            "bound_by": text_column(),
            "source": text_column(),
        },
        unique=["series", "row", "predictor", "gpu"],
        strict=True,
        name="published times",
    )
