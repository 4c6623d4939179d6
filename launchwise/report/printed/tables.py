"""A table of the report as CSV and Parquet."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from launchwise.base.literals import csv_table
from launchwise.base.storage import whole_file, write_text
from launchwise.report.blocks import MISSING, Column, Table

NUMBER = re.compile(r"-?[\d\s]*\d(\.\d+)?(e[-+]?\d+)?")
"""A number as the report writes it; thin spaces may part its digits."""

FORMATS = ("csv", "parquet")


def frame(table: Table) -> pd.DataFrame:
    """The table's cells; a column of numbers has numbers where all of its cells are some.

    Second lines of cells stand in a column of their own.
    """
    names = _unique([_title(column) for column in table.columns])
    found: dict[str, list[str] | list[float]] = {}
    for place, (name, column) in enumerate(zip(names, table.columns, strict=True)):
        cells = [row.cells[place] for row in table.rows]
        texts = [cell.text for cell in cells]
        found[name] = _values(texts) if column.number else texts
        if any(cell.detail for cell in cells):
            found[f"{name}, detail"] = [cell.detail for cell in cells]
    return pd.DataFrame(found)


def save(table: Table, stem: Path, citation: str) -> list[Path]:
    """Write a table in every format of :data:`FORMATS`; Parquet holds caption and citation too.

    Returns
    -------
    list of pathlib.Path
        The files.
    """
    rows = frame(table)
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS]
    write_text(paths[0], csv_table(rows).to_csv(index=False))
    made = pa.Table.from_pandas(rows, preserve_index=False)
    said = {b"caption": table.caption.encode(), b"citation": citation.encode()}
    made = made.replace_schema_metadata({**(made.schema.metadata or {}), **said})
    with whole_file(paths[1]) as scratch:
        pq.write_table(made, scratch)
    return paths


def _title(column: Column) -> str:
    words = [word for word in (column.group, column.title) if word]
    unit = f" ({column.unit})" if column.unit else ""
    return ": ".join(words) + unit


def _unique(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return found


def _values(texts: list[str]) -> list[str] | list[float]:
    missing = {"", MISSING}
    known = [text for text in texts if text not in missing]
    if not known or not all(NUMBER.fullmatch(text) for text in known):
        return texts
    return [math.nan if text in missing else _number(text) for text in texts]


def _number(text: str) -> float:
    return float(re.sub(r"\s", "", text))
