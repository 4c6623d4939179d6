"""Published tables that stand beside ours: CSV files that name the source of every figure."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from launchwise.base.errors import UserError

Records = list[dict[str, str]]
"""Rows of a table, column to text."""


FOLDER = "published"
"""Beside ``study.yaml``: one CSV file per table."""


def read_published(study: Path) -> dict[str, Records]:
    """Records of every published table of a study, by the name of its file.

    Parameters
    ----------
    study
        Folder of the study.

    Raises
    ------
    UserError
        When a table cannot be read or has no ``source`` column.
    """
    found = {}
    for path in sorted((study / FOLDER).glob("*.csv")):
        try:
            with open(path, newline="", encoding="utf-8") as handle:
                records = list(csv.DictReader(handle))
        except OSError as error:
            raise UserError(path, "", f"cannot be read: {error.strerror}") from error
        if not records or "source" not in records[0]:
            raise UserError(path, "source", "is missing: published figures name their source")
        found[path.stem] = records
    return found


def facts_of(published: Mapping[str, Records]) -> dict[str, str]:
    """The single figures of a paper, by name: its table ``facts``; none where there is no such."""
    return {record["fact"]: record["value"] for record in published.get("facts", [])}
