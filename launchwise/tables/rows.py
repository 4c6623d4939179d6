"""Selections from measurements: rows numbered by key, the fastest per key, the baseline's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.workloads.space import baseline
from launchwise.workloads.spec import Spec

IMPORTED = "imported"
"""``backend`` of rows that another tool measured."""

MOST_NUMBERS = 1 << 62
"""Numbers that int64 holds with room to spare."""


def row_numbers(rows: pd.DataFrame, columns: Sequence[str], *, ordered: bool = False) -> np.ndarray:
    """Number of each row's values in ``columns``: int64, shape (rows,), without gaps.

    A groupby of as many columns takes ten times as long.

    Parameters
    ----------
    ordered
        Number values in ascending order, the first column counting most; else by first appearance.
    """
    # Without an index of the distinct values: to make it takes longer than to find them.
    keys = (rows[name] if ordered else rows[name].array for name in columns)
    digits = (pd.factorize(each, sort=ordered) for each in keys)
    mixed = mixed_radix([(codes, len(values)) for codes, values in digits], len(rows))
    return np.asarray(pd.factorize(mixed, sort=ordered)[0], dtype=np.int64)


def mixed_radix(digits: Iterable[tuple[np.ndarray, int]], length: int) -> np.ndarray:
    """Numbers that are in the order of their digits, and equal where all of these are.

    Parameters
    ----------
    digits
        Each int64, shape (length,), from 0, with how many values it may have; the first counts
        most.

    Returns
    -------
    numpy.ndarray
        int64, shape (length,).
    """
    numbers, size = np.zeros(length, dtype=np.int64), 1
    for codes, count in digits:
        if size * count >= MOST_NUMBERS:
            numbers, values = pd.factorize(numbers, sort=True)
            size = len(values)
        numbers, size = numbers * count + codes, size * count
    return numbers


def fastest_rows(rows: pd.DataFrame, columns: Sequence[str], spec: Spec) -> pd.DataFrame:
    """The row of least ``time_ms`` of each combination of ``columns``.

    Among equal times the first configuration in the order of its columns, whatever the order of
    ``rows``.

    Parameters
    ----------
    rows
        Configurations with ``time_ms``, none of them NaN.

    Returns
    -------
    pandas.DataFrame
        Rows of ``rows`` with their index, by ascending time.
    """
    times, groups = rows["time_ms"].to_numpy(), row_numbers(rows, columns)
    rows = rows[times == least_by(groups, times)[groups]]
    configurations = row_numbers(rows, spec.tunable_columns, ordered=True)
    order = np.lexsort((configurations, rows["time_ms"].to_numpy()))
    return rows.iloc[order].drop_duplicates(list(columns))


def least_by(groups: np.ndarray, values: np.ndarray, count: int | None = None) -> np.ndarray:
    """Least value of each group: float64, shape (count,); infinite where it has none.

    Parameters
    ----------
    groups, values
        int64 from 0, and float64 without NaN, of the same shape.
    count
        Number of groups; as many as occur when None.
    """
    least = np.full(groups.max(initial=-1) + 1 if count is None else count, np.inf)
    np.minimum.at(least, groups, values)
    return least


def selected(rows: pd.DataFrame, selection: Mapping[str, Collection[Any]]) -> np.ndarray:
    """Whether each row has one of the values that a selection lists, in each of its columns.

    Returns
    -------
    numpy.ndarray
        bool, shape (rows,).
    """
    found = np.ones(len(rows), dtype=bool)
    for name, values in selection.items():
        found &= rows[name].isin(values).to_numpy()
    return found


def matches(problem: Mapping[str, Any], selection: Mapping[str, Collection[Any]]) -> bool:
    """Whether a problem has one of the values that a selection lists, for each of its names."""
    return all(problem[name] in values for name, values in selection.items())


def is_baseline(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Whether each row has the baseline's configuration: bool, shape (rows,)."""
    found = np.ones(len(rows), dtype=bool)
    for name, value in baseline(spec).items():
        found &= (rows[name] == value).to_numpy()
    return found
