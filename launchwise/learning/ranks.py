"""Ranks and rank correlations within groups of rows, for all groups at once."""

from __future__ import annotations

import numpy as np


def group_ranks(
    groups: np.ndarray, values: np.ndarray, order: np.ndarray | None = None
) -> np.ndarray:
    """Rank of each value in its group, from 1; equal values share the mean of their ranks.

    Returns float64, shape (rows,).

    Parameters
    ----------
    groups
        Number of each value's group: int64, shape (rows,).
    values
        No NaN: float64, shape (rows,).
    order
        Numbers of the rows in ascending order of their values; worked out when left out.
    """
    if order is None:
        order = np.argsort(values, kind="stable")
    # NumPy sorts integers of two bytes in linear time.
    narrow = groups.astype(np.int16) if groups.max(initial=0) < 2**15 else groups
    order = order[np.argsort(narrow[order], kind="stable")]
    group, value = groups[order], values[order]
    starts_group = np.diff(group, prepend=-1) != 0
    starts_tie = starts_group | (np.diff(value, prepend=np.nan) != 0)
    places = np.arange(len(order))
    first = places[starts_group][np.cumsum(starts_group) - 1]
    ties = np.flatnonzero(starts_tie)
    sizes = np.diff(np.append(ties, len(order)))
    means = ties - first[ties] + (sizes + 1) / 2
    ranks = np.empty(len(order))
    ranks[order] = np.repeat(means, sizes)
    return ranks


def correlations(groups: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation of two columns within each group.

    Returns float64, shape (groups,); NaN where a group has fewer than 2 rows or a column is
    constant.

    Parameters
    ----------
    groups
        Number of each row's group from 0: int64, shape (rows,).
    first, second
        float64, shape (rows,). Ranks of :func:`group_ranks` give Spearman's correlation.
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
