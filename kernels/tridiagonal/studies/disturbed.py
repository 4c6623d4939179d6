"""Rows that something outside disturbed while they were measured, by what surrounds them.

A disturbance of the host lasts from one repeat to all rows of a problem. If it ends within a row,
the row's repeats disagree. If it does not, the row takes longer than its neighbours do: the next
smaller and larger sub-systems at its size, the next smaller and larger sizes with its sub-system,
and the other variant with the same sub-systems. Both figures are held against Tukey's outer fence
over the rows of one GPU and one kind of problem.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from launchwise.base.tukey import MIN_SAMPLE_SIZE, quartile_fences
from launchwise.experiment.method import Method, Repeats

from .host_runs import known_well, repeated

OUTER = 3.0  # interquartile ranges beyond the third quartile: Tukey's outer fence

LEAST_ERROR = float(Repeats().coarse)
"""Relative error that a sweep asks of rows that are not near the best: no smaller one disagrees."""

LEAST_EXCESS = float(np.log1p(Method.model_fields["disturbed"].default))
"""Logarithm of the excess above which a sweep measures a row again: no smaller one counts."""

DISAGREE, APART = "repeats disagree", "longer than its neighbours"


def disturbance(rows: pd.DataFrame, size: str = "n", choice: str = "m") -> pd.Series:
    """Why each row counts as disturbed; empty where it does not.

    ``rows``: rows with repeats of one GPU and one kind of problem: ``variant``, ``time_ms``,
    ``relative_error`` and the columns ``size`` and ``choice``, each combination of the three once
    or, of its fastest row, counted once.
    Returns a Series: str, by the index of ``rows``.
    """
    found = pd.Series("", index=rows.index)
    found[repeats_disagree(rows)] = DISAGREE
    excess = excess_over_neighbours(rows, size, choice)
    found[(excess > _fence(excess, LEAST_EXCESS)) & (found == "")] = APART
    return found


def undisturbed(timed: pd.DataFrame, size: str = "n", choice: str = "m") -> pd.DataFrame:
    """Rows with repeats that nothing disturbed, of sizes and choices whose best row is one.

    ``timed``: rows with a time of one GPU and one kind of problem, those of one launch, too.
    """
    every = repeated(timed)
    rows = every[disturbance(every, size, choice) == ""]
    return known_well(rows, timed.drop(rows.index), [size, choice])


def repeats_disagree(rows: pd.DataFrame) -> pd.Series:
    """Whether the repeats of each row disagree: bool, by the index of ``rows``.

    ``rows``: rows with repeats of one GPU and one kind of problem: ``relative_error``.
    """
    errors = rows["relative_error"]
    return errors > _fence(errors, LEAST_ERROR)


def excess_over_neighbours(rows: pd.DataFrame, size: str = "n", choice: str = "m") -> pd.Series:
    """Logarithm of each row's time over what its neighbours let expect.

    Three kinds of neighbours each give an expectation: two of the other sub-system sizes and two of
    the other sizes by interpolation of logarithms, other variants by their mean logarithm. The
    excess is the second largest over the kinds that a row has, so that two must agree.

    Returns a Series: float64, by the index of ``rows``; NaN where a row has fewer than two kinds of
    neighbours.
    """
    fastest = rows.sort_values("time_ms").drop_duplicates(["variant", size, choice])
    logs = np.log(fastest["time_ms"])
    by_kind = pd.DataFrame(
        {
            "choices": logs - _between(fastest, logs, choice, ["variant", size]),
            "sizes": logs - _between(fastest, logs, size, ["variant", choice]),
            "variants": logs - _of_others(fastest, logs, [size, choice]),
        }
    )
    ordered = np.sort(-by_kind.to_numpy(), axis=1)  # NaN comes last.
    return pd.Series(-ordered[:, 1], index=by_kind.index).reindex(rows.index)


def _between(rows: pd.DataFrame, logs: pd.Series, along: str, same: Sequence[str]) -> pd.Series:
    """Interpolated between the nearest rows on both sides that differ in ``along`` alone."""
    ordered = rows.assign(_x=np.log(rows[along]), _y=logs).sort_values([*same, along])
    groups = ordered.groupby(list(same))
    before, after = groups[["_x", "_y"]].shift(1), groups[["_x", "_y"]].shift(-1)
    share = (ordered["_x"] - before["_x"]) / (after["_x"] - before["_x"])
    return before["_y"] + share * (after["_y"] - before["_y"])


def _of_others(rows: pd.DataFrame, logs: pd.Series, same: Sequence[str]) -> pd.Series:
    """Mean over the other rows of each group; NaN where there is none."""
    groups = logs.groupby([rows[name] for name in same])
    others = groups.transform("size") - 1
    return (groups.transform("sum") - logs) / others.where(others > 0)


def _fence(values: pd.Series, least: float) -> float:
    """Tukey's outer fence, no lower than ``least``; none for a sample without quartiles."""
    known = values[np.isfinite(values)]
    if len(known) < MIN_SAMPLE_SIZE:
        return float("inf")
    return max(least, quartile_fences(known.to_numpy(), OUTER)[1])
