"""Errors of predicted run times, by groups of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.parallel import in_parallel
from launchwise.learning import merit
from launchwise.learning.features import Domain
from launchwise.learning.ranks import correlations, group_ranks
from launchwise.learning.splits import case_numbers
from launchwise.tables.learning import predicted_column
from launchwise.tables.rows import row_numbers

ALL = "all"
BOUND = "bound by"
"""Group by the resource that limits a row in the cost model."""
MIN_GROUP_ROWS = 20
"""Fewest rows of a group that is reported."""


def prediction_errors(
    table: pd.DataFrame, models: Sequence[str], domain: Domain, processes: int = 1
) -> list[dict[str, Any]]:
    """Errors of predicted times of test rows, by model, split, GPU, and what rows have in common.

    Parameters
    ----------
    table
        Predicted times beside what was measured
        (:meth:`launchwise.learning.evaluate.Truth.timed`). Rows without a prediction, or without
        a time that was measured more than once (``slow``), are left out.
    models
        Models with a column of predicted times.
    processes
        Splits are handled in so many processes at once.

    Returns
    -------
    list of dict
        ``split``, ``model``, ``gpu`` (``all`` for all together), ``by`` and ``value`` (a column and
        its value, both empty for all rows), and the figures of :meth:`Part.figures`.
    """
    timed = table[table["status"] == "ok"].reset_index(drop=True)
    if timed.empty:
        return []
    timed[BOUND] = _bounds(timed, domain)
    parts = list(timed.groupby("split", sort=False))

    def of_split(part: tuple[Any, pd.DataFrame]) -> list[list[dict[str, Any]]]:
        # What rows have in common is shown of the first split.
        detailed = part[0] == parts[0][0]
        split = _Split(part[1].reset_index(drop=True), domain, detailed)
        rows = {"split": str(part[0])}
        return [[{**rows, **found} for found in split.errors(model)] for model in models]

    by_split = in_parallel(of_split, parts, processes)
    return [row for of_model in zip(*by_split, strict=True) for rows in of_model for row in rows]


def errors_of_cases(times: pd.DataFrame, models: Iterable[str]) -> pd.DataFrame:
    """Rank correlation and error of predicted times, one row per (model, split, fold, case)."""
    keys = ["split", "fold", "case"]
    groups = row_numbers(times, keys)
    measured = times["time_ms"].to_numpy(dtype=float)
    measured_ranks = group_ranks(groups, measured)
    found = [pd.DataFrame(columns=["model", *keys, "absolute_percentage_error", "spearman"])]
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


class _Split:
    """Test rows of one split that were timed more than once.

    Most models predict a time of every row, so parts and their ranks are kept for them all.
    """

    def __init__(self, rows: pd.DataFrame, domain: Domain, detailed: bool) -> None:
        self._rows = rows
        self._domain, self._detailed = domain, detailed
        self._times = rows["time_ms"].to_numpy(dtype=float)
        self._cases = case_numbers(rows, domain.spec)
        self._parted: dict[bytes, list[_Parted]] = {}

    def errors(self, model: str) -> list[dict[str, Any]]:
        """Errors of one model over every part (:func:`prediction_errors`, without the split)."""
        predicted, parted = self.predicted(model)
        order = np.argsort(predicted, kind="stable")
        return [
            {"model": model, "gpu": part.gpu, "by": part.by, "value": part.value, **figures}
            for each in parted
            for part, figures in each.figures(predicted, order)
        ]

    def predicted(self, model: str) -> tuple[np.ndarray, list[_Parted]]:
        """Predicted times (ms, shape (rows,), NaN without one), and parts of rows with one."""
        column = predicted_column(model)
        if column not in self._rows:
            return np.empty(0), []
        predicted = self._rows[column].to_numpy(dtype=float)
        known = np.isfinite(predicted)
        key = known.tobytes()
        if key not in self._parted:
            self._parted[key] = [
                _Parted(names, np.flatnonzero(known), codes, self._times, self._cases)
                for names, codes in _partitions(self._rows[known], self._domain, self._detailed)
                if names and len(codes)
            ]
        return predicted, self._parted[key]


def _partitions(
    rows: pd.DataFrame, domain: Domain, detailed: bool
) -> Iterator[tuple[list[tuple[str, str, str]], np.ndarray]]:
    """Ways to part rows: all of them, by GPU and, in detail, by what splits them into few groups.

    Of each way GPU, ``by`` and ``value`` of its parts, and the number of each row's part, -1
    without one: int64, shape (rows,).
    """
    yield [(ALL, "", "")], np.zeros(len(rows), dtype=np.int64)
    codes, gpus = pd.factorize(rows["gpu"])
    yield [(str(gpu), "", "") for gpu in gpus], codes
    for name in ("variant", BOUND, *domain.spec.listed_columns) if detailed else ():
        codes, values = pd.factorize(rows[name], sort=True)
        large = np.bincount(codes, minlength=len(values)) >= MIN_GROUP_ROWS
        if len(values) > 1 and large.any():
            numbers = np.where(large, np.cumsum(large) - 1, -1)
            named = [(ALL, name, str(value)) for value in values[large]]
            yield named, numbers[codes]


class _Parted:
    """Rows of a split in parts that have no row in common.

    Parameters
    ----------
    names
        GPU, ``by`` and ``value`` of each part.
    rows
        Numbers of rows of the split: int64, shape (known,).
    codes
        Number of each one's part, -1 without one: int64, shape (known,).
    times_ms, cases
        Measured time and case of every row of the split: shape (split,).
    """

    def __init__(
        self,
        names: Sequence[tuple[str, str, str]],
        rows: np.ndarray,
        codes: np.ndarray,
        times_ms: np.ndarray,
        cases: np.ndarray,
    ) -> None:
        self._codes = np.full(len(times_ms), -1, dtype=np.int64)
        self._codes[rows] = codes
        of_part = self._in_parts(np.arange(len(times_ms)))
        # Its place in its part, of every row.
        self._places = np.zeros(len(times_ms), dtype=np.int64)
        for each in of_part:
            self._places[each] = np.arange(len(each))
        self._parts = [
            Part(*name, each, times_ms, cases) for name, each in zip(names, of_part, strict=True)
        ]

    def _in_parts(self, order: np.ndarray) -> list[np.ndarray]:
        """Row numbers of each part, in an order of all rows."""
        codes = self._codes[order]
        order, codes = order[codes >= 0], codes[codes >= 0]
        ends = np.cumsum(np.bincount(codes))
        return np.split(order[np.argsort(codes, kind="stable")], ends[:-1])

    def figures(
        self, predicted: np.ndarray, order: np.ndarray
    ) -> Iterator[tuple[Part, dict[str, Any]]]:
        """Errors of one model over each part.

        Parameters
        ----------
        predicted
            ms, shape (split,).
        order
            Numbers of the split's rows in ascending order of these, shape (split,): sorted once.
        """
        for part, each in zip(self._parts, self._in_parts(order), strict=True):
            yield part, part.figures(predicted, self._places[each])


class Part:
    """Rows that errors are counted over, with the ranks of their measured times.

    Parameters
    ----------
    rows
        Numbers of the rows: int64, shape (part,).
    times_ms, cases
        Measured time and case of every row of the split: shape (split,).
    """

    def __init__(
        self,
        gpu: str,
        by: str,
        value: str,
        rows: np.ndarray,
        times_ms: np.ndarray,
        cases: np.ndarray,
    ) -> None:
        self.gpu, self.by, self.value, self.rows = gpu, by, value, rows
        self._times = times_ms[rows]
        self._cases = pd.factorize(cases[rows])[0]
        self._whole = np.zeros(len(rows), dtype=np.int64)
        self._ranks = group_ranks(self._whole, self._times)
        self._ranks_within = group_ranks(self._cases, self._times)

    def figures(self, predicted: np.ndarray, order: np.ndarray) -> dict[str, Any]:
        """Errors of one model over the rows.

        Parameters
        ----------
        predicted
            ms, shape (split,).
        order
            Places of its rows in ascending order of these, shape (part,).

        Returns
        -------
        dict
            ``rows``; ``median_percent``, ``mape_percent`` and ``p90_percent`` of |predicted /
            measured - 1|; ``ratio``, the geometric mean of predicted / measured; ``spearman`` over
            all rows, and ``spearman_within``, its mean over problems that have one. None where
            there is none.
        """
        predicted = predicted[self.rows]
        ratio = predicted / self._times
        error = 100 * np.abs(ratio - 1)
        whole = correlations(self._whole, group_ranks(self._whole, predicted, order), self._ranks)
        ranks = group_ranks(self._cases, predicted, order)
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
