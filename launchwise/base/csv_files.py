"""Reads CSV files whose first line names the columns."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import read_text

MOST_CSV_BYTES = 16 << 20  # Longest CSV file of a project, bytes

Record = dict[str, Any]
"""Column to its text; None for a missing one, and a list at None for fields too many."""


def read_records(path: str | Path) -> tuple[list[str], list[tuple[int, Record]]]:
    """Columns of a CSV file, and its rows with the number of the line where each ends. Raises
    UserError when it cannot be read, is too long or no CSV."""
    text = read_text(path, MOST_CSV_BYTES)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        return list(reader.fieldnames or []), [(reader.line_num, record) for record in reader]
    except csv.Error as error:
        raise UserError(path, "", f"is not CSV: {error}") from error
