"""Schema of answers that were measured again: one verdict per problem."""

from __future__ import annotations

import pandera.pandas as pa

from launchwise.tables.columns import configuration_schema, problem_schema, ratio_columns
from launchwise.workloads.spec import Spec

VERDICTS = ("stale", "unknown", "holds", "better")
"""Order of verdicts, the most urgent first."""

ORIGIN = ("card", "driver", "toolkit")


def recheck_schema(spec: Spec) -> pa.DataFrameSchema:
    """Schema of verdicts: one row per (GPU, problem), with the recommended configuration.

    ``gain`` is the time of the default over that of the recommendation, measured in pairs, with the
    limits of its 95 % interval; ``default`` says what the default was: ``usual``, or ``baseline``
    where the usual choice is recommended. ``known_gain`` and its limits are what was known before,
    ``known_by`` from where: ``pairs``, or the basis of the answer
    (:data:`launchwise.learning.answers.BASES`). ``card``, ``driver`` and ``toolkit`` are those of
    now, ``known_card`` and so on those of the earlier row; empty where there is none.
    """
    return pa.DataFrameSchema(
        {
            "gpu": pa.Column(str),
            "workload": pa.Column(str, checks=pa.Check.eq(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "verdict": pa.Column(str, checks=pa.Check.isin(VERDICTS)),
            "reason": pa.Column(str),
            "default": pa.Column(str, checks=pa.Check.isin(["usual", "baseline"])),
            **ratio_columns(["gain", "known_gain"]),
            "known_by": pa.Column(str),
            **{name: pa.Column(str) for name in ORIGIN},
            **{f"known_{name}": pa.Column(str) for name in ORIGIN},
        },
        unique=["gpu", *spec.problem_columns],
        strict=True,
        name="recheck",
    )
