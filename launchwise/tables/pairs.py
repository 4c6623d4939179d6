"""Schemas of times taken in turn: contests, other people's libraries, answers measured again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from launchwise.tables.arrow_checks import CLOCKS, ONE_PER_TIME
from launchwise.tables.columns import (
    configuration_schema,
    metric_columns,
    problem_schema,
    ratio_columns,
)
from launchwise.workloads.metrics import ORIGIN, STATUSES
from launchwise.workloads.spec import Spec

RATIOS = ("gain", "improvement")
"""Columns of ratios: time of the usual choice, and of the baseline, over that of the row."""


NARROW = 0.01
"""Half the width of a gain's 95 % interval, relative to the gain, up to which a gain is known."""


def with_role(pairs: pd.DataFrame, role: str) -> pd.Series:
    """Whether each row has a role: bool."""
    return pairs["roles"].isin(
        [text for text in pairs["roles"].unique() if role in text.split("+")]
    )


def fastest_in_pairs(pairs: pd.DataFrame, problem_columns: Sequence[str]) -> pd.DataFrame:
    """The row of largest gain of each problem, the largest gains first."""
    known = pairs[pairs["gain"].notna() & (pairs["rounds"] > 0)]
    order = known.sort_values("gain", ascending=False, kind="stable")
    return order.drop_duplicates(list(problem_columns))


def gains_known(pairs: pd.DataFrame, problem_columns: Sequence[str]) -> pd.Series:
    """Whether the fastest of each problem has a gain known to :data:`NARROW`: bool, by its row.

    As :attr:`launchwise.base.paired.Ratio.half_width`, by which pairs end. Problems whose fastest
    is the usual choice are left out: its gain over itself is 1.
    """
    best = fastest_in_pairs(pairs, problem_columns)
    other = best[~with_role(best, "usual")]
    # NaN without an interval.
    return (other["gain_high"] - other["gain_low"]) / (2 * other["gain"]) <= NARROW


def _are_clocks(row: Any) -> bool:
    clocks = np.asarray(row, dtype=float)
    return clocks.ndim == 1 and bool(np.all(np.isfinite(clocks) & (clocks >= 0)))


def clocks_of_rounds() -> tuple[dict[str, pa.Column], pa.Check]:
    """Columns of the rounds of one row, and a check of a table that has them."""
    columns = {
        "times_ms": pa.Column(object),
        "clocks_mhz": pa.Column(
            object,
            checks=pa.Check(lambda column: column.map(_are_clocks), error=CLOCKS),
        ),
        "rounds": pa.Column("int64", checks=pa.Check.ge(0)),
        "thrown": pa.Column("int64", checks=pa.Check.ge(0)),
    }
    check = pa.Check(
        lambda table: table["times_ms"].map(len) == table["clocks_mhz"].map(len),
        name="clocks_mhz",
        error=ONE_PER_TIME,
    )
    return columns, check


def circumstances() -> dict[str, pa.Column]:
    """Columns that say how and where a row was measured."""
    texts = {name: pa.Column(str) for name in ("timer", "l2", "throttle")}
    return {**texts, **metric_columns(each for each in ORIGIN if each.name != "seed")}


def pairs_schema(spec: Spec) -> pa.DataFrameSchema:
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
    no pair is left, intervals where less than six are left.
    """
    columns, check = clocks_of_rounds()
    return pa.DataFrameSchema(
        {
            "gpu": pa.Column(str),
            "workload": pa.Column(str, checks=pa.Check.eq(spec.workload)),
            **problem_schema(spec),
            **configuration_schema(spec),
            "roles": pa.Column(str),
            "status": pa.Column(str, checks=pa.Check.isin(STATUSES)),
            "reason": pa.Column(str),
            "time_ms": pa.Column(float, checks=pa.Check.gt(0), nullable=True),
            "sweep_ms": pa.Column(float, checks=pa.Check.gt(0), nullable=True),
            **columns,
            **ratio_columns(RATIOS),
            **circumstances(),
        },
        checks=[check],
        unique=spec.key_columns,
        strict=True,
        name="pairs",
    )


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


VERDICTS = ("stale", "unknown", "holds", "better")
"""Order of verdicts, the most urgent first."""

RECHECK_ORIGIN = ("card", "driver", "toolkit")


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
            **{name: pa.Column(str) for name in RECHECK_ORIGIN},
            **{f"known_{name}": pa.Column(str) for name in RECHECK_ORIGIN},
        },
        unique=["gpu", *spec.problem_columns],
        strict=True,
        name="recheck",
    )
