"""Schema of times of other people's libraries, taken in turn with a study's configurations."""

from __future__ import annotations

import pandera.pandas as pa

from launchwise.tables.columns import problem_schema, ratio_columns
from launchwise.tables.pairs import circumstances, clocks_of_rounds
from launchwise.workloads.spec import Spec
from launchwise.workloads.statuses import STATUSES

SPEEDUPS = ("speedup", "usual_speedup")
"""Columns of ratios: time of the library over that of the fastest, and of the usual choice."""


def peers_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of libraries in pairs: one row per (GPU, problem, library).

    ``speedup`` is the library's time over that of the sweep's fastest configuration,
    ``usual_speedup`` over that of the usual choice, each with the limits of its 95 % interval; the
    other columns are those of :func:`launchwise.tables.pairs.pairs_schema`. ``version`` names the
    library.
    """
    columns, check = clocks_of_rounds()
    return pa.DataFrameSchema(
        {
            "gpu": pa.Column(str),
            "workload": pa.Column(str, checks=pa.Check.eq(spec.workload)),
            **problem_schema(spec),
            "peer": pa.Column(str),
            "version": pa.Column(str),
            "status": pa.Column(str, checks=pa.Check.isin(STATUSES)),
            "reason": pa.Column(str),
            "time_ms": pa.Column(float, checks=pa.Check.gt(0), nullable=True),
            **columns,
            **ratio_columns(SPEEDUPS),
            **circumstances(),
        },
        checks=[check],
        unique=["gpu", *spec.problem_columns, "peer"],
        strict=True,
        name="peers",
    )
