"""The page of the sub-system study, on times from a known law."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernels.tridiagonal.studies.tridiagonal_subsystem.section import cases
from kernels.tridiagonal.studies.tridiagonal_subsystem.section import sections as own
from launchwise.report.blocks import Bullets, Figure, Fold, Table
from launchwise.report.page import render
from launchwise.report.published import read_published
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import TRIDIAGONAL, tridiagonal_study

ROOT = Path(__file__).resolve().parents[3]
SIZES = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
CHOICES = [4, 8, 16, 32, 64, 128]
BEST = {"one": [4, 8, 8, 16, 32, 64, 64], "two": [4, 4, 8, 16, 16, 32, 64]}
"""Best m of each size on each GPU; any other loses 10 % for each step away."""


def sweep(gpu: str) -> pd.DataFrame:
    """One GPU's measurements; at 1e5 the second best of the trend is a little faster."""
    spec = load_spec(TRIDIAGONAL)
    rows = []
    for n, best in zip(SIZES, BEST[gpu], strict=True):
        for m in CHOICES:
            steps = abs(np.log2(m / best))
            time = 1e-6 * n * (1 + 0.1 * steps)
            if n == 100_000 and m == 4:
                time *= 0.8
            problem = {"n": n, "dtype": "float64", "memory": "pinned", "batch": 1}
            rows.append({**problem, **baseline(spec), "m": m, "time_ms": time, "status": "ok"})
    return pd.DataFrame(rows).assign(gpu=gpu, workload="tridiagonal", reason="")


@pytest.fixture(scope="module")
def made() -> StudyData:
    """A study of two GPUs."""
    return tridiagonal_study(
        "tridiagonal_subsystem", "Sizes", SIZES, {gpu: sweep(gpu) for gpu in BEST}
    )


@pytest.fixture(scope="module")
def published() -> dict[str, list[dict[str, str]]]:
    """The paper's tables."""
    return read_published(ROOT / "kernels" / "tridiagonal" / "studies" / "tridiagonal_subsystem")


def test_every_gpu_is_a_case_with_its_optima(made: StudyData) -> None:
    one, two = cases(made)
    assert (one.gpu, two.gpu) == ("one", "two")
    assert one.observed["m"].tolist() == [4, 8, 8, 4, 32, 64, 64]
    # At 1e5 the trend takes the second best.
    assert one.corrected["m"].tolist() == BEST["one"]
    assert one.corrected["rank"].tolist() == [1, 1, 1, 2, 1, 1, 1]


def test_the_sections_say_what_the_optima_are(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    optima, heuristic, transfer = own(made, published)
    lead = next(block for block in optima.blocks if isinstance(block, Bullets))
    gpu, said = lead.items[0]
    assert gpu == "one, float64, pinned, batch=1:"
    assert "the best m grows from 4 at the smallest system to 64 at the largest" in said
    # 4, 8 and 64 are best equally often; the smallest of them loses most at the largest size.
    rows = made.measured[(made.measured["gpu"] == "one") & (made.measured["n"] == SIZES[-1])]
    gain = rows.loc[rows["m"] == 4, "time_ms"].min() / rows["time_ms"].min()
    assert f"Against m = 4, which is best most often, the best is up to {gain:.2f}x " in said
    assert lead.items[-1] == ("Published:", "a larger m is up to 1.7x as fast.")
    assert "1 of 7 sizes leave that trend" in said
    trend = [block for block in optima.blocks if isinstance(block, Figure)][1]
    drawn = {trace["name"]: trace for trace in trend.panels[0].data}
    assert drawn["corrected"]["y"] == BEST["one"]
    assert drawn["published, RTX 2080 Ti"]["x"][0] == 200_000
    folds = [block for block in optima.blocks if isinstance(block, Fold)]
    assert len(folds) == 2
    found = heuristic.blocks[0]
    assert isinstance(found, Table)
    assert [cell.text for cell in found.rows[0].cells[-2:]] == ["0.7", "0.4"]
    pairs = transfer.blocks[0]
    assert isinstance(pairs, Table)
    assert [[cell.text for cell in row.cells[:3]] for row in pairs.rows] == [
        ["one", "two", "7"],
        ["two", "one", "7"],
    ]
    # Where the two differ they are one step apart, which is 10 %.
    assert [row.cells[-1].text for row in pairs.rows] == ["10.00", "10.00"]


def test_a_size_with_one_choice_has_no_say(made: StudyData) -> None:
    # As the study of streams measures them: m = 10 alone.
    rows = sweep("one")
    others = rows[rows["m"] == 4].assign(n=lambda table: 2 * table["n"], m=10)
    sweeps = {"one": pd.concat([rows, others], ignore_index=True)}
    (one,) = cases(dataclasses.replace(made, sweeps=sweeps, _known={}))
    assert one.corrected["n"].tolist() == SIZES
    assert one.corrected["m"].tolist() == BEST["one"]


def test_alignment_is_told_where_streams_cut_the_data(made: StudyData) -> None:
    one = sweep("one")
    (optima, *_) = own(made, {})
    assert len([block for block in optima.blocks if isinstance(block, Bullets)]) == 1
    # At 1e6 rows and more there are streams: 256 bytes are 32 rows, and best m are 32, 64 and 64.
    cut = one.assign(streams=1 + 7 * (one["n"] >= 1_000_000))
    study = dataclasses.replace(made, sweeps={"one": cut}, _known={})
    (optima, *_) = own(study, {})
    said = [block for block in optima.blocks if isinstance(block, Bullets)][1].items
    assert len(said) == 1
    assert "(m a multiple of 32) are the fastest at 3 of 3 sizes" in said[0][1]
    # The others, 4, 8 and 16, are one, two and two steps away.
    gain = (1.1 * 1.2 * 1.2) ** (1 / 3)
    assert f"{gain:.3f} times as fast as the best of the others" in said[0][1]


def test_the_page_is_made_of_them(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    sections = own(made, published)
    assert "The best sub-system size" in render("x", "x", sections)
    tables = render("x", "x", sections, figures=False)
    assert "nan" not in tables.lower()


def test_too_few_sizes_have_no_trend(made: StudyData) -> None:
    few = {gpu: rows[rows["n"] <= 10_000] for gpu, rows in made.sweeps.items()}
    assert own(dataclasses.replace(made, sweeps=few, _known={}), {}) == []


def test_rows_of_other_designs_stay_out(made: StudyData) -> None:
    one = sweep("one")
    others = pd.concat([one.assign(m1=8), one.assign(n=one["n"] + 1)])
    narrow = made.settings.model_copy(update={"candidates": {"m1": [0], "m": [4, 16]}})
    sweeps = {"one": pd.concat([one, others], ignore_index=True)}
    found = dataclasses.replace(made, sweeps=sweeps, settings=narrow, _known={}).rows
    assert set(found["n"]) == set(SIZES)
    assert set(found["m1"]) == {0}
    # The baseline has m = 10, which was not measured here.
    assert set(found["m"]) == {4, 16}
    assert len(found) == 2 * len(SIZES)
