"""Rows of a sweep as the sections of this study read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import MISSING
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows, selected
from launchwise.workloads.spec import Spec
from launchwise.workloads.statuses import MEASURED

TOKENS = 256
"""Tokens of the published reviews."""

GIVEN = {"embeddings": "float32 embeddings", "tokens": "word numbers"}
"""Form of the input, in words."""

MEMORY = {"pinned": "page-locked", "pageable": "pageable"}
"""Kinds of host memory, in words."""

Row = Mapping[str, object]
"""A measurement, column to value."""


@dataclass(frozen=True)
class Measured:
    """Rows of one GPU's sweep, including variants that are not candidates of the study.

    Parameters
    ----------
    rows
        Rows with a time.
    every
        All rows.
    exact
        Variants that answer as float32 does: the study's candidates.
    """

    gpu: str
    spec: Spec
    rows: pd.DataFrame
    every: pd.DataFrame
    exact: frozenset[str]

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
        """Value of the column ``by`` to the fastest row with these values.

        Rows that were stopped after one launch count only where there is no other.
        """
        rows = self.of(**named)
        found = self._best(rows[rows["status"] == "ok"], by)
        return {**self._best(rows, by), **found}

    def _best(self, rows: pd.DataFrame, by: str) -> dict[str, Row]:
        return {str(row[by]): row for row in records(fastest_rows(rows, [by], self.spec))}


def measured(study: StudyData) -> list[Measured]:
    """Whole GPUs with their sweeps."""
    found = []
    exact = frozenset(study.rows["variant"].unique())
    for gpu in study.whole:
        rows = study.sweeps[gpu]
        timed = rows[rows["status"].isin(MEASURED)]
        found.append(Measured(gpu, study.spec, timed, rows, exact))
    return found


def time_of(row: Row) -> float:
    """Milliseconds of a row."""
    return float(str(row["time_ms"]))


def scientific(value: object) -> str:
    """A small number by its power of ten."""
    return MISSING if wording.is_missing(value) else f"{float(str(value)):.1e}"


def repeats_of(row: Row) -> str:
    """Number of repeats of a time."""
    if row["status"] == "slow":
        return "1, stopped early"
    return wording.count(row["repeats"])


def bytes_per_review(row: Row) -> float:
    """Bytes of one review's input."""
    tokens = int(str(row["tokens"]))
    return tokens * (2 if row["given"] == "tokens" else 1200)


def transfer_of(row: Row) -> str:
    """Data transferred per run from host memory, and its chunks."""
    if int(str(row["batch"])) == 1:
        how = "one review"
    else:
        chunk = int(str(row["chunk"]))
        how = {0: "all at once", 1: "one by one"}.get(chunk, f"chunks of {wording.count(chunk)}")
    streams = int(str(row["streams"]))
    parts = [
        "embeddings" if row["given"] == "embeddings" else "word numbers",
        MEMORY[str(row["memory"])],
        how,
        *([wording.plural(streams, "stream")] if int(str(row["batch"])) > 1 else []),
        *(["graph"] if row["graph"] else []),
    ]
    return ", ".join(parts)


def first_of(found: Iterable[Row | None]) -> Row | None:
    """The first row; rows with repeats precede rows that were stopped early."""
    rows = [row for row in found if row is not None]
    return next((row for row in rows if row["status"] == "ok"), rows[0] if rows else None)
