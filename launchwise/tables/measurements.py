"""Schemas of what is measured: sweeps, hardware counters, priors."""

from __future__ import annotations

import pandas as pd

from launchwise.tables.columns import (
    POSITIVE,
    TIMED_ROWS,
    configuration_schema,
    finding_schema,
    key_schema,
    metric_columns,
    problem_schema,
    real_column,
    stage_schema,
    text_column,
    whole_column,
)
from launchwise.tables.schema import Demand, Schema, equal_to
from launchwise.workloads.metrics import (
    CIRCUMSTANCES,
    COUNTERS,
    KEYS,
    MEASURED,
    ORIGIN,
    RESULTS,
    UNVERIFIED,
)
from launchwise.workloads.spec import Spec

REPEATS = Demand(
    "must be the length of times_ms",
    lambda table: table["times_ms"].map(len) == table["repeats"],
    "repeats",
)


def measurement_schema(spec: Spec) -> Schema:
    """Schema of a sweep: one row per (GPU, problem, configuration).

    Its columns are those of :data:`launchwise.workloads.metrics.SWEEP`, of problem and
    configuration, of the workload's stages and of its findings.
    """
    return Schema(
        "measurements",
        {
            **metric_columns(KEYS),
            "workload": text_column(equal_to(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            **metric_columns(RESULTS),
            **stage_schema(spec),
            **finding_schema(spec),
            **metric_columns((*CIRCUMSTANCES, *ORIGIN)),
        },
        demands=[TIMED_ROWS, REPEATS, _fitting_statuses(spec)],
        unique=spec.key_columns,
    )


def _fitting_statuses(spec: Spec) -> Demand:
    """Rows have status ``unverified`` exactly where the variant is not verified."""
    unverified = [name for name, variant in spec.variants.items() if not variant.verified]

    def fits(table: pd.DataFrame) -> pd.Series:
        # An ok row of a variant that races would train models.
        judged = table["status"].isin([*MEASURED, "wrong"])
        return ~judged.where(table["variant"].isin(unverified), table["status"] == UNVERIFIED)

    words = "must be unverified (never ok, slow or wrong) exactly where the variant is not verified"
    return Demand(words, fits, "status")


def counters_schema(spec: Spec) -> Schema:
    """Schema of hardware counters: one row per launch of a (GPU, problem, configuration).

    ``position`` counts the launches of a run from 0; what was counted of each is declared in
    :data:`launchwise.workloads.metrics.COUNTERS`.
    """
    return Schema(
        "counters",
        {
            **key_schema(spec),
            "position": whole_column(),
            "launches": whole_column(1),
            "kernel": text_column(),
            "grid_blocks": whole_column(1),
            "block_threads": whole_column(1),
            **metric_columns(COUNTERS),
        },
        unique=[*spec.key_columns, "position"],
    )


def prior_schema(spec: Spec) -> Schema:
    """Schema of a sweep's priors: one row per (problem, other GPU, configuration).

    The problem is the one that is to be measured; ``time_ms`` was measured on ``gpu``, of this
    problem or of the nearest one (the file's facts say which). It is empty where the configuration
    failed.
    """
    return Schema(
        "priors",
        {
            **key_schema(spec),
            "time_ms": real_column(POSITIVE, nullable=True),
        },
        unique=spec.key_columns,
    )
