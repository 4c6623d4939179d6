"""Schemas of times predicted for datasheet-only GPUs."""

from __future__ import annotations

from launchwise.tables.columns import (
    POSITIVE,
    configuration_schema,
    key_schema,
    problem_schema,
    real_column,
    text_column,
    whole_column,
)
from launchwise.tables.schema import Demand, Schema, at_least
from launchwise.workloads.spec import Spec


def unmeasured_schema(spec: Spec) -> Schema:
    """Schema of predictions for datasheet-only GPUs: one row per (predictor, GPU, problem).

    ``predicted_ms`` is of the configuration that the predictor takes for the fastest,
    ``baseline_ms`` what it says of the baseline (empty where that copies over a link to the host of
    unknown rate); ``roofline_ms``, ``bytes_ms`` and ``flop_ms`` hold
    for the problem, and no predicted time is below ``roofline_ms``; ``bound_by`` is the largest
    part of the cost model's estimate.
    """
    times = ("predicted_ms", "roofline_ms", "bytes_ms", "flop_ms")
    return Schema(
        "unmeasured",
        {
            "predictor": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            "rank": whole_column(1),
            **configuration_schema(spec),
            **{name: real_column(at_least(0)) for name in times},
            "baseline_ms": real_column(at_least(0), nullable=True),
            "bound_by": text_column(),
        },
        demands=[_above_roofline("predicted_ms"), _above_roofline("baseline_ms")],
        unique=["predictor", "gpu", *spec.problem_columns, "rank"],
    )


def _above_roofline(name: str) -> Demand:
    words = "must not be below roofline_ms"
    return Demand(words, lambda table: ~(table[name] < table["roofline_ms"]), name)


def published_times_schema(spec: Spec) -> Schema:
    """Schema of predictions beside published run times: one row per (time, GPU, predictor).

    ``series`` and ``row`` name the published time, ``phases`` what it covers (joined by ``+``;
    empty for the whole run), ``runs`` how many runs (0 where the source does not say).
    ``published_ms`` is the time of all its runs. ``predicted_ms`` is of as many runs, or of one
    where their number is unknown, with the configuration of the row; ``bound_by`` is the largest
    part of the cost model's estimate of it.
    """
    return Schema(
        "published times",
        {
            "series": text_column(),
            "row": whole_column(2),
            "phases": text_column(),
            "runs": whole_column(),
            "predictor": text_column(),
            **key_schema(spec),
            "published_ms": real_column(POSITIVE),
            "predicted_ms": real_column(POSITIVE),
            "bound_by": text_column(),
            "source": text_column(),
        },
        unique=["series", "row", "predictor", "gpu"],
    )
