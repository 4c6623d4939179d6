"""Sizes at which times with and without recursion do not compare.

Without recursion a size needs the variants and m that are the fastest at its neighbours: else the
time without recursion is not the best one, and recursion gains what another variant or m would.

The copy of the system to the device is the same with any number of recursions. Where it took longer
in runs with recursion than in runs without, so may have everything else: the sweeps of both ran at
other times, and something else kept the host busy during one of them. The ratio of their times then
tells of the host, not of recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


MISSED = 0.05
"""Loss at a neighbour from which a size lacks choices of that neighbour."""


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


def lacking_sizes(flat: pd.DataFrame, size: str) -> list[int]:
    """Sizes whose best time without recursion is not known.

    The nearest smaller and the nearest larger size that tried something else tell: one is enough
    where the choices of the size lose more than :data:`MISSED`.

    Parameters
    ----------
    flat
        Rows without recursion: ``variant``, ``m``, ``time_ms`` and the column ``size``.
    """
    best = flat.groupby([size, "variant", "m"])["time_ms"].min()
    times = {int(str(n)): part.droplevel(0) for n, part in best.groupby(level=0)}
    return [n for n in sorted(times) if _missed(n, times) > MISSED]


def _missed(n: int, times: Mapping[int, pd.Series]) -> float:
    """Largest relative loss of the choices of size ``n`` at either neighbour that has others."""
    tried = times[n].index
    others = [each for each in times if len(times[each].index.difference(tried))]
    neighbours = [
        *sorted(each for each in others if each < n)[-1:],
        *sorted(each for each in others if each > n)[:1],
    ]
    shared = [times[each].reindex(tried).min() / times[each].min() - 1 for each in neighbours]
    # A neighbour without any choice in common says that nothing is known.
    return max((np.inf if np.isnan(loss) else float(loss) for loss in shared), default=0.0)


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
    """Sizes whose copies differ."""
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
    """Sizes without what is the fastest at a neighbour."""
    if case.lacking:
        yield (
            f"At {wording.listed(map(wording.count, case.lacking))} rows the best time without "
            "recursion is not known: at one of the nearest sizes with other variants or m, the "
            f"variants and m of these sizes lose more than {100 * MISSED:g} %."
        )


def _again(case: RecursionSeries) -> str:
    """Settings that measure every row of the sizes again, as YAML."""
    columns = [*case.spec.problem_columns, *case.spec.tunable_columns]
    rows = case.rows[case.rows["n"].isin(case.unlike)]
    keys = rows[columns].itertuples(index=False, name=None)
    return anew_settings(case.gpu, case.spec.workload, list(keys), columns)
