"""The page of the recursion study, on times from a known law."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernels.tridiagonal.studies.tridiagonal_recursion.section import cases, fixed_size_losses
from kernels.tridiagonal.studies.tridiagonal_recursion.section import sections as own
from launchwise.report import wording
from launchwise.report.blocks import Bullets, Figure, Fold, Table
from launchwise.report.page import render
from launchwise.report.published import read_published
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import TRIDIAGONAL, tridiagonal_study

ROOT = Path(__file__).resolve().parents[3]
SIZES = [10**5, 10**6, 2 * 10**6, 5 * 10**6, 10**7, 10**8]
GAIN = {0: 1.0, 1: 1.1, 2: 1.25}
"""Speed-up of each depth from 5e6 rows on; below, each recursion costs 10 %."""


def sweep() -> pd.DataFrame:
    """m1 = 10 is best at every size but the largest, where 5 is 4 % faster."""
    spec = load_spec(TRIDIAGONAL)
    rows = []
    for n, m1, m2 in itertools.product(SIZES, (0, 5, 10), (0, 10)):
        if m2 and not m1:
            continue
        depth = bool(m1) + bool(m2)
        time = 1e-6 * n / (GAIN[depth] if n >= 5 * 10**6 else 0.9**depth)
        best = 5 if n == 10**8 else 10
        time *= 1.04 if m1 and m1 != best else 1.0
        problem = {"n": n, "dtype": "float64", "memory": "pinned", "batch": 1}
        chosen = {**baseline(spec), "m": 32, "m1": m1, "m2": m2}
        rows.append({**problem, **chosen, "time_ms": time, "status": "ok"})
    return pd.DataFrame(rows).assign(gpu="one", workload="tridiagonal", reason="")


@pytest.fixture(scope="module")
def made() -> StudyData:
    """The study of one GPU."""
    return tridiagonal_study("tridiagonal_recursion", "Depth", SIZES, {"one": sweep()})


@pytest.fixture(scope="module")
def published() -> dict[str, list[dict[str, str]]]:
    """The paper's figures."""
    return read_published(ROOT / "kernels" / "tridiagonal" / "studies" / "tridiagonal_recursion")


def test_recursion_is_held_against_none(made: StudyData) -> None:
    (case,) = cases(made)
    gain = case.speed_up()
    assert list(gain.columns) == [0, 1, 2]
    assert np.allclose(gain.loc[10**8], [1, 1.1, 1.25])
    assert np.allclose(gain.loc[10**5], [1, 0.9, 0.81])


def test_a_fixed_size_costs_what_it_loses_where_another_is_better(made: StudyData) -> None:
    (case,) = cases(made)
    losses = fixed_size_losses(case, "m1").set_index("value")
    assert losses.index.tolist() == [5, 10]
    assert losses["problems"].tolist() == [6, 6]
    assert np.allclose(losses["worst_loss_percent"], [4, 4])
    assert np.isclose(losses.loc[10, "loss_percent"], 100 * (1.04 ** (1 / 6) - 1))


def test_the_sections_say_where_it_pays(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    worth, rules = own(made, published)
    lead = next(block for block in worth.blocks if isinstance(block, Bullets))
    said = dict(lead.items)
    pays = wording.listed([wording.count(n) for n in SIZES[3:]])
    expected = f"recursion gains more than 1 % at n = {pays}; the best speed-up is 1.25 times."
    assert said["one, float64, pinned, batch=1:"] == expected
    assert said["Published:"] == "1.17 times at most, with up to 3 recursions."
    drawn = next(block for block in worth.blocks if isinstance(block, Figure))
    assert [trace["name"] for trace in drawn.panels[0].data] == ["1 recursion", "2 recursions"]
    (fold,) = [block for block in worth.blocks if isinstance(block, Fold)]
    optima = fold.blocks[0]
    assert isinstance(optima, Table)
    texts = [[cell.text for cell in row.cells] for row in optima.rows]
    assert [row[2] for row in texts] == ["0", "0", "0", "2", "2", "2"]
    assert texts[-1][3] == "32, 5, 10"
    learnt = rules.blocks[0]
    assert isinstance(learnt, Table)
    assert [cell.text for cell in learnt.rows[0].cells[-2:]] == ["1.0", "0.5"]
    tables = render("x", "x", [worth, rules], figures=False)
    assert "nan" not in tables.lower()
    assert "fixes m = 10 for the first recursion" in tables


def test_without_recursion_there_is_nothing_to_say(made: StudyData) -> None:
    flat = sweep().query("m1 == 0")
    assert own(dataclasses.replace(made, sweeps={"one": flat}, _known={}), {}) == []
