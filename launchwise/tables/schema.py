"""Schemas of tables: the type of each column, and what its values must be.

A demand is asked of a whole column at once, so that a table of 20 000 rows is checked within some
milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.tables.rows import row_numbers
from launchwise.workloads.metrics import COUNTERS, SWEEP

UNITS = {
    **{each.name: each.unit for each in (*SWEEP, *COUNTERS) if each.unit},
    **dict.fromkeys(("sweep_ms", "time_low_ms", "time_high_ms"), "ms"),
    **dict.fromkeys(("predicted_ms", "best_ms", "baseline_ms"), "ms"),
    "clocks_mhz": "MHz",
}
"""Column to the unit of its values."""


@dataclass(frozen=True)
class Demand:
    """What values must be."""

    # Such as ``must be finite``.
    words: str
    # Whether each value of a column (a Series without missing values), or each row of a table, is
    # as it must be: bool, shape (rows,).
    holds: Callable[[Any], Any]
    # Column that messages name, of a demand on rows.
    column: str = ""


def above(least: float) -> Demand:
    """Numbers above ``least``."""
    return Demand(f"must be above {least}", lambda values: values > least)


def at_least(least: float) -> Demand:
    """Numbers from ``least`` on."""
    return Demand(f"must be at least {least}", lambda values: values >= least)


def at_most(most: float) -> Demand:
    """Numbers up to ``most``."""
    return Demand(f"must be at most {most}", lambda values: values <= most)


def one_of(allowed: Sequence[Any]) -> Demand:
    """Some of these values."""
    return Demand(f"must be one of {allowed}", lambda values: values.isin(allowed))


def equal_to(value: Any) -> Demand:
    """This value alone."""
    return Demand(f"must be {value!r}", lambda values: values == value)


FINITE = Demand("must be finite", np.isfinite)


def of_lists(words: str, fits: Callable[[np.ndarray], np.ndarray]) -> Demand:
    """Lists of numbers that all fit."""

    def holds(lists: pd.Series) -> np.ndarray:
        found = np.ones(len(lists), dtype=bool)
        try:
            counts = np.fromiter(map(len, lists), np.int64, len(lists))
            numbers = np.concatenate([np.empty(0), *lists]).astype(float)
        except (TypeError, ValueError):
            return ~found
        found[np.repeat(np.arange(len(lists)), counts)[~fits(numbers)]] = False
        return found

    return Demand(words, holds)


TIMES = of_lists(
    "must hold positive, finite numbers", lambda numbers: np.isfinite(numbers) & (numbers > 0)
)
CLOCKS = of_lists("must hold clocks", lambda numbers: np.isfinite(numbers) & (numbers >= 0))


@dataclass(frozen=True)
class Column:
    """A column: ``str``, ``int64``, ``float64``, ``bool``, or ``object`` for lists of numbers."""

    kind: str
    demands: Sequence[Demand] = ()
    # Whether NaN stands for a missing value.
    nullable: bool = False
    # What a table means that is older than the column, and lacks it: ``neutral`` in every row, and
    # no row of the ``variants`` that have the tunable, or a schema version below ``since``.
    older: Mapping[str, Any] = field(default_factory=dict)

    def complaint(self, values: pd.Series) -> str:
        """What is wrong with the values of this column, and where it is; '' if nothing."""
        if not self._is_of_kind(values):
            kinds = ("text" if "str" in kind else kind for kind in (self.kind, str(values.dtype)))
            return "must be of type {}, not {}".format(*kinds)
        empty = values.isna().to_numpy()
        if not self.nullable and empty.any():
            return in_rows("must not be empty", ~empty, values)
        known = values[~empty] if empty.any() else values
        for demand in self.demands:
            fits = np.asarray(demand.holds(known), dtype=bool)
            if not fits.all():
                holds = np.ones(len(values), dtype=bool)
                holds[~empty] = fits
                return in_rows(demand.words, holds, values)
        return ""

    def _is_of_kind(self, values: pd.Series) -> bool:
        if self.kind != "str":
            return str(values.dtype) == self.kind
        if values.dtype == object:
            return pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty")
        return isinstance(values.dtype, pd.StringDtype)


def in_rows(words: str, holds: np.ndarray, values: pd.Series) -> str:
    """A demand with the number of rows that leave it, and the first of them with its value."""
    rows = np.flatnonzero(~holds)
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    example = values.iloc[rows[0]]
    told = "" if isinstance(example, np.ndarray | list) else f" ({example})"
    return f"{words}; violated in {count}, first in row {rows[0]}{told}"


@dataclass(frozen=True)
class Schema:
    """What a kind of table holds."""

    # As messages and the file's metadata have it.
    name: str
    columns: dict[str, Column]
    # Columns whose values no two rows share.
    unique: Sequence[str] = ()
    # Demands on rows.
    demands: Sequence[Demand] = ()

    def empty(self) -> pd.DataFrame:
        """A table without rows."""
        return pd.DataFrame({n: pd.Series(dtype=one.kind) for n, one in self.columns.items()})

    def insist(self, where: str | Path, table: pd.DataFrame) -> None:
        """Check a whole table.

        Raises
        ------
        UserError
            One line: ``where``, the column, what it must be, and the first row that is not.
        """
        present = list(map(str, table.columns))
        for name in self.columns:
            if name not in present:
                raise UserError(where, name, f"is missing{_twin(name, present)}")
        if strange := [name for name in present if name not in self.columns]:
            raise UserError(where, strange[0], unknown("column", strange[0], self.columns))
        for name, column in self.columns.items():
            if said := column.complaint(table[name]):
                raise UserError(where, name, said)
        if len(table) and self.unique:
            repeated = len(table) - 1 - int(row_numbers(table, self.unique).max())
            if repeated:
                keys = ", ".join(self.unique)
                raise UserError(
                    where, "", f"{repeated} duplicated rows (rows with the same {keys})"
                )
        for demand in self.demands:
            holds = np.asarray(demand.holds(table), dtype=bool)
            if not holds.all():
                said = in_rows(demand.words, holds, table[demand.column])
                raise UserError(where, demand.column, said)


def _twin(column: str, present: Sequence[str]) -> str:
    """Hint at a column that may be this one in another unit."""
    stem, _, unit = column.rpartition("_")
    twins = [name for name in present if stem and name.rpartition("_")[0] == stem]
    return f"; {twins[0]} is not in {unit}" if column in UNITS and twins else ""
