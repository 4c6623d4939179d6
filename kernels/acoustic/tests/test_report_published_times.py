"""Predictions against published run times, on the page."""

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from launchwise.report.answer.predicted_times import PUBLISHED, judged, published_times
from launchwise.tables.learning import published_times_schema
from launchwise.workloads.space import baseline
from tests.support.report_study import study
from tests.support.shown import statements

KERNEL = Path(__file__).resolve().parents[1]
FOLDER = KERNEL / "studies" / "acoustic_tile"
SERIES = "best tile of each size (table 1)"


def spec():
    return study(kernel=KERNEL).spec


def rows(times, published, runs=1):
    """Predictors to their times, of one size after the other on a V100."""
    table = pd.DataFrame(
        [
            {
                "series": SERIES, "row": 2 + place, "phases": "", "runs": runs,
                "predictor": predictor, "gpu": "v100", "n": 100 + place, "dtype": "float32",
                "order": 2, **baseline(spec()), "published_ms": float(published[place]),
                "predicted_ms": float(time), "bound_by": "transfers", "source": "a paper, table 1",
            }
            for predictor, predicted in times.items()
            for place, time in enumerate(predicted)
        ]
    )  # fmt: skip
    published_times_schema(spec()).insist("times", table)
    return table


def made(table):
    return dataclasses.replace(study(kernel=KERNEL), folder=FOLDER, published_times=table)


def figures(table):
    """Figures of the series, and the cells after its name."""
    one = judged(table, SERIES)
    return one, [figure.cell(one).text for figure in PUBLISHED[1:]]


def test_the_figures_of_a_series():
    one, texts = figures(rows({"learnt": [1, 3, 8, 10], "roofline": [1, 1, 1, 1]}, [2, 4, 4, 20]))
    # Ratios 1/2, 3/4, 2 and 1/2.
    assert one["factor"] == pytest.approx((0.5 * 0.75 * 2 * 0.5) ** 0.25)
    assert one["median"] == pytest.approx(50)
    assert texts[0] == "4"


def test_without_a_number_of_runs_only_spread_is_judged():
    table = rows({"learnt": [0.01, 0.02, 0.08, 0.04]}, [10, 20, 40, 40], runs=0)
    one, texts = figures(table)
    assert texts[1] == "–"
    # One of four ratios is twice the others: the factor lies a quarter of the way to it.
    factor = 0.001 * 2**0.25
    assert one["factor"] == pytest.approx(factor)
    assert texts[3:] == [f"{0.001 / factor:.2f}", f"{0.002 / factor:.2f}"]


def test_the_study_has_every_time_and_what_it_means():
    data = made(rows({"learnt": [1, 3], "roofline": [0.1, 0.2]}, [2, 4]))
    section = published_times(data)
    assert section.id == "tiny-against"
    found = [rest for _, rest in statements(section.blocks[1].blocks)]
    assert any("unknown number of time steps" in each for each in found)


def test_without_published_times_there_is_nothing():
    assert published_times(study(kernel=KERNEL)) is None
    empty = rows({"learnt": [1.0]}, [1]).iloc[:0]
    assert published_times(made(empty)) is None
