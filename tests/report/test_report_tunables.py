"""What a tunable is worth, against values computed by hand (see tests/support/report_study.py)."""

from __future__ import annotations

import dataclasses
import math

import pandas as pd
import pytest

from launchwise.report.blocks import Fold, Table
from launchwise.report.page import render
from launchwise.report.tunables import fixed_values, tunables
from tests.support.report_study import configurations, study


def losses(gpu: str) -> pd.DataFrame:
    """By tunable and value."""
    found = fixed_values(study())
    return found[found["gpu"] == gpu].set_index(["tunable", "value"])


def test_a_value_loses_what_the_best_with_it_loses() -> None:
    found = losses("big")
    # linear takes 2 and 8 ms where 1 and 4 are possible; the best of block3d is the best of all.
    assert found.loc[("variant", "linear"), "loss_percent"] == pytest.approx(100)
    assert found.loc[("variant", "block3d"), "worst_loss_percent"] == pytest.approx(0)
    # Narrow shapes: 1 of 1 and 5 of 4 ms; wide ones: 1.6 of 1 and 4 of 4 ms.
    assert found.loc[("bx", 32), "loss_percent"] == pytest.approx(100 * (math.sqrt(1.25) - 1))
    assert found.loc[("bx", 32), "worst_loss_percent"] == pytest.approx(25)
    assert found.loc[("bx", 64), "loss_percent"] == pytest.approx(100 * (math.sqrt(1.6) - 1))
    assert found.loc[("by", 2), "worst_loss_percent"] == pytest.approx(60)
    assert (found["problems"] == 2).all()


def test_a_tunable_with_one_value_is_left_out() -> None:
    # linear has no bz, and both shapes of block3d have 1.
    assert set(losses("big").index.get_level_values("tunable")) == {"variant", "bx", "by"}


def test_the_section_names_the_best_and_the_worst_value() -> None:
    section = tunables(study())
    assert section is not None
    first = next(block for block in section.blocks if isinstance(block, Table))
    texts = {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in first.rows}
    assert texts["variant"] == ["block3d", "2", "0.0", "0.0", "linear", "2", "100.0"]
    assert texts["bx"] == ["32", "2", "11.8", "25.0", "64", "2", "26.5"]
    # A slice is folded, and every value of every tunable is there.
    folds = [block.title for block in section.blocks if isinstance(block, Fold)]
    assert folds == ["big: every value of every tunable", "big.sm4: tunables"]
    assert "nan" not in render("x", "x", [section], figures=False).lower()


def test_one_configuration_leaves_nothing_to_say() -> None:
    made = study()
    linear = configurations(made.spec)[0]["variant"]
    alone = {gpu: rows[rows["variant"] == linear] for gpu, rows in made.sweeps.items()}
    assert tunables(dataclasses.replace(made, sweeps=alone, _known={})) is None
