"""What one fixed configuration costs, against values computed by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from launchwise.report.answer import fixed_choice
from launchwise.report.blocks import Figure, Fold, Text
from tests.support.report_study import study


def test_the_cost_is_the_time_of_the_fixed_one_beside_the_best() -> None:
    found = fixed_choice.costs(study(), "big").set_index("n")
    # NARROW takes 1 of 1 ms and 5 of 4 ms: a geometric mean of .894, WIDE .79.
    assert found.loc[102, "percent"] == pytest.approx(0)
    assert found.loc[202, "percent"] == pytest.approx(25)
    assert found.loc[202, "configuration"] == "block3d 64×2×1 row_padding=0"


def parts(made: Any) -> tuple[list[str], Figure, list[str]]:
    section = fixed_choice.section(made)
    assert section is not None
    texts = [block.text for block in section.blocks if isinstance(block, Text)]
    figure = next(block for block in section.blocks if isinstance(block, Figure))
    return texts, figure, [block.title for block in section.blocks if isinstance(block, Fold)]


def test_the_map_shows_every_problem_and_names_the_fastest() -> None:
    texts, figure, folds = parts(study())
    assert texts == [
        "big: block3d 32×4×1 row_padding=0 at every problem costs 11.8 % of time in the mean "
        "(geometric) over 2 problems, 25.0 % at most. It was chosen with the times of all "
        "these problems known."
    ]
    assert folds == ["big.sm4: cost of one choice"]
    (trace,) = figure.panels[0].data
    assert (trace["x"], trace["y"]) == (["102", "202"], ["float32, order=2"])
    assert trace["z"] == [[pytest.approx(0), pytest.approx(25)]]
    assert trace["customdata"][0][1] == "block3d 64×2×1 row_padding=0"


def test_a_problem_that_cannot_run_it_is_empty_and_counted() -> None:
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    # WIDE runs one problem alone; NARROW and the baseline fail on the larger one.
    gone = (rows["n"] == 202) & (rows["bx"] != 64)
    rows = rows.assign(status=rows["status"].mask(gone, "failed"))
    texts, figure, _ = parts(dataclasses.replace(made, sweeps={"big": rows}, _known={}))
    assert "over 2 problems" in texts[0]
    gone = (rows["n"] == 202) & (rows["bx"] == 64)
    less = rows[~gone & (rows["n"] == 102) | gone]
    less = less[~((less["n"] == 102) & (less["bx"] == 64))]
    texts, figure, _ = parts(dataclasses.replace(made, sweeps={"big": less}, _known={}))
    assert "over 1 problem, " in texts[0]
    assert "1 problem cannot run it" in texts[0]
    assert figure.panels[0].data[0]["z"] == [[pytest.approx(0), None]]


def test_one_problem_needs_no_map() -> None:
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    one = dataclasses.replace(made, sweeps={"big": rows[rows["n"] == 102]}, _known={})
    assert fixed_choice.section(one) is None
