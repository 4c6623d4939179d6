"""The published tables of every study: whole rows, each with its source."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest
from samples import ROOT

TABLES = sorted((ROOT / "kernels").glob("*/studies/*/published/*.csv"))
FACTS = [path for path in TABLES if path.name == "facts.csv"]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: f"{path.parents[1].name}.{path.stem}")
def test_every_row_is_whole_and_names_its_source(path: Path) -> None:
    with open(path, newline="", encoding="utf-8") as handle:
        header, *rows = csv.reader(handle)
    assert header[-1] == "source"
    assert rows
    assert all(len(row) == len(header) for row in rows)
    # Authors, title, and where in it.
    assert all(": " in row[-1] and ", " in row[-1].partition(": ")[2] for row in rows)
    assert all(cell == cell.strip() for row in rows for cell in row)


@pytest.mark.parametrize("path", FACTS, ids=lambda path: path.parents[1].name)
def test_no_fact_is_given_twice(path: Path) -> None:
    rows = pd.read_csv(path, dtype=str)
    assert rows["fact"].is_unique
    assert rows["value"].notna().all()
