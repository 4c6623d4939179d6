"""Sizes at which times with and without recursion were measured under other conditions.

The copy of the system to the device is the same with any number of recursions. Where it took longer
in runs with recursion than in runs without, so may have everything else: the sweeps of both ran at
other times, and something else kept the host busy during one of them. The ratio of their times then
tells of the host, not of recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.anew import anew_settings
from launchwise.report.blocks import Block, Fold, Text

if TYPE_CHECKING:
    from .series import RecursionSeries

COPY = "t1_h2d_ms"
"""Time of the copy of the system to the device."""

UNLIKE = 0.05
"""Relative difference of the copies from which conditions are called different."""


def copy_ratios(rows: pd.DataFrame, size: str, choice: str) -> pd.Series:
    """Median copy of rows with recursion over that of rows without, by size (index).

    Parameters
    ----------
    rows
        Rows with ``choice`` recursions and, where stages were timed, :data:`COPY`.

    Returns
    -------
    pandas.Series
        float64; NaN where the copies of either were not timed.
    """
    if COPY not in rows:
        return pd.Series(np.nan, index=np.sort(rows[size].unique()))
    deep = rows[choice] > 0
    medians = rows.groupby([size, deep])[COPY].median().unstack()
    return (medians[True] / medians[False]).rename(None)


def unlike_sizes(ratios: pd.Series) -> list[int]:
    """Sizes whose copies differ by more than :data:`UNLIKE`; unknown ones are none of them."""
    return [int(size) for size in ratios.index[np.abs(np.log(ratios)) > np.log1p(UNLIKE)]]


def conditions(every: Sequence[RecursionSeries]) -> Iterator[Block]:
    """Which sizes no comparison with and without recursion uses, and the settings to repeat them.

    Nothing where conditions were alike at every size.
    """
    for case in every:
        if not case.unlike:
            continue
        ratios = case.copy_ratios.loc[case.unlike]
        ends = [wording.fixed(value, 2) for value in (ratios.min(), ratios.max())]
        others = case.copy_ratios.drop(index=case.unlike).dropna()
        rest = ""
        if len(others):
            low, high = (wording.fixed(value, 2) for value in (others.min(), others.max()))
            rest = f" (at the other sizes {low} to {high})"
        sizes = wording.listed(map(wording.count, case.unlike))
        yield Text(
            f"{case.title}: times with and without recursion are not compared at {sizes} rows. "
            "There the copy of the system to the device, which recursion does not change, took "
            f"{' to '.join(dict.fromkeys(ends))} times as long in runs with recursion as in runs "
            f"without{rest}: they were measured under different conditions. Numbers of recursions "
            "other than 0 are compared there.",
            "note",
        )
        yield Fold(
            f"{case.title}: settings that measure these sizes again",
            [Text(_again(case), "code")],
        )


def _again(case: RecursionSeries) -> str:
    """Settings that measure every row of the sizes again, as YAML."""
    columns = [*case.spec.problem_columns, *case.spec.tunable_columns]
    rows = case.rows[case.rows["n"].isin(case.unlike)]
    keys = rows[columns].itertuples(index=False, name=None)
    return anew_settings(case.gpu, case.spec.workload, list(keys), columns)
