"""The section of what the whole gains over its parts, of pairs that are known."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from launchwise.experiment.study import Design
from launchwise.report.answer import in_pairs
from launchwise.report.blocks import Fold, Table
from launchwise.report.study import StudyData
from tests.support.report_study import study

OTHERS = {"others": Design(title="narrow blocks alone", candidates={"bx": [32]})}


def paired(roles: list[str], sweep_ms: list[float], **columns: Any) -> StudyData:
    """The tiny study with pairs on the card: the baseline, NARROW and WIDE of two sizes."""
    made = study()
    rows = made.sweeps["big"].iloc[:6].reset_index(drop=True)
    rounds = np.arange(20)
    # NARROW takes 1.5 times as long as WIDE in every round, whatever the round's clock.
    slow = [3.0, 1.5, 1.0] * 2
    times = [factor * (1 + 0.1 * (rounds % 3)) for factor in slow]
    rows = rows.assign(
        roles=roles * 2,
        sweep_ms=sweep_ms * 2,
        rounds=20,
        times_ms=times,
        clocks_mhz=[np.full(20, 1980.0)] * 6,
        **columns,
    )
    settings = made.settings.model_copy(update={"designs": OTHERS})
    return dataclasses.replace(made, settings=settings, pairs={"big": rows}, _known={})


def cells_of(data: StudyData) -> tuple[list[list[str]], list[list[str]]]:
    """Cells of the table and of the fold's table."""
    found = in_pairs.gains_over_parts(data)
    assert found is not None
    (table,) = (block for block in found.blocks if isinstance(block, Table))
    (fold,) = (block for block in found.blocks if isinstance(block, Fold))
    (every,) = fold.blocks
    assert isinstance(every, Table)
    return _texts(table), _texts(every)


def _texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row.cells] for row in table.rows]


def test_the_gain_is_that_of_the_same_rounds() -> None:
    rows, every = cells_of(paired(["baseline+usual", "design", "best"], [3.0, 1.6, 1.0]))
    assert rows == [["big", "narrow blocks alone", "2", "1.500", "1.500", "1.500", "2", "0"]]
    assert [row[1] for row in every] == ["narrow blocks alone"] * 2
    assert all(row[4] == "1.500" for row in every)


def test_a_design_that_holds_the_fastest_gains_nothing() -> None:
    rows, _ = cells_of(paired(["baseline+usual", "best+design", "near"], [3.0, 0.9, 1.0]))
    assert rows == [["big", "narrow blocks alone", "2", "1.000", "1.000", "1.000", "0", "2"]]


def test_rounds_on_a_hindered_card_give_no_gain() -> None:
    throttle = ["", "sw_thermal", ""] * 2
    roles = ["baseline+usual", "design", "best"]
    rows, _ = cells_of(paired(roles, [3.0, 1.6, 1.0], throttle=throttle))
    assert rows == [["big", "narrow blocks alone", "0", "–", "–", "–", "0", "0"]]


@pytest.mark.parametrize("settings", [{}, {"other": Design(title="x", candidates={"bx": [7]})}])
def test_without_a_design_or_its_rows_there_is_no_section(settings: dict[str, Design]) -> None:
    data = paired(["baseline+usual", "design", "best"], [3.0, 1.6, 1.0])
    none = data.settings.model_copy(update={"designs": settings})
    assert in_pairs.gains_over_parts(dataclasses.replace(data, settings=none, _known={})) is None
