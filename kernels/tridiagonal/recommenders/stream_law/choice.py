"""From times with and without streams to laws, and what their choices of streams cost.

Method: see :mod:`laws`, which also says what *rows* are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.row_arrays import configuration_codes
from launchwise.workloads.spec import Spec

from .laws import STREAMS, CreationLaw, Law, predicted_streams

OVERLAPPED = ("t1_comp", "t1_d2h", "t3_h2d", "t3_comp")
"""Times (ms) of a run without streams, by stage, that streams can overlap."""
SERIAL = ("t1_h2d", "t2_h", "t3_d2h")
"""Times (ms) of a run without streams that streams leave alone."""
STAGES = [f"{name}_ms" for name in OVERLAPPED]  # columns of a sweep with the times of `OVERLAPPED`
TUNABLE = "streams"  # the tunable that the laws speak of
REPEATED = "ok"  # status of rows whose time is the median of repeats
WHERE = "stream measurements"


def overlapped_ms(stages: pd.DataFrame) -> np.ndarray:
    """The sum: what streams can overlap, in ms, of :data:`OVERLAPPED`; float64, shape (rows,)."""
    return stages[list(OVERLAPPED)].to_numpy(dtype=float).sum(axis=1)


def repeated(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows whose time is the median of repeats, not that of a single launch (``slow``). The host
    solves stage 2, and its time varies more from launch to launch than streams can save: of single
    launches the luckiest looks like a gain."""
    return rows[rows["status"] == REPEATED]


def runs_that_differ_in_streams(rows: pd.DataFrame, size: str, spec: Spec) -> pd.DataFrame:
    """Rows of one series for one fit: they differ in size and streams and in nothing else. Each
    size has a run with 1 stream and stage times. All other tunables are held at the combination
    with most such rows among those with several streams (of equal ones the first by the spec's
    order); empty where there is none."""
    others = [name for name in spec.tunable_columns if name != TUNABLE]
    codes = configuration_codes(rows, others, spec)
    pairs = pd.MultiIndex.from_arrays([codes, rows[size]])
    usable = pairs.isin(pairs[timed_alone(rows)])
    table = pd.DataFrame({"code": codes[usable], TUNABLE: rows.loc[usable, TUNABLE].to_numpy()})
    grouped = table.groupby("code")[TUNABLE].agg(["size", "nunique"])
    several = grouped.loc[grouped["nunique"] > 1, "size"]
    if several.empty:
        return rows.iloc[:0]
    return rows[usable & (codes == several.idxmax())].reset_index(drop=True)


def timed_alone(rows: pd.DataFrame) -> np.ndarray:
    """Which runs have 1 stream and the times of all stages that streams can overlap."""
    return np.asarray((rows[TUNABLE] == 1) & rows[STAGES].notna().all(axis=1))


def overhead_rows(stages: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Measured overheads: (T_str - T_non_str) + (s - 1) / s * sum.

    ``stages``: ``n`` and :data:`OVERLAPPED` of runs without streams, one row for each N.
    ``runs``: ``n``, ``streams``, ``time_ms`` (NaN where it failed), one row for each N and s.
    Returns a DataFrame: rows of the runs with a time, ordered by N and s.
    Raises UserError when an N has two rows where one is meant, no stage times, or no time with s =
    1.
    """
    for table, key in ((stages, ["n"]), (runs, ["n", "streams"])):
        if twice := table.loc[table.duplicated(key), key].to_numpy().tolist():
            raise UserError(WHERE, ", ".join(key), f"measured twice: {twice[0]}")
    rows = runs[runs["time_ms"].notna()][["n", "streams", "time_ms"]].sort_values(["n", "streams"])
    alone = rows[rows["streams"] == 1].set_index("n")["time_ms"]
    sums = pd.Series(overlapped_ms(stages), index=stages["n"].to_numpy())
    saved = 1 - 1 / rows["streams"]
    rows["sum_ms"] = rows["n"].map(sums)
    rows["overhead_ms"] = rows["time_ms"] - rows["n"].map(alone) + saved * rows["sum_ms"]
    if incomplete := rows.loc[rows["overhead_ms"].isna(), "n"].tolist():
        raise UserError(WHERE, "n", f"{incomplete[0]} lacks stage times or a time with 1 stream")
    return rows.reset_index(drop=True)


def split_rows(rows: pd.DataFrame, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows, 3:1, shuffled; all rows of an N go to one side. They share its time
    without streams and its sum, so rows split one by one tell nothing of a new N; the paper does
    not say how it split. Raises UserError when there is nothing to put on one side."""
    groups = _dealt(rows["n"].to_numpy(), 4, seed)
    if len(np.unique(groups)) < 2:
        raise UserError(WHERE, "n", "a split in training and test needs at least 2 sizes")
    return rows[groups != 0], rows[groups == 0]


def _dealt(names: np.ndarray, groups: int, seed: int) -> np.ndarray:
    """Group 0 .. groups - 1 of each row, equal names together: int64, shape (rows,)."""
    distinct, numbers = np.unique(names, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(distinct))
    return np.asarray(order % groups)[numbers]


def goodness_of_fit(law: Law, rows: pd.DataFrame) -> dict[str, float]:
    """Errors of a law on rows.

    Returns a dictionary: ``r2`` (NaN where nothing varies), ``mse`` (ms^2), ``rmse`` (ms), and
    ``relative``, the root mean square of error / sum, as :func:`cross_validated_error` has it. All
    NaN without rows.
    """
    used = law.observations(rows)
    if used.empty:
        return dict.fromkeys(("r2", "mse", "rmse", "relative"), float("nan"))
    errors = _errors(law, used)
    mse = float((errors**2).mean())
    variance = float(used[law.target].to_numpy(dtype=float).var())
    r2 = 1 - mse / variance if variance > 0 else float("nan")
    relative = float(np.sqrt(((errors / used["sum_ms"].to_numpy(dtype=float)) ** 2).mean()))
    return {"r2": r2, "mse": mse, "rmse": float(np.sqrt(mse)), "relative": relative}


def _errors(law: Law, rows: pd.DataFrame) -> np.ndarray:
    measured = rows[law.target].to_numpy(dtype=float)
    return law.predict(rows["n"].to_numpy(), rows["streams"].to_numpy()) - measured


@dataclass(frozen=True)
class Choice:
    """The law that predicts unseen N best, and the score of every candidate."""

    law: Law  # fitted to all the rows that it was chosen on
    scores: dict[str, float]
    """Name of a law's class to its score, as :func:`cross_validated_error` gives it."""


def choose_law(
    rows: pd.DataFrame, candidates: Sequence[type[Law]], folds: int = 5, seed: int = 0
) -> Choice:
    """The candidate with the least cross-validated error; of equal ones the first.

    ``rows``: training rows. No test row may be among them.
    ``candidates``: :data:`~laws.SUM_LAWS` or ``OVERHEAD_LAWS``.
    Raises UserError when no candidate can be fitted in every fold.
    """
    scores = {law.__name__: cross_validated_error(law, rows, folds, seed) for law in candidates}
    best = min(candidates, key=lambda law: scores[law.__name__])
    if not np.isfinite(scores[best.__name__]):
        raise UserError("training rows", "", f"too few for any of {', '.join(scores)}")
    return Choice(best.fit(rows), scores)


def cross_validated_error(
    law: type[Law], rows: pd.DataFrame, folds: int = 5, seed: int = 0
) -> float:
    """Root mean square of error / sum over rows of held-out N; infinite where a fit fails. Relative
    to the sum because that is what an overhead is compared with: in ms the largest N alone would
    choose the law."""
    groups = _dealt(rows["n"].to_numpy(), folds, seed)
    squares: list[np.ndarray] = []
    for fold in np.unique(groups):
        held = law.observations(rows[groups == fold])
        try:
            fitted = law.fit(rows[groups != fold])
        except UserError:
            return float("inf")
        squares.append((_errors(fitted, held) / held["sum_ms"].to_numpy(dtype=float)) ** 2)
    score = float(np.sqrt(np.concatenate(squares).mean()))
    return score if np.isfinite(score) else float("inf")


def compare_optima(
    rows: pd.DataFrame,
    sum_law: Law,
    overhead_law: Law,
    baseline: CreationLaw,
    streams: Sequence[int] = STREAMS,
) -> pd.DataFrame:
    """Predicted and measured best streams of each N, and what the predictions cost.

    The baseline takes the measured sum of each N, as published: it has no law for it.

    Returns a DataFrame: one row for each N, ascending: ``n``; ``measured_streams``, ``measured_ms``
    (the best); ``predicted_streams``, ``predicted_ms``, ``predicted_lost_ms``,
    ``predicted_lost_percent``; the same of ``baseline``, and ``baseline_optimum`` (its real
    number). Times are NaN where the s was not measured.
    """
    used = rows[rows["streams"].isin(streams)]
    table = []
    for n in np.unique(used["n"]):
        runs = used[used["n"] == n].sort_values("streams")
        times = runs.set_index("streams")["time_ms"]
        sum_ms = float(runs["sum_ms"].iloc[0])
        best = int(np.argmin(times))
        row = {"n": n, "measured_streams": times.index[best], "measured_ms": times.iloc[best]}
        row |= _cost("predicted", predicted_streams(n, sum_law, overhead_law, streams), times)
        row["baseline_optimum"] = baseline.optimum(sum_ms)
        row |= _cost("baseline", baseline.best_of(sum_ms, streams), times)
        table.append(row)
    return pd.DataFrame(table)


def _cost(who: str, streams: int, times: pd.Series) -> dict[str, float]:
    """Time of ``streams``, and loss against the best of ``times`` (ms, by streams)."""
    time, best = float(times.get(streams, float("nan"))), float(times.min())
    return {
        f"{who}_streams": streams,
        f"{who}_ms": time,
        f"{who}_lost_ms": time - best,
        f"{who}_lost_percent": 100 * (time / best - 1),
    }
