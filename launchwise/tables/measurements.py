"""Schemas of what is measured: sweeps, counters, priors, and times taken in turn (pairs)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from launchwise.tables.rows import of_formulas, of_repeats
from launchwise.tables.schema import (
    CLOCKS,
    POSITIVE,
    TIMED_ROWS,
    Column,
    Demand,
    Schema,
    configuration_schema,
    equal_to,
    finding_schema,
    key_schema,
    metric_columns,
    one_of,
    problem_schema,
    ratio_columns,
    real_column,
    stage_schema,
    text_column,
    whole_column,
)
from launchwise.workloads.metrics import (
    BACK_TO_BACK,
    CIRCUMSTANCES,
    COUNTERS,
    KEYS,
    MEASURED,
    ORIGIN,
    RESULTS,
    STATUSES,
    SWEEP,
    TIMED,
    UNVERIFIED,
    absent,
    named,
)
from launchwise.workloads.spec import Spec

REPEATS = Demand(
    "must be the length of times_ms",
    lambda table: table["times_ms"].map(len) == table["repeats"],
    "repeats",
)


def measurement_schema(spec: Spec) -> Schema:
    """Schema of a sweep: one row per (GPU, problem, configuration). Its columns are those of
    :data:`launchwise.workloads.metrics.SWEEP`, of problem and configuration, of the workload's
    stages and of its findings."""
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


def measured_table(
    rows: Sequence[Mapping[str, Any]],
    spec: Spec,
    of_keys: Mapping[str, Mapping[tuple[Any, ...], float]],
    least_work: float = -math.inf,
) -> pd.DataFrame:
    """Rows of a journal or of an import as a table of measurements, sorted by key, as
    :func:`measurement_schema` declares it; what a row lacks is
    absent. ``of_keys``: columns that are told by the key of a row. ``least_work``: see
    :func:`launchwise.tables.rows.of_formulas`."""
    schema = measurement_schema(spec)
    if not rows:
        return schema.empty()
    table = pd.DataFrame([{**absent(SWEEP), **row} for row in rows], columns=list(schema.columns))
    real = [each.name for each in SWEEP if each.kind == "real"]
    real += [*spec.stage_columns, *spec.findings]
    table[real] = table[real].astype(float)
    table = table.assign(**of_repeats(table["times_ms"].tolist()))
    table["times_ms"] = table["times_ms"].map(lambda times: np.asarray(times, dtype=float))
    table.loc[~table["status"].isin(TIMED), "time_ms"] = np.nan
    keys = pd.Series(list(zip(*(table[name] for name in spec.key_columns), strict=True)))
    for name, values in of_keys.items():
        table[name] = keys.map(values).astype(float)
    table = table.assign(**of_formulas(table, spec, least_work))
    return table.sort_values(spec.key_columns, ignore_index=True)


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
    :data:`launchwise.workloads.metrics.COUNTERS`."""
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
    """Schema of a sweep's priors: one row per (problem, other GPU, configuration). The problem is
    the one that is to be measured; ``time_ms`` was measured on ``gpu``, of this problem or of the
    nearest one (the file's facts say which). It is empty where the configuration failed."""
    return Schema(
        "priors",
        {**key_schema(spec), "time_ms": real_column(POSITIVE, nullable=True)},
        unique=spec.key_columns,
    )


RATIOS = ("gain", "improvement")
"""Columns of ratios: time of the usual choice, and of the baseline, over that of the row."""


def with_role(pairs: pd.DataFrame, role: str) -> pd.Series:
    return pairs["roles"].isin(
        [text for text in pairs["roles"].unique() if role in text.split("+")]
    )


def in_turn(pairs: pd.DataFrame) -> pd.DataFrame:
    """Rows that ran in turn with others. What ran alone has no round and is in no pair: its gain
    over itself compares nothing."""
    return pairs[pairs["gain"].notna() & (pairs["rounds"] > 0)]


def fastest_of_sweep(pairs: pd.DataFrame) -> pd.DataFrame:
    """The row of each problem's fastest of the sweep, which chose before the pairs ran: what rounds
    choose themselves is never slower in them, and faster by chance."""
    return pairs[with_role(pairs, "best") & pairs["gain"].notna()]


ROUNDS = {
    "times_ms": Column("object"),
    "clocks_mhz": Column("object", [CLOCKS]),
    "rounds": whole_column(),
    "thrown": whole_column(),
}
"""Columns of the rounds of one row."""

ONE_CLOCK_PER_TIME = Demand(
    "must have one value per value of times_ms",
    lambda table: table["times_ms"].map(len) == table["clocks_mhz"].map(len),
    "clocks_mhz",
)


def circumstances() -> dict[str, Column]:
    """Columns that say how and where a row was measured."""
    texts = {name: text_column() for name in ("timer", "l2", "throttle")}
    # Newer in pairs than in sweeps.
    back_to_back = [replace(each, since=5) for each in named(*BACK_TO_BACK)]
    origin = [each for each in ORIGIN if each.name != "seed"]
    return {**texts, **metric_columns([*back_to_back, *origin])}


def pairs_schema(spec: Spec) -> Schema:
    """Schema of paired times: one row per (GPU, problem, configuration).

    ``roles`` says why it takes part (joined by ``+``; empty for what was usual once, see
    :mod:`launchwise.measuring.pairs.present_usual`), ``sweep_ms`` what it took in the sweep.
    ``times_ms`` and ``clocks_mhz`` hold one value per round, in the same order for all
    configurations of a problem: the median of its launches in that round, and the SM clock
    meanwhile (0: unknown). ``time_ms`` is the median over rounds in which neither heat nor a weak
    supply of power held the card back, or over all if there is none. ``gain`` is the time of the
    usual choice (of the baseline, where that is not there) over its own, ``improvement`` that of
    the baseline, each with the limits of its 95 % interval, from the pairs of such rounds whose
    clocks agree; ``thrown`` counts the others. Ratios are empty where one of the two did not run or
    no pair is left, intervals where less than six are left. ``sustained_ms`` and ``energy_j`` are
    of launches back to back after the rounds: of baseline, usual choice and fastest; empty for the
    others. ``earlier_gain`` is the gain that an earlier visit found, empty where there was none.
    """
    return Schema(
        "pairs",
        {
            "gpu": text_column(),
            "workload": text_column(equal_to(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "roles": text_column(),
            "status": text_column(one_of(STATUSES)),
            "reason": text_column(),
            "time_ms": real_column(POSITIVE, nullable=True),
            "sweep_ms": real_column(POSITIVE, nullable=True),
            **ROUNDS,
            **ratio_columns(RATIOS),
            "earlier_gain": real_column(
                POSITIVE, nullable=True, older={"neutral": math.nan, "since": 5}
            ),
            **circumstances(),
        },
        demands=[ONE_CLOCK_PER_TIME],
        unique=spec.key_columns,
    )


SPEEDUPS = ("speedup", "usual_speedup")
"""Columns of ratios: time of the library over that of the fastest, and of the usual choice."""


def faster_libraries(peers: pd.DataFrame) -> pd.DataFrame:
    """Rows of libraries that are surely faster than the sweep's fastest, and ``words`` of that."""
    rows = peers[peers["speedup_high"] < 1]
    named = zip(rows["peer"], rows["version"], 1 / rows["speedup"], strict=True)
    words = [f"{name} ({version}) is {ratio:.2f} times as fast" for name, version, ratio in named]
    return rows.assign(words=words)


def peers_schema(spec: Spec) -> Schema:
    """Schema of libraries in pairs: one row per (GPU, problem, library). ``speedup`` is the
    library's time over that of the sweep's fastest configuration, ``usual_speedup`` over that of
    the usual choice, each with the limits of its 95 % interval; the other columns are those of
    :func:`pairs_schema`. ``version`` names the library."""
    return Schema(
        "peers",
        {
            "gpu": text_column(),
            "workload": text_column(equal_to(spec.workload)),
            **problem_schema(spec),
            "peer": text_column(),
            "version": text_column(),
            "status": text_column(one_of(STATUSES)),
            "reason": text_column(),
            "time_ms": real_column(POSITIVE, nullable=True),
            **ROUNDS,
            **ratio_columns(SPEEDUPS),
            **circumstances(),
        },
        demands=[ONE_CLOCK_PER_TIME],
        unique=["gpu", *spec.problem_columns, "peer"],
    )


VERDICTS = ("stale", "unknown", "holds", "better")  # Order of verdicts, the most urgent first

RECHECK_ORIGIN = ("card", "driver", "toolkit")


def recheck_schema(spec: Spec) -> Schema:
    """Schema of verdicts: one row per (GPU, problem), with the recommended configuration.

    ``gain`` is the time of the default over that of the recommendation, measured in pairs, with the
    limits of its 95 % interval; ``default`` says what the default was: ``usual``, or ``baseline``
    where the usual choice is recommended. ``known_gain`` and its limits are what was known before,
    ``known_by`` from where: ``pairs``, or the basis of the answer
    (:data:`launchwise.learning.answers.BASES`). ``card``, ``driver`` and ``toolkit`` are those of
    now, ``known_card`` and so on those of the earlier row; empty where there is none.
    """
    return Schema(
        "recheck",
        {
            "gpu": text_column(),
            "workload": text_column(equal_to(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "verdict": text_column(one_of(VERDICTS)),
            "reason": text_column(),
            "default": text_column(one_of(["usual", "baseline"])),
            **ratio_columns(["gain", "known_gain"]),
            "known_by": text_column(),
            **{name: text_column() for name in RECHECK_ORIGIN},
            **{f"known_{name}": text_column() for name in RECHECK_ORIGIN},
        },
        unique=["gpu", *spec.problem_columns],
    )
