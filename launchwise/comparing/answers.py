"""Says of each problem whether its best configuration is still the best."""

from __future__ import annotations

import numpy as np
import pandas as pd

from launchwise.comparing.rows import OK, Rule, ratio_intervals
from launchwise.tables.rows import fastest_rows, row_numbers
from launchwise.workloads.spec import Spec

VERDICTS: dict[str, str] = {
    "kept": "the same configuration is the fastest",
    "close": "another is the fastest, by no more than the threshold",
    "unclear": "another is faster by more than the threshold, but the interval holds 1",
    "stale": "another is faster by more than the threshold, or the old best has no time now",
    "unmeasured": "NEW lacks the row of the old best",
}
"""Whether an answer still holds, in words."""

NONE = -1
"""Index of no row."""


def best_answers(rows: pd.DataFrame, spec: Spec, rule: Rule) -> pd.DataFrame:
    """Best configurations of OLD and NEW for each problem, by rows with status ``ok``.

    Parameters
    ----------
    rows
        From :func:`launchwise.comparing.rows.matched`, with their index.

    Returns
    -------
    pandas.DataFrame
        One row per problem that is in both and has a best in OLD: its columns; ``old_best`` and
        ``new_best``, positions in ``rows`` (:data:`NONE` where nothing is ``ok`` in NEW);
        ``ratio``, NEW's time of the old best / that of the new best, with ``ratio_low`` and
        ``ratio_high`` (NaN where the old best is not ``ok`` in NEW); ``verdict``.
    """
    numbers = row_numbers(rows, spec.problem_columns)
    old, new = (_best(rows, numbers, side, spec) for side in ("old", "new"))
    in_new = np.unique(numbers[rows["new_status"].notna().to_numpy()])
    problems = np.flatnonzero(old != NONE)
    problems = problems[np.isin(problems, in_new)]
    # By key, as rows are: the first row of each problem tells.
    old, new = old[problems], new[problems]
    found = rows.iloc[old][spec.problem_columns].reset_index(drop=True)
    found["old_best"], found["new_best"] = old, new
    limits = np.full((3, len(found)), np.nan)
    status = rows["new_status"].iloc[old]
    timed = (status == OK).to_numpy(bool)
    now, best = rows.iloc[old[timed]], rows.iloc[new[timed]]
    limits[0, timed] = now["new_time_ms"].to_numpy() / best["new_time_ms"].to_numpy()
    limits[1:, timed] = ratio_intervals(
        best["new_times_ms"].tolist(), now["new_times_ms"].tolist(), rule.confidence
    )
    found["ratio"], found["ratio_low"], found["ratio_high"] = limits
    cases = [
        (old == new, "kept"),
        (status.isna().to_numpy(), "unmeasured"),
        (~timed, "stale"),
        (~rule.differ(limits[0]), "close"),
        (limits[1] > 1, "stale"),
    ]
    found["verdict"] = np.select(
        [np.asarray(mask, dtype=bool) for mask, _ in cases],
        [verdict for _, verdict in cases],
        default="unclear",
    )
    return found


def _best(rows: pd.DataFrame, numbers: np.ndarray, side: str, spec: Spec) -> np.ndarray:
    """Position of the fastest row of each problem's number: int64, :data:`NONE` without one."""
    ok = np.flatnonzero((rows[f"{side}_status"] == OK).to_numpy(bool))
    timed = rows.iloc[ok][spec.tunable_columns].assign(
        time_ms=rows[f"{side}_time_ms"].to_numpy()[ok], problem=numbers[ok], place=ok
    )
    fastest = fastest_rows(timed, ["problem"], spec)
    found = np.full(int(numbers.max(initial=NONE)) + 1, NONE, dtype=np.int64)
    found[fastest["problem"].to_numpy()] = fastest["place"].to_numpy()
    return found
