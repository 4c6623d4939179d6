"""Rows of a sweep: keys, the fastest ones, the baseline, derived columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.robust import (
    EQUAL,
    MIN_SAMPLE_SIZE,
    fences_of_rows,
    median_error,
    robust_spread,
)
from launchwise.base.vectors import Columns
from launchwise.workloads.metrics import SWEEP
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import Spec

IMPORTED = "imported"  # `backend` of rows that another tool measured
MOST_NUMBERS = 1 << 62  # Numbers that int64 holds with room to spare


def row_numbers(rows: pd.DataFrame, columns: Sequence[str], *, ordered: bool = False) -> np.ndarray:
    """Number of each row's values in ``columns``: int64, shape (rows,), without gaps.

    A groupby of as many columns takes ten times as long.

    ``ordered``: number values in ascending order, the first column counting most; else by first
        appearance.
    """
    # Without an index of the distinct values: to make it takes longer than to find them.
    keys = (rows[name] if ordered else rows[name].array for name in columns)
    mixed = mixed_radix((_digits(each, ordered) for each in keys), len(rows))
    return np.asarray(pd.factorize(mixed, sort=ordered)[0], dtype=np.int64)


def _digits(values: Any, ordered: bool) -> tuple[np.ndarray, int]:
    """Number of each value, and how many numbers there are."""
    if isinstance(values, pd.Categorical) and not ordered:
        return values.codes.astype(np.int64), len(values.categories)
    codes, distinct = pd.factorize(values, sort=ordered)
    return codes, len(distinct)


def mixed_radix(digits: Iterable[tuple[np.ndarray, int]], length: int) -> np.ndarray:
    """Numbers that are in the order of their digits, and equal where all of these are.

    ``digits``: each int64, shape (length,), from 0, with how many values it may have; the first
    counts most. Returns int64, shape (length,).
    """
    numbers, size = np.zeros(length, dtype=np.int64), 1
    for codes, count in digits:
        if size * count >= MOST_NUMBERS:
            numbers, values = pd.factorize(numbers, sort=True)
            size = len(values)
        numbers, size = numbers * count + codes, size * count
    return numbers


DEFAULT_ERROR = 0.005
"""Standard error of a time where nothing was measured twice, relative to it."""

Z95 = 1.96  # Standard errors in half a 95 % interval

UNTOLD = 1.0
"""Least standard error of a time that tells nothing, as its repeats disagree: it is not among the
fastest, and nothing is lost by it that can be told."""

OF_ROUNDS = ("rounds_low_ms", "rounds_high_ms")
"""Columns of what single rounds of pairs say of a time."""

NAMED_BY = ("error", "basis", "is_usual", "ratio_error", *OF_ROUNDS)
"""Columns of rows that :func:`fastest_rows` reads where they are known, beside keys and times."""

FAR = 1.1
"""Times of a configuration from which another counts as unsure where errors cannot tell them
apart, and no more as one that is as good."""


def fastest_rows(rows: pd.DataFrame, columns: Sequence[str], spec: Spec) -> pd.DataFrame:
    """The fastest row of each combination of ``columns``: every part names the fastest by this.

    Rows without ``error``: the row of least ``time_ms``, among equal times the first configuration
    in the order of its columns, whatever the order of ``rows``.

    Rows with it (see :func:`launchwise.tables.times.times_schema`): of those that tie with the one
    most surely fast (:func:`tied`) and take at most :data:`launchwise.base.robust.EQUAL` more, the
    usual choice is taken; without it, one that was measured in pairs before one that rests on one
    row of a sweep, then the one that differs in the fewest tunables from the usual choice, so that
    problems share builds, then the one of least shared memory, then the first in the order of its
    columns. What is not judged has :data:`DEFAULT_ERROR`. ``alike`` rows cannot be told apart from
    it and take at most :data:`FAR` of its time, itself among them; ``unsure`` times its time takes
    the slowest of those that take more, 1 without any.

    ``rows``: configurations with ``time_ms``, none of them NaN, and, if they have ``error``,
    ``basis`` and ``is_usual``; where that is missing, the baseline is usual. Returns rows of
    ``rows`` with their index, by ascending time.
    """
    times, groups = rows["time_ms"].to_numpy(dtype=float), row_numbers(rows, columns)
    if "error" not in rows:
        rows = rows[times == least_by(groups, times)[groups]]
        place = row_numbers(rows, spec.tunable_columns, ordered=True)
        rows = rows.iloc[np.lexsort((place, rows["time_ms"].to_numpy()))]
        return rows.drop_duplicates(list(columns))
    usual = rows["is_usual"].to_numpy() if "is_usual" in rows else is_baseline(rows, spec)
    sure, beside = surest(rows, groups), usual | is_baseline(rows, spec)
    named = indistinct(rows, groups, sure, beside) & ~lost(rows, groups)
    named &= times <= (1 + EQUAL) * times[sure][groups]
    found = rows[named]
    found = found.assign(
        _at=np.flatnonzero(named),
        _other=~usual[named],
        _once=found["basis"] == ONCE,
        _differs=_differing(rows, groups, usual, spec)[named],
        _shared=_shared_bytes(found, spec),
        _place=row_numbers(found, spec.tunable_columns, ordered=True),
    )
    marks = ["_other", "_once", "_differs", "_shared", "_place"]
    found = found.sort_values(marks, kind="stable").drop_duplicates(list(columns))
    at = found["_at"].to_numpy()
    own = groups[at]
    first = at[np.argsort(own)]
    near, ratio = indistinct(rows, groups, first, beside), times / times[first][groups]
    unsure, slowest = near & (ratio > FAR), np.ones(len(first))
    np.maximum.at(slowest, groups[unsure], ratio[unsure])
    found["alike"], found["unsure"] = np.bincount(groups[near & ~unsure])[own], slowest[own]
    return found.drop(columns=["_at", *marks]).sort_values("time_ms", kind="stable")


def ratio_limits(
    rows: pd.DataFrame | Mapping[str, np.ndarray],
    reference: np.ndarray,
    beside: np.ndarray | bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the 95 % interval of each row's time over that of another row of its problem.

    Beside the usual choice and the baseline pairs measure ratios: where both rows were in pairs,
    ``ratio_error`` is the error of that of the other. Of any two others :data:`Z95` errors of both
    times say it: errors are without what the configurations of a problem have in common.

    ``rows``: ``time_ms``, ``error`` and, if known, ``ratio_error``. ``reference``: place of the row
        that each is compared with, int64, shape (rows,). ``beside``: which rows are the usual
        choice or the baseline, bool, shape (rows,).
    Returns float64, both of shape (rows,).
    """
    times, errors = (np.asarray(rows[name], dtype=float) for name in ("time_ms", "error"))
    errors = np.where(np.isnan(errors), DEFAULT_ERROR, errors)
    error = np.hypot(errors, errors[reference])
    if "ratio_error" in rows:
        own = np.asarray(rows["ratio_error"], dtype=float)
        known, known_beside = ~np.isnan(own + own[reference]), np.broadcast_to(beside, own.shape)
        of_pairs = np.where(known_beside[reference], own, own[reference])
        error = np.where(known & (known_beside | known_beside[reference]), of_pairs, error)
    ratio, reach = times / times[reference], np.exp(Z95 * error)
    return ratio / reach, ratio * reach


def indistinct(
    rows: pd.DataFrame, groups: np.ndarray, reference: np.ndarray, beside: np.ndarray | bool = False
) -> np.ndarray:
    """Whether each row tells something (:data:`UNTOLD`), and cannot be told apart from one row of
    its group: the interval of their ratio (:func:`ratio_limits`) holds 1. bool, shape (rows,).

    ``groups``: int64 from 0, shape (rows,). ``reference``: place of that row, which is always
        among them, int64, shape (groups,). ``beside``: see :func:`ratio_limits`.
    """
    low, high = ratio_limits(rows, reference[groups], beside)
    holds = (low <= 1) & (high >= 1) & ~(rows["error"].to_numpy(dtype=float) >= UNTOLD)
    return np.asarray(holds | (np.arange(len(rows)) == reference[groups]))


def tied(rows: pd.DataFrame, groups: np.ndarray) -> np.ndarray:
    """Whether each row may be the fastest of its group: it cannot be told apart from the row that
    is most surely fast (:func:`surest`), nor did it lose (:func:`lost`). bool, shape (rows,).
    ``rows`` have :data:`OF_ROUNDS`, too, if known; see :func:`indistinct`."""
    return indistinct(rows, groups, surest(rows, groups)) & ~lost(rows, groups)


def surest(rows: pd.DataFrame, groups: np.ndarray) -> np.ndarray:
    """The place of the row of each group that is most surely fast: of the least upper limit of its
    time by its error, of those that did not lose. int64, shape (groups,). Arguments: see
    :func:`tied`."""
    errors = rows["error"].fillna(DEFAULT_ERROR).to_numpy(dtype=float)
    logs = np.log(rows["time_ms"].to_numpy(dtype=float))
    return _place_of_least(np.where(lost(rows, groups), np.inf, logs + Z95 * errors), groups)


def lost(rows: pd.DataFrame, groups: np.ndarray) -> np.ndarray:
    """Whether each row was slower than one other of its group in every round of their pairs, and by
    more than :data:`launchwise.base.robust.EQUAL`: whatever errors say of their ratios to a third
    row, it is not the fastest. bool, shape (rows,). Arguments: see :func:`tied`."""
    if not {*OF_ROUNDS} <= {*rows}:
        return np.zeros(len(rows), dtype=bool)
    low, high, times = (rows[name].to_numpy(dtype=float) for name in (*OF_ROUNDS, "time_ms"))
    winner = _place_of_least(np.nan_to_num(high, nan=np.inf), groups)[groups]
    return np.asarray((low > high[winner]) & (times > (1 + EQUAL) * times[winner]))


def _place_of_least(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Place of the first least value of each group: int64, shape (groups,)."""
    found = np.zeros(groups.max(initial=-1) + 1, dtype=np.int64)
    latest_first = np.lexsort((-np.arange(len(values)), -values))
    found[groups[latest_first]] = latest_first
    return found


ONCE = "sweep"  # Basis of a time that rests on one row


def _differing(rows: pd.DataFrame, groups: np.ndarray, usual: np.ndarray, spec: Spec) -> np.ndarray:
    """Tunables in which each row differs from the usual choice of its group, or from the baseline
    where that has no row: int64, shape (rows,)."""
    place = np.full(groups.max(initial=-1) + 1, -1)
    place[groups[usual]] = np.flatnonzero(usual)
    at, default = place[groups], baseline(spec)
    found = np.zeros(len(rows), dtype=np.int64)
    for name in spec.tunable_columns:
        values = rows[name].to_numpy(dtype=object)
        found += values != np.where(at < 0, default[name], values[at])
    return found


def _shared_bytes(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Dynamic shared memory of each row as the spec states it, bytes, shape (rows,); 0 where it
    does not, or ``rows`` have no problem."""
    found = np.zeros(len(rows))
    stated = {name: one.shared_bytes for name, one in spec.variants.items() if one.shared_bytes}
    if not stated or not {*spec.problem_columns} <= {*rows.columns}:
        return found
    names = (*spec.problem_columns, *spec.tunable_columns)
    known = {name: rows[name].to_numpy() for name in names}
    arrays = {
        name: one if one.dtype.kind in "iuf" else one.astype(object) for name, one in known.items()
    }
    columns = Columns(spec.derived, arrays)
    for variant, text in stated.items():
        own = (known["variant"] == variant).astype(bool)
        if own.any():
            found[own] = columns.value(str(text))[own]
    return found


def least_by(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Least value of each group: float64, shape (groups,). ``groups``, ``values``: int64 from 0,
    and float64 without NaN, of the same shape."""
    least = np.full(groups.max(initial=-1) + 1, np.inf)
    np.minimum.at(least, groups, values)
    return least


def selected(rows: pd.DataFrame, selection: Mapping[str, Collection[Any]]) -> np.ndarray:
    """Whether each row has one of the values that a selection lists, in each of its columns.
    Returns bool, shape (rows,)."""
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


def of_repeats(times_ms: Sequence[Sequence[float]]) -> dict[str, np.ndarray]:
    """Number, robust spread, relative error of the median and outliers of each row's repeats.
    Returns column to its values, shape (rows,); NaN where there are too few repeats. Outliers lie
    outside the Tukey filter (1.5 interquartile ranges); none is removed."""
    counts = np.array([len(times) for times in times_ms], dtype=np.int64)
    spread, error = np.full((2, len(counts)), math.nan)
    outliers = np.zeros(len(counts), dtype=np.int64)
    for count in np.unique(counts[counts > 1]):
        places = np.flatnonzero(counts == count)
        times = np.array([times_ms[int(place)] for place in places], dtype=float)
        spread[places], error[places] = robust_spread(times), median_error(times)
        if count >= MIN_SAMPLE_SIZE:
            low, high = fences_of_rows(times)
            outliers[places] = ((times < low[:, None]) | (times > high[:, None])).sum(axis=1)
    return {
        "repeats": counts,
        "spread_ms": spread,
        "relative_error": error,
        "outlier_repeats": outliers,
    }


def of_formulas(
    table: pd.DataFrame, spec: Spec, least_work: float = -math.inf
) -> dict[str, np.ndarray]:
    """Every metric that has a formula: column to its values, shape (rows,).

    Bytes and FLOP are the problem's own (``work`` in the spec), so a configuration that moves more
    bytes than it must shows a lower bandwidth.

    ``least_work``: bytes or FLOP of a problem that stand for unknown ones if they are no more.
    """

    @cache
    def work(*values: Any) -> tuple[float, float]:
        problem = dict(zip(spec.problem_columns, values, strict=True))
        return spec.value(spec.work.bytes, problem), spec.value(spec.work.flop, problem)

    problems = table[spec.problem_columns].itertuples(index=False, name=None)
    amounts = np.array([work(*values) for values in problems], dtype=float).reshape(-1, 2)
    amounts[amounts <= least_work] = math.nan
    known = {str(name): np.asarray(column) for name, column in table.items()}
    known |= {"bytes": amounts[:, 0], "flop": amounts[:, 1]}
    return {each.name: each.formula(known) for each in SWEEP if each.formula is not None}
