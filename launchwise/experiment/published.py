"""Published tables of a study: CSV files that name the source of every figure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from launchwise.base.csv_files import read_records as read_rows
from launchwise.base.errors import UserError

Records = list[dict[str, str]]
"""Rows of a table, column to text."""

FOLDER = "published"
"""Beside ``study.yaml``: one CSV file per table."""

SOURCE = "source"
"""Column that every table has: where its figures stand."""

MEASURE = re.compile(r".*_(s|ms|us|percent)")
"""Columns whose name ends in a unit: they hold numbers, or nothing where a figure is lost."""


def read_tables(study: Path) -> dict[str, Records]:
    """Rows of every published table of a study, by the name of its file without ``.csv``.

    Raises UserError naming file, row and column (:func:`read_records`).
    """
    paths = sorted((study / FOLDER).glob("*.csv"))
    return {path.stem: read_records(path) for path in paths}


def read_records(path: Path) -> Records:
    """Rows of one published table.

    Raises UserError when the file cannot be read as CSV or has no column ``source``; naming row and
    column, when a row has too few or too many fields or no source, or when a column whose name ends
    in a unit (``time_ms``) holds anything but a number or nothing.
    """
    columns, listed = read_rows(path)
    records = [record for _, record in listed]
    if SOURCE not in columns or not records:
        raise UserError(path, SOURCE, "is missing: published figures name their source")
    measures = [name for name in columns if MEASURE.fullmatch(name)]
    for number, record in enumerate(records, start=2):
        if None in record or None in record.values():
            raise UserError(path, f"row {number}", f"must have {len(columns)} fields")
        if not record[SOURCE].strip():
            raise UserError(path, f"row {number}.{SOURCE}", "is empty: name where the row stands")
        for name in measures:
            if record[name] and not is_number(record[name]):
                unit = name.rpartition("_")[2]
                message = f"must be a number in {unit}, or empty (got {record[name]!r})"
                raise UserError(path, f"row {number}.{name}", message)
    return records


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def facts_of(published: Mapping[str, Records]) -> dict[str, str]:
    """The single figures of a paper, by name: its table ``facts``; none where there is no such."""
    return {record["fact"]: record["value"] for record in published.get("facts", [])}
