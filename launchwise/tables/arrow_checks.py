"""Checks of a table as Arrow holds it, column by column instead of value by value.

pandera needs a third of a second for a sweep of 20 000 rows: its checks convert every column, and
run row by row where cells are lists. Here each column is reduced first, to its least and largest
value or to its distinct values. What does not pass is left to pandera, which also finds the rows
and words the message; so this module may refuse what fits, and must not pass what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow
import pyarrow.compute as pc

from launchwise.tables.rows import mixed_radix

TEXT = "string[pyarrow]"
"""Type of a column of texts, as a schema names it."""


def is_text(kind: pyarrow.DataType) -> bool:
    """Whether a column holds texts; dictionary-encoded ones count, too."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def surely_fits(table: pyarrow.Table, schema: pa.DataFrameSchema) -> bool:
    """Whether every check of a schema passes; False also where that is not known here.

    Parameters
    ----------
    table
        Texts may be dictionary-encoded: they are then checked a hundred times as fast.
    """
    if sorted(table.column_names) != sorted(schema.columns):
        return False
    if not all(_column_fits(table[name], column) for name, column in schema.columns.items()):
        return False
    # No row violates anything.
    return not len(table) or (
        _is_unique(table, schema.unique or [])
        and all(_table_fits(table, check) for check in schema.checks)
    )


def _column_fits(values: pyarrow.ChunkedArray, column: pa.Column) -> bool:
    kind, checks = str(column.dtype), column.checks
    if values.null_count and not (column.nullable and kind == "float64"):
        return False
    if kind == TEXT and is_text(values.type):
        return not checks or _texts_fit(set(values.unique().to_pylist()), checks)
    if kind == "int64" and values.type == pyarrow.int64():
        return _integers_fit(values, checks)
    if kind == "float64" and values.type == pyarrow.float64():
        return _reals_fit(values.to_numpy(), column.nullable, checks)
    if kind == "bool" and pyarrow.types.is_boolean(values.type):
        return not checks
    if kind == "object" and values.type == pyarrow.list_(pyarrow.float64()):
        demands = {check.error for check in checks}
        if demands == {CLOCKS}:
            return _are_clocks(values)
        return demands <= {EVERY_TIME} and _are_times(values)
    return False


def _texts_fit(present: set[str], checks: Collection[pa.Check]) -> bool:
    return all(
        check.name in _OF_VALUES and _OF_VALUES[check.name](present, **(check.statistics or {}))
        for check in checks
    )


def _integers_fit(values: pyarrow.ChunkedArray, checks: Collection[pa.Check]) -> bool:
    if any(check.name in _OF_VALUES for check in checks):
        return _texts_fit(set(values.unique().to_pylist()), checks)
    numbers = values.to_numpy()
    return not len(numbers) or _in_bounds(numbers.min(), numbers.max(), checks)


def _reals_fit(numbers: np.ndarray, nullable: bool, checks: Collection[pa.Check]) -> bool:
    if not len(numbers):
        return True
    # fmin and fmax pass over NaN, which stands for a missing value.
    least, largest = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    if not nullable and np.isnan(numbers).any():
        return False
    return bool(np.isnan(least)) or _in_bounds(least, largest, checks)


def _in_bounds(least: Any, largest: Any, checks: Collection[pa.Check]) -> bool:
    for check in checks:
        if check.error == FINITE:
            holds = np.isfinite(least) and np.isfinite(largest)
        else:
            demand = _OF_BOUNDS.get(str(check.name))
            holds = demand is not None and demand(least, largest, **(check.statistics or {}))
        if not holds:
            return False
    return True


_OF_VALUES: dict[str, Callable[..., bool]] = {
    "isin": lambda present, allowed_values: present <= set(allowed_values),
    "equal_to": lambda present, value: present <= {value},
}
"""pandera's checks of the distinct values of a column."""

_OF_BOUNDS: dict[str, Callable[..., Any]] = {
    "greater_than": lambda least, largest, min_value: least > min_value,
    "greater_than_or_equal_to": lambda least, largest, min_value: least >= min_value,
    "less_than_or_equal_to": lambda least, largest, max_value: largest <= max_value,
    "in_range": lambda least, largest, min_value, max_value, include_min, include_max: (
        include_min and include_max and min_value <= least and largest <= max_value
    ),
}
"""pandera's checks of the least and the largest value of a column."""

# Checks of our own are known by what they demand: another demand is another check.
FINITE = "must be finite"
EVERY_TIME = "must hold positive, finite numbers"
REPEATS = "must be the length of times_ms"
CLOCKS = "must hold clocks"
ONE_PER_TIME = "must have one value per value of times_ms"
ROOFLINE = "must not be below roofline_ms"
WITHIN_LIMITS = "must lie between time_low_ms and time_high_ms"

_READ = {
    "must be given exactly where status is ok, slow or unverified": ["time_ms", "status"],
    "must be unverified (never ok, slow or wrong) exactly where the variant is not verified": [
        "status",
        "variant",
    ],
    "must be given exactly where time_ms is": ["time_ms", "basis"],
}
"""Demands on rows to the columns that they read: of texts the value, of numbers whether there is
one. So one row of each kind is checked."""


def _are_times(lists: pyarrow.ChunkedArray) -> bool:
    times = pc.list_flatten(lists)
    numbers = times.to_numpy()
    return not times.null_count and bool((np.isfinite(numbers) & (numbers > 0)).all())


def _are_clocks(lists: pyarrow.ChunkedArray) -> bool:
    clocks = pc.list_flatten(lists)
    numbers = clocks.to_numpy()
    return not clocks.null_count and bool((np.isfinite(numbers) & (numbers >= 0)).all())


def _table_fits(table: pyarrow.Table, check: pa.Check) -> bool:
    if check.error == REPEATS:
        lengths = pc.list_value_length(table["times_ms"])
        return bool(pc.all(pc.equal(lengths, table["repeats"])).as_py())
    if check.error == ONE_PER_TIME:
        lengths = [pc.list_value_length(table[name]) for name in ("times_ms", "clocks_mhz")]
        return bool(pc.all(pc.equal(*lengths)).as_py())
    if check.error == ROOFLINE:
        times, least = (table[name].to_numpy() for name in (check.name, "roofline_ms"))
        return not (times < least).any()
    if check.error == WITHIN_LIMITS:
        names = ("time_low_ms", "time_ms", "time_high_ms")
        low, times, high = (table[name].to_numpy() for name in names)
        return not ((times < low) | (times > high)).any()
    if check.error in _READ:
        read = table.select(_READ[check.error])
        keys = [one if is_text(one.type) else one.is_null(nan_is_null=True) for one in read.columns]
        first = np.unique(_row_numbers(keys), return_index=True)[1]
        # Called as a check it would first load all that pandera can check: half a second.
        return bool(check._check_fn(plain_texts(read.take(first)).to_pandas()).all())
    return False


def plain_texts(table: pyarrow.Table) -> pyarrow.Table:
    """``table`` with dictionary-encoded texts as texts."""
    for place, field in enumerate(table.schema):
        if pyarrow.types.is_dictionary(field.type):
            plain = table[place].cast(pyarrow.large_string())
            table = table.set_column(place, field.name, plain)
    return table


def _is_unique(table: pyarrow.Table, names: Sequence[str]) -> bool:
    """Whether no two rows have the same values in ``names``, none of them empty."""
    return not names or bool(pd.Index(_row_numbers([table[name] for name in names])).is_unique)


def _row_numbers(columns: Sequence[pyarrow.ChunkedArray]) -> np.ndarray:
    """Numbers that are equal where rows are: int64, shape (rows,)."""
    return mixed_radix(map(_numbered, columns), len(columns[0]))


def _numbered(values: pyarrow.ChunkedArray) -> tuple[np.ndarray, int]:
    """Number of each row's value, int64 of shape (rows,), and how many numbers there are."""
    if not is_text(values.type):
        codes, distinct = pd.factorize(values.to_numpy())
        return codes, len(distinct)
    if not pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    encoded = values.combine_chunks()
    # A foreign file may hold a text twice in its dictionary.
    known = encoded.dictionary.to_pylist()
    places = {text: place for place, text in enumerate(known)}
    first = np.array([places[text] for text in known], dtype=np.int64)
    return first[encoded.indices.to_numpy()], len(known)
