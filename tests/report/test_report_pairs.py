"""The section of gains in pairs, of pairs that are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from launchwise.base.paired import FASTER, UNDECIDED
from launchwise.report.answer import in_pairs
from launchwise.report.blocks import Fold, Section, Table
from launchwise.report.study import StudyData
from tests.support.report_study import study

PAIRED: dict[str, list[Any]] = {
    # The baseline and two others of either size; the baseline is usual.
    "roles": ["baseline+usual", "best", "near"] * 2,
    "gain": [1.0, 2.0, 1.5, 1.0, 1.2, 1.25],
    "gain_low": [1.0, 1.99, 1.4, 1.0, 1.1, 0.9],
    "gain_high": [1.0, 2.01, 1.6, 1.0, 1.3, 1.6],
    "rounds": [20, 20, 20, 10, 10, 10],
    "thrown": [0, 3, 0, 0, 0, 6],
}


def paired() -> StudyData:
    """The tiny study with pairs on the card."""
    made = study()
    rows = made.sweeps["big"].iloc[:6].reset_index(drop=True)
    rows = rows.assign(**PAIRED, sweep_ms=rows["time_ms"])
    return dataclasses.replace(
        made, pairs={"big": rows.assign(improvement=rows["gain"])}, _known={}
    )


@pytest.fixture(scope="module")
def section() -> Section:
    """Its section."""
    found = in_pairs.gains_in_pairs(paired())
    assert found is not None
    return found


def test_a_gpu_is_one_row_over_the_fastest_of_its_problems(section: Section) -> None:
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    (row,) = table.rows
    cells = [cell.text for cell in row.cells]
    # The square root of 2 and 1.25; 2 is known to .5 %, 1.25 to 28 %; 9 of 90 pairs are discarded.
    assert cells[:4] == ["big", "2", "1.581", "1.581"]
    assert cells[4:9] == ["1", "0", "1", "50", "10.0"]
    # Sweep: 2 / 1 against 2 in pairs, 8 / 5 against 1.2.
    assert cells[9:] == ["1.167", "1.333"]


def test_every_problem_has_its_fastest_and_the_verdict(section: Section) -> None:
    (fold,) = (block for block in section.blocks if isinstance(block, Fold))
    (table,) = fold.blocks
    assert isinstance(table, Table)
    cells = [[cell.text for cell in row.cells] for row in table.rows]
    assert [row[2:] for row in cells] == [
        ["2.000", "1.990 to 2.010", FASTER, "17", "3"],
        ["1.250", "0.900 to 1.600", UNDECIDED, "4", "6"],
    ]


def test_without_pairs_there_is_no_section() -> None:
    assert in_pairs.gains_in_pairs(study()) is None
