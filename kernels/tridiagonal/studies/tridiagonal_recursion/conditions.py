"""Sizes at which times with and without recursion do not compare.

Without recursion a size needs the variants and m that are the fastest at its neighbours: else the
time without recursion is not the best one, and recursion gains what another variant or m would.

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
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.measure_again import anew_settings

if TYPE_CHECKING:
    from .series import RecursionSeries

COPY = "t1_h2d_ms"  # time of the copy of the system to the device
UNLIKE = 0.05  # relative difference of the copies from which conditions are called different


MISSED = 0.05  # loss at a neighbour from which a size lacks choices of that neighbour


def copy_ratios(rows: pd.DataFrame, size: str, choice: str) -> pd.Series:
    """Median copy of rows with recursion over that of rows without, by size (index).

    ``rows``: rows with ``choice`` recursions and, where stages were timed, :data:`COPY`.
    Returns a Series: float64; NaN where the copies of either were not timed.
    """
    if COPY not in rows:
        return pd.Series(np.nan, index=np.sort(rows[size].unique()))
    deep = rows[choice] > 0
    medians = rows.groupby([size, deep])[COPY].median().unstack()
    return (medians[True] / medians[False]).rename(None)


def unlike_sizes(ratios: pd.Series) -> list[int]:
    """Sizes whose copies differ by more than :data:`UNLIKE`; unknown ones are none of them."""
    return [int(size) for size in ratios.index[np.abs(np.log(ratios)) > np.log1p(UNLIKE)]]


def lacking_sizes(flat: pd.DataFrame, size: str) -> list[int]:
    """Sizes whose best time without recursion is not known.

    The nearest smaller and the nearest larger size that tried something else tell: one is enough
    where the choices of the size lose more than :data:`MISSED`.

    ``flat``: rows without recursion: ``variant``, ``m``, ``time_ms`` and the column ``size``.
    """
    best = flat.groupby([size, "variant", "m"])["time_ms"].min().unstack(["variant", "m"])
    times = best.to_numpy()
    return [int(n) for row, n in enumerate(best.index) if _missed(row, times) > MISSED]


def _missed(row: int, times: np.ndarray) -> float:
    """Largest relative loss of the choices of one size at either neighbour that has others.

    ``row``: row of the size in ``times``.
    ``times``: ms, float64, shape (sizes, choices): sizes ascending, NaN where a choice was not
    tried.
    """
    tried = ~np.isnan(times[row])
    others = np.flatnonzero((~np.isnan(times) & ~tried).any(axis=1))
    near = times[[*others[others < row][-1:], *others[others > row][:1]]]
    losses = np.fmin.reduce(near[:, tried], axis=1) / np.fmin.reduce(near, axis=1) - 1
    # A neighbour without any choice in common says that nothing is known.
    return float(np.where(np.isnan(losses), np.inf, losses).max(initial=0))


def conditions(every: Sequence[RecursionSeries]) -> Iterator[Block]:
    """Which sizes no comparison with and without recursion uses, and the settings to repeat them.

    Nothing where conditions were alike at every size.
    """
    for case in every:
        if not case.unlike:
            continue
        said = [*_busy(case), *_fewer(case)]
        yield Text(
            f"{case.title}: times with and without recursion are not compared at "
            f"{wording.plural(len(case.unlike), 'size')}. {' '.join(said)} Numbers of recursions "
            "other than 0 are compared there.",
            "note",
        )
        yield Fold(
            f"{case.title}: settings that measure these sizes again",
            [Text(_again(case), "code")],
        )


def _busy(case: RecursionSeries) -> Iterator[str]:
    if not case.busy:
        return
    ratios = case.copy_ratios.loc[case.busy]
    ends = dict.fromkeys(wording.fixed(value, 2) for value in (ratios.min(), ratios.max()))
    others = case.copy_ratios.drop(index=case.busy).dropna()
    rest = ""
    if len(others):
        low, high = (wording.fixed(value, 2) for value in (others.min(), others.max()))
        rest = f" (at the other sizes {low} to {high})"
    yield (
        f"At {wording.listed(map(wording.count, case.busy))} rows the copy of the system to the "
        f"device, which recursion does not change, took {' to '.join(ends)} times as long in runs "
        f"with recursion as in runs without{rest}: they were measured under different conditions."
    )


def _fewer(case: RecursionSeries) -> Iterator[str]:
    if case.lacking:
        yield (
            f"At {wording.listed(map(wording.count, case.lacking))} rows the best time without "
            "recursion is not known: at one of the nearest sizes with other variants or m, the "
            f"variants and m of these sizes lose more than {100 * MISSED:g} %."
        )


def _again(case: RecursionSeries) -> str:
    columns = [*case.spec.problem_columns, *case.spec.tunable_columns]
    rows = case.rows[case.rows["n"].isin(case.unlike)]
    keys = rows[columns].itertuples(index=False, name=None)
    return anew_settings(case.gpu, case.spec.workload, list(keys), columns)
