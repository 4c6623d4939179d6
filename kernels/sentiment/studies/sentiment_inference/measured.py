"""Rows of a sweep as the sections of this study read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from launchwise.base.robust import EQUAL
from launchwise.report import wording
from launchwise.report.blocks import MISSING
from launchwise.report.numbers import STOPPED_EARLY, of_one_launch, records
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import fastest_rows, selected
from launchwise.tables.times import PAIRS
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

TOKENS = 256  # tokens of the published reviews

GIVEN = {"embeddings": "float32 embeddings", "tokens": "word numbers"}
"""Form of the input, in words."""

ERRORS = ("max_error", "tolerance", "class_flips")  # Columns that say how exact a row is

Row = Mapping[str, object]  # a measurement, column to value


@dataclass(frozen=True)
class Measured:
    """Rows of one GPU's sweep, including variants that are not candidates of the study."""

    gpu: str
    spec: Spec
    rows: pd.DataFrame  # rows with a time
    every: pd.DataFrame  # all rows
    exact: frozenset[str]  # variants that answer as float32 does: the study's candidates

    def of(self, **named: object) -> pd.DataFrame:
        """Rows with these values; a tuple lists several."""
        listed = {
            name: value if isinstance(value, tuple) else (value,) for name, value in named.items()
        }
        return self.rows[selected(self.rows, listed)]

    def fastest(self, **named: object) -> dict[str, Row]:
        """Variant to its fastest row with these values (see :meth:`fastest_by`)."""
        return self.fastest_by("variant", **named)

    def fastest_by(self, by: str, /, **named: object) -> dict[str, Row]:
        """Value of the column ``by`` to the row of least time with these values, whether or not
        others tie with it: of those an answer names the simplest. A row of one launch
        (:func:`is_once`) where there is no other, or none as fast within
        :data:`launchwise.base.robust.EQUAL`: what the value takes is not known then."""
        rows = self.of(**named).drop(columns="error", errors="ignore")
        repeated = fastest_rows(rows[~of_one_launch(rows)], [by], self.spec)
        found = {str(row[by]): row for row in records(repeated)}
        found |= {str(row[by]): row for row in records(self._once_of(rows, by))}
        return dict(sorted(found.items(), key=lambda entry: time_of(entry[1])))

    def _once_of(self, rows: pd.DataFrame, key: str) -> pd.DataFrame:
        once = of_one_launch(rows)
        first = fastest_rows(rows[once], [key], self.spec)
        known = rows[~once].groupby(key)["time_ms"].min().rename("_known")
        limit = first[[key]].join(known, on=key)["_known"]
        return first[~(first["time_ms"] * (1 + EQUAL) >= limit)]


def measured(study: StudyData) -> list[Measured]:
    exact = frozenset(study.rows["variant"].unique())
    read = [*study.spec.key_columns, "status", "time_ms", "basis", *ERRORS]
    return [
        Measured(gpu, study.spec, rows[rows["status"].isin(MEASURED)], rows, exact)
        for gpu in study.whole
        for rows in [study.swept[gpu].filter(items=read)]
    ]


def time_of(row: Row) -> float:
    return float(str(row["time_ms"]))


def is_once(row: Row) -> bool:
    """Whether a row's time is that of one launch: it gives no speed-up and no rate."""
    return row["status"] == STOPPED_EARLY and row.get("basis") != PAIRS


def scientific(value: object) -> str:
    """A small number by its power of ten."""
    return MISSING if wording.is_missing(value) else f"{float(str(value)):.1e}"


def first_of(found: Iterable[Row | None]) -> Row | None:
    """The first row that is not of one launch."""
    return next((row for row in found if row is not None and not is_once(row)), None)
