"""Schemas of tables: the type of each column, and what its values must be.

A demand is asked of a whole column at once, so that a table of 20 000 rows is checked within some
milliseconds. Below: columns that several tables share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.tables.rows import OF_ROUNDS, row_numbers
from launchwise.workloads.metrics import COUNTERS, OLDEST, SWEEP, TIMED, Metric
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

UNITS = {
    **{each.name: each.unit for each in (*SWEEP, *COUNTERS) if each.unit},
    **dict.fromkeys(("sweep_ms", "time_low_ms", "time_high_ms", *OF_ROUNDS), "ms"),
    **dict.fromkeys(("predicted_ms", "best_ms", "baseline_ms"), "ms"),
    "clocks_mhz": "MHz",
}
"""Column to the unit of its values."""


@dataclass(frozen=True)
class Demand:
    """What values must be."""

    words: str  # such as `must be finite`
    # Whether each value of a column (a Series without missing values), or each row of a table, is
    # as it must be: bool, shape (rows,).
    holds: Callable[[Any], Any]
    column: str = ""  # column that messages name, of a demand on rows


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
    nullable: bool = False  # whether NaN stands for a missing value
    # What a table means that is older than the column, and lacks it: ``neutral`` in every row, and
    # no row of the ``variants`` that have the tunable, or a schema version below ``since``.
    older: Mapping[str, Any] = field(default_factory=dict)

    def complaint(self, values: pd.Series) -> str:
        """What is wrong with the values of this column, and where it is; '' if nothing."""
        if not self._is_of_kind(values):
            found = str(values.dtype)
            kinds = ("text" if kind[:3] in ("str", "cat") else kind for kind in (self.kind, found))
            return "must be of type {}, not {}".format(*kinds)
        empty = values.isna().to_numpy()
        if not self.nullable and empty.any():
            return in_rows("must not be empty", ~empty, values)
        known = values[~empty] if empty.any() else values
        coded = known.cat if isinstance(values.dtype, pd.CategoricalDtype) else None
        # What is asked of texts is asked of each of them once.
        asked = known if coded is None else coded.categories.to_series()
        for demand in self.demands:
            fits = np.asarray(demand.holds(asked), dtype=bool)
            if coded is not None:
                fits = fits[coded.codes]
            if not fits.all():
                holds = np.ones(len(values), dtype=bool)
                holds[~empty] = fits
                return in_rows(demand.words, holds, values)
        return ""

    def _is_of_kind(self, values: pd.Series) -> bool:
        if self.kind != "str":
            return str(values.dtype) == self.kind
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.dtype.categories.to_series()
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

    name: str  # as messages and the file's metadata have it
    columns: dict[str, Column]
    unique: Sequence[str] = ()  # columns whose values no two rows share
    demands: Sequence[Demand] = ()  # demands on rows

    def empty(self) -> pd.DataFrame:
        """A table without rows."""
        return pd.DataFrame({n: pd.Series(dtype=one.kind) for n, one in self.columns.items()})

    def insist(self, where: str | Path, table: pd.DataFrame) -> None:
        """Check a whole table. Raises UserError, one line: ``where``, the column, what it must be,
        and the first row that is not."""
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


def text_column(*demands: Demand, **options: Any) -> Column:
    return Column("str", demands, **options)


def real_column(*demands: Demand, **options: Any) -> Column:
    # NaN marks a missing value; infinity is an error.
    return Column("float64", (*demands, FINITE), **options)


POSITIVE = above(0)


def ratio_columns(names: Iterable[str]) -> dict[str, Column]:
    """Columns of ratios, each with the limits of its 95 % interval; empty where unknown."""
    column = Column("float64", [POSITIVE], nullable=True)
    return {f"{name}{end}": column for name in names for end in ("", "_low", "_high")}


def whole_column(minimum: int = 0, **options: Any) -> Column:
    """Column of whole numbers of at least ``minimum``."""
    return Column("int64", [at_least(minimum)], **options)


def value_column(values: Sequence[Value], **options: Any) -> Column:
    """Column that holds some of ``values``: texts if one of them is, else whole numbers."""
    kind = "str" if any(isinstance(value, str) for value in values) else "int64"
    return Column(kind, [one_of(values)], **options)


def problem_schema(spec: Spec) -> dict[str, Column]:
    columns = {}
    for name, parameter in spec.problem.items():
        if parameter.values is not None:
            columns[name] = value_column(parameter.values)
        else:
            columns[name] = Column("int64", _bounds(parameter.minimum, parameter.maximum))
    return columns


def _bounds(least: float | None, most: float | None) -> list[Demand]:
    demands = [] if least is None else [at_least(least)]
    return demands if most is None else [*demands, at_most(most)]


def configuration_schema(spec: Spec) -> dict[str, Column]:
    """Columns that name a configuration of ``spec``. A table without the column is older than the
    tunable (see :attr:`.Column.older`)."""
    tunables = {
        name: value_column(
            list(dict.fromkeys([tunable.neutral, *tunable.values])),
            older={
                "neutral": tunable.neutral,
                "variants": [each for each, one in spec.variants.items() if name in one.tunables],
            },
        )
        for name, tunable in spec.tunables.items()
    }
    return {"variant": value_column(list(spec.variants)), **tunables}


def key_schema(spec: Spec) -> dict[str, Column]:
    """Columns that name a row: GPU, problem, configuration."""
    return {"gpu": text_column(), **problem_schema(spec), **configuration_schema(spec)}


TIMED_ROWS = Demand(
    "must be given exactly where status is ok, slow or unverified",
    lambda table: table["time_ms"].notna() == table["status"].isin(TIMED),
    "time_ms",
)
"""Rows have a time exactly where their status says so."""


def stage_schema(spec: Spec) -> dict[str, Column]:
    """Columns with the time of each stage of ``spec``, ms; none where it has no stages."""
    return {name: real_column(at_least(0), nullable=True) for name in spec.stage_columns}


def finding_schema(spec: Spec) -> dict[str, Column]:
    """Columns of check results beside the largest error."""
    return {name: real_column(nullable=True) for name in spec.findings}


def metric_columns(metrics: Iterable[Metric]) -> dict[str, Column]:
    """Columns of metrics; tables of a schema version below ``since`` lack a newer one."""
    return {each.name: _metric_column(each) for each in metrics}


def _metric_column(metric: Metric) -> Column:
    older = {"neutral": metric.absent, "since": metric.since} if metric.since > OLDEST else {}
    if metric.kind == "times":
        return Column("object", [TIMES], older=older)
    if metric.kind == "text":
        return text_column(*([one_of(metric.one_of)] if metric.one_of else []), older=older)
    if metric.kind == "whole":
        return whole_column(int(metric.least or 0), older=older)
    demands = [] if metric.above is None else [above(metric.above)]
    demands += _bounds(metric.least, metric.most)
    return real_column(*demands, nullable=True, older=older)
