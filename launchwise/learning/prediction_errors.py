"""Errors of predicted run times, by groups of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.work import in_parallel
from launchwise.learning import merit
from launchwise.learning.features import Domain
from launchwise.learning.splits import case_numbers
from launchwise.tables.learning import predicted_column
from launchwise.tables.rows import row_numbers


def group_ranks(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rank of each value in its group, from 1; equal values share the mean of their ranks.

    Returns float64, shape (rows,). ``groups``: number of each value's group: int64, shape (rows,).
    ``values``: no NaN: float64, shape (rows,).
    """
    return pd.Series(values).groupby(groups).rank().to_numpy()


def correlations(groups: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation of two columns within each group.

    Returns float64, shape (groups,); NaN where a group has fewer than 2 rows or a column is
    constant. ``groups``: number of each row's group from 0: int64, shape (rows,). ``first``,
    ``second``: float64, shape (rows,). Ranks of :func:`group_ranks` give Spearman's correlation.
    """
    counts = np.bincount(groups)
    x, y = (
        column - (np.bincount(groups, weights=column) / np.maximum(counts, 1))[groups]
        for column in (first, second)
    )
    products = np.bincount(groups, weights=x * y)
    scale = np.sqrt(np.bincount(groups, weights=x * x) * np.bincount(groups, weights=y * y))
    found = np.full(len(counts), np.nan)
    np.divide(products, scale, out=found, where=scale > 0)
    return found


ALL = "all"
BOUND = "bound by"  # Group by the resource that limits a row in the cost model
MIN_GROUP_ROWS = 20  # Fewest rows of a group that is reported


def prediction_errors(
    table: pd.DataFrame, models: Sequence[str], domain: Domain, processes: int = 1
) -> list[dict[str, Any]]:
    """Errors of predicted times of test rows, by model, split, GPU, and what rows have in common.

    Returns ``split``, ``model``, ``gpu`` (``all`` for all together), ``by`` and ``value`` (a column
    and its value, both empty for all rows), and the figures of :meth:`_Part.figures`.

    ``table``: predicted times beside what was measured
        (:meth:`launchwise.learning.truth.Truth.timed`). Rows without a prediction, or without a
        time that was measured more than once (``slow``), are left out.
    ``models``: models with a column of predicted times.
    ``processes``: splits are handled in so many processes at once.
    """
    timed = table[table["status"] == "ok"].reset_index(drop=True)
    if timed.empty:
        return []
    timed[BOUND] = _bounds(timed, domain)
    parts = list(timed.groupby("split", sort=False))

    def of_split(part: tuple[Any, pd.DataFrame]) -> list[list[dict[str, Any]]]:
        # What rows have in common is shown of the first split.
        detailed = part[0] == parts[0][0]
        rows = part[1].reset_index(drop=True)
        # Most models predict a time of every row, so parts and their ranks are kept for them all.
        of_rows: dict[bytes, list[_Part]] = {}
        found = []
        for model in models:
            predicted = rows[predicted_column(model)].to_numpy(dtype=float)
            known = np.isfinite(predicted)
            if known.tobytes() not in of_rows:
                of_rows[known.tobytes()] = list(_parts(rows, known, domain, detailed))
            found.append(
                [
                    {"split": str(part[0]), "model": model, **each.named, **each.figures(predicted)}
                    for each in of_rows[known.tobytes()]
                ]
            )
        return found

    by_split = in_parallel(of_split, parts, processes)
    return [row for of_model in zip(*by_split, strict=True) for rows in of_model for row in rows]


def errors_of_cases(times: pd.DataFrame, models: Iterable[str]) -> pd.DataFrame:
    """Rank correlation and error of predicted times, one row per (model, split, fold, case)."""
    keys = ["split", "fold", "case"]
    groups = row_numbers(times, keys)
    measured = times["time_ms"].to_numpy(dtype=float)
    measured_ranks = group_ranks(groups, measured)
    figures = dict.fromkeys(("absolute_percentage_error", "spearman"), float)
    found = [pd.DataFrame(columns=["model", *keys, *figures]).astype(figures)]
    for model in models:
        predicted = times[predicted_column(model)].to_numpy(dtype=float)
        known = np.isfinite(predicted)
        codes = pd.factorize(groups[known])[0]
        ranks = measured_ranks if known.all() else group_ranks(codes, measured[known])
        error = 100 * np.abs(predicted[known] / measured[known] - 1)
        first = np.unique(codes, return_index=True)[1]
        found.append(
            times.loc[known, keys]
            .iloc[first]
            .assign(
                model=model,
                absolute_percentage_error=np.bincount(codes, weights=error) / np.bincount(codes),
                spearman=correlations(codes, group_ranks(codes, predicted[known]), ranks),
            )
        )
    return pd.concat([part for part in found if len(part)] or found, ignore_index=True)


def _bounds(rows: pd.DataFrame, domain: Domain) -> np.ndarray:
    """Limit of each row in the cost model: objects, shape (rows,)."""
    keys = row_numbers(rows, domain.spec.key_columns)
    distinct = rows[domain.spec.key_columns].iloc[np.unique(keys, return_index=True)[1]]
    estimate = domain.cost_model.estimate(distinct.reset_index(drop=True))
    return np.asarray(estimate.bound_by(), dtype=object)[keys]


def _parts(
    rows: pd.DataFrame, known: np.ndarray, domain: Domain, detailed: bool
) -> Iterator[_Part]:
    """Parts of the known rows: all, those of a GPU, in detail those of what makes few groups."""
    timed = rows["time_ms"].to_numpy(dtype=float), case_numbers(rows, domain.spec)
    places = np.flatnonzero(known)
    if len(places):
        yield _Part({"gpu": ALL, "by": "", "value": ""}, places, *timed)
    codes, values = pd.factorize(rows["gpu"].iloc[places])
    for code, value in enumerate(values):
        yield _Part({"gpu": str(value), "by": "", "value": ""}, places[codes == code], *timed)
    for name in ("variant", BOUND, *domain.spec.listed_columns) if detailed else ():
        codes, values = pd.factorize(rows[name].iloc[places], sort=True)
        for code, value in enumerate(values if len(values) > 1 else []):
            if (codes == code).sum() >= MIN_GROUP_ROWS:
                named = {"gpu": ALL, "by": name, "value": str(value)}
                yield _Part(named, places[codes == code], *timed)


class _Part:
    """Rows that errors are counted over, with the ranks of their measured times.

    ``named``: ``gpu``, ``by`` and ``value``.
    ``rows``: numbers of the rows: int64, shape (part,).
    ``times_ms``, ``cases``: measured time and case of every row of the split: shape (split,).
    """

    def __init__(
        self, named: dict[str, str], rows: np.ndarray, times_ms: np.ndarray, cases: np.ndarray
    ) -> None:
        self.named, self.rows = named, rows
        self._times = times_ms[rows]
        self._cases = pd.factorize(cases[rows])[0]
        self._whole = np.zeros(len(rows), dtype=np.int64)
        self._ranks = group_ranks(self._whole, self._times)
        self._ranks_within = group_ranks(self._cases, self._times)

    def figures(self, predicted: np.ndarray) -> dict[str, Any]:
        """Errors of one model over the rows.

        Returns ``rows``; ``median_percent``, ``mape_percent`` and ``p90_percent`` of |predicted /
        measured - 1|; ``ratio``, the geometric mean of predicted / measured; ``spearman`` over all
        rows, and ``spearman_within``, its mean over problems that have one. None where there is
        none. ``predicted``: of every row of the split: ms, shape (split,).
        """
        predicted = predicted[self.rows]
        ratio = predicted / self._times
        error = 100 * np.abs(ratio - 1)
        whole = correlations(self._whole, group_ranks(self._whole, predicted), self._ranks)
        ranks = group_ranks(self._cases, predicted)
        within = correlations(self._cases, ranks, self._ranks_within)
        known = within[np.isfinite(within)]
        found = {
            "median_percent": float(np.median(error)),
            "mape_percent": float(error.mean()),
            "p90_percent": float(np.quantile(error, 0.9)),
            "ratio": merit.geometric_mean(ratio),
            "spearman": float(whole[0]),
            "spearman_within": float(known.mean()) if len(known) else float("nan"),
        }
        return {
            "rows": len(self.rows),
            **{name: value if np.isfinite(value) else None for name, value in found.items()},
        }
