"""The page of the streams study, on times from the published laws."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kernels.tridiagonal.recommenders.stream_law.laws import (
    PUBLISHED_OVERHEAD,
    PUBLISHED_SUM,
    STREAMS,
)
from kernels.tridiagonal.studies.tridiagonal_streams.section import cases
from kernels.tridiagonal.studies.tridiagonal_streams.section import sections as own
from launchwise.report.blocks import Bullets, Figure, Fold, Table
from launchwise.report.page import render
from launchwise.report.published import read_published
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import TRIDIAGONAL, tridiagonal_study

ROOT = Path(__file__).resolve().parents[3]
SIZES = [int(digit * 10**power) for power in range(3, 8) for digit in (1, 2.5, 4, 5, 7.5, 8)]


def sweep(gpu: str, noise: float = 0.0) -> pd.DataFrame:
    """One GPU's measurements: the published laws, and copies that streams leave alone."""
    spec = load_spec(TRIDIAGONAL)
    dice = np.random.default_rng(1)
    rows = []
    for n in SIZES:
        total = float(PUBLISHED_SUM.predict(n))
        # Of any stage some part; what counts is their sum.
        shares = {"t1_comp_ms": 0.4, "t1_d2h_ms": 0.3, "t3_h2d_ms": 0.1, "t3_comp_ms": 0.2}
        stages = {name: share * total for name, share in shares.items()}
        serial = {"t1_h2d_ms": 4e-6 * n, "t2_h_ms": 1e-6 * n, "t3_d2h_ms": 1e-6 * n}
        for count in STREAMS:
            over = 0.0 if count == 1 else float(PUBLISHED_OVERHEAD.predict(n, count))
            time = total / count + over + sum(serial.values())
            problem = {"n": n, "dtype": "float64", "memory": "pinned", "batch": 1}
            made = {**problem, **baseline(spec), "streams": count, "status": "ok"}
            time *= 1 + noise * dice.normal()
            rows.append({**made, "time_ms": time, **stages, **serial, "t2_d_ms": 0.0})
    return pd.DataFrame(rows).assign(gpu=gpu, workload="tridiagonal", reason="")


@pytest.fixture(scope="module")
def made() -> StudyData:
    """A study of one GPU."""
    return tridiagonal_study("tridiagonal_streams", "Streams", SIZES, {"one": sweep("one")})


@pytest.fixture(scope="module")
def published() -> dict[str, list[dict[str, str]]]:
    """The paper's tables."""
    return read_published(ROOT / "kernels" / "tridiagonal" / "studies" / "tridiagonal_streams")


def test_laws_come_from_training_sizes_alone(made: StudyData) -> None:
    (case,) = cases(made)
    assert set(case.train["n"]) | set(case.test["n"]) == set(SIZES)
    assert not set(case.train["n"]) & set(case.test["n"])
    assert len(set(case.test["n"])) == pytest.approx(len(SIZES) / 4, abs=1)
    assert float(case.sum_law.predict(10**6)) == pytest.approx(
        float(PUBLISHED_SUM.predict(10**6)), rel=1e-3
    )


def test_the_sections_say_what_streams_are_worth(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    gain, laws = own(made, published)
    lead = gain.blocks[0]
    assert isinstance(lead, Bullets)
    title, said = lead.items[0]
    assert title == "one, float64, pinned, batch=1:"
    table = sweep("one")
    alone = table[table["streams"] == 1].set_index("n")["time_ms"]
    best = (alone / table.groupby("n")["time_ms"].min()).max()
    assert f"speed-up of up to {best:.2f}x over one stream" in said
    figures = [block for block in gain.blocks if isinstance(block, Figure)]
    assert [len(figure.panels[0].data) for figure in figures] == [len(STREAMS) - 1, 7]
    overhead, fits = laws.blocks[:2]
    assert isinstance(overhead, Figure)
    # Dots and a line for each number of streams; the law that made the times goes through them.
    traces = overhead.panels[0].data
    assert len(traces) == 2 * (len(STREAMS) - 1)
    for dots, law in zip(traces[::2], traces[1::2], strict=True):
        pairs = [pair for pair in zip(dots["y"], law["y"], strict=True) if None not in pair]
        assert len(pairs) > len(SIZES) / 2
        assert np.median([abs(measured / drawn - 1) for measured, drawn in pairs]) < 0.15
    assert isinstance(fits, Table)
    assert [row.cells[0].text for row in fits.rows[-2:]] == ["published, RTX 2080 Ti"] * 2
    fold = next(block for block in laws.blocks if isinstance(block, Fold))
    optima = fold.blocks[0]
    assert isinstance(optima, Table)
    assert len(optima.rows) == len(SIZES)
    # Times made from the laws: the law loses nothing to speak of on any size.
    assert max(float(row.cells[6].text) for row in optima.rows) < 3
    unseen = [row for row in optima.rows if row.cells[1].text == "unseen"]
    assert f"of {len(unseen)} unseen sizes right" in fold.title


def test_the_page_is_made_of_them(
    made: StudyData, published: dict[str, list[dict[str, str]]]
) -> None:
    sections = own(made, published)
    page = render("x", "x", sections)
    assert "Speed-up of streams" in page
    assert "up to 1.30 times, at n = 80\u202f000\u202f000 and 100\u202f000\u202f000." in page
    assert "nan" not in render("x", "x", sections, figures=False).lower()


def test_too_little_has_no_laws(made: StudyData) -> None:
    few = {gpu: rows[rows["n"] <= 2500] for gpu, rows in made.sweeps.items()}
    assert own(dataclasses.replace(made, sweeps=few, _known={}), {}) == []
    single = {gpu: rows[rows["streams"] == 1] for gpu, rows in made.sweeps.items()}
    assert own(dataclasses.replace(made, sweeps=single, _known={}), {}) == []
