"""Times of one kind: those of a sweep, or those of pairs.

Pairs compare one stream with a few other numbers, in turns, so that what keeps the host busy meets
all of them alike. A sweep times every number once, one after the other. A ratio of one time of each
kind tells of the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from launchwise.tables.times import PAIRS, by_sweep

from ...recommenders.stream_law.choice import REPEATED

CHOICE = "streams"

INTERVAL = 2 * 1.96
"""Standard errors that a 95 % interval spans."""


def of_one_kind(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Runs to compare with one stream: of systems whose one stream was in pairs those in pairs.

    Parameters
    ----------
    runs
        ``streams``, ``time_ms``, ``relative_error`` and, where times were judged, ``basis`` and
        the limits of the time; one row for each number of streams and combination of ``by``.

    Returns
    -------
    pandas.DataFrame
        The kept rows. Of pairs, ``relative_error`` is that of the median over their rounds and
        ``status`` is ``ok``, as they have repeats.
    """
    if "basis" not in runs:
        return runs
    keys = pd.MultiIndex.from_frame(runs[list(by)])
    paired = runs["basis"] == PAIRS
    in_turns = keys.isin(keys[(runs[CHOICE] == 1) & paired])
    # Where one stream was in no pair, all times are those of the sweep.
    swept = by_sweep(runs[~in_turns])
    pairs = runs[in_turns & paired]
    spans = (pairs["time_high_ms"] - pairs["time_low_ms"]) / (INTERVAL * pairs["time_ms"])
    errors = spans.fillna(pairs["relative_error"].astype(float))
    return pd.concat([swept, pairs.assign(relative_error=errors, status=REPEATED)])
