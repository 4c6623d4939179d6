"""Rows of one launch, and settings that measure rows again."""

import dataclasses

import pandas as pd
import pytest
import yaml

from launchwise.measuring.earlier_rows import named
from launchwise.report import wording
from launchwise.report.answer.landscape import landscape
from launchwise.report.numbers import of_one_launch, shown_problem
from launchwise.report.pages.health_section import anew_settings
from tests.support.report_study import study


def stopped(made, chosen, gpu="big"):
    """The study with some rows of a GPU stopped after their first launch."""
    rows = made.sweeps[gpu]
    changed = rows.assign(status=rows["status"].mask(chosen, "slow"))
    return dataclasses.replace(made, sweeps={**made.sweeps, gpu: changed}, _known={})


@pytest.fixture
def made():
    """Two GPUs whose rows all have repeats; no method was evaluated."""
    found = study()
    return dataclasses.replace(found, evaluation=found.evaluation.iloc[:0], _known={})


def test_rows_compared_in_pairs_are_not_of_one_launch():
    rows = pd.DataFrame({"status": ["ok", "slow", "slow"], "basis": ["sweep", "sweep", "pairs"]})
    assert of_one_launch(rows).tolist() == [False, True, False]
    assert of_one_launch(rows[["status"]]).tolist() == [False, True, True]


def test_rows_that_fill_a_product_share_an_entry():
    columns = ["n", "dtype", "m"]
    every = [(n, dtype, m) for n in (10, 20) for dtype in ("float32", "float64") for m in (1, 2, 3)]
    said = yaml.safe_load(anew_settings("one", "solver", every, columns))
    assert said["sweeps"]["solver"]["anew"] == [
        {"n": [10, 20], "dtype": ["float32", "float64"], "m": [1, 2, 3]}
    ]
    part = every[:-1]
    entries = yaml.safe_load(anew_settings("one", "solver", part, columns))
    table = pd.DataFrame(every, columns=columns)
    chosen = named(table, entries["sweeps"]["solver"]["anew"])
    assert chosen.tolist() == [True] * len(part) + [False]
    assert yaml.safe_load(anew_settings("one", "solver", [], columns))["sweeps"]["solver"] == {
        "anew": []
    }


def test_how_far_the_slowest_is_rests_on_repeats(made):
    gpu, *problem = (shown_problem(made)[name] for name in ("gpu", *made.problem_columns))
    rows = made.sweeps[gpu]
    own = (rows[made.problem_columns] == problem).all(axis=1) & rows["time_ms"].notna()
    slowest = own & (rows["time_ms"] == rows.loc[own, "time_ms"].max())
    least = rows.loc[own, "time_ms"].min()

    def said(data):
        return repr(landscape(data))

    times = wording.number(rows.loc[own, "time_ms"].max() / least)
    assert f"The slowest with repeats takes {times} times as long" in said(made)
    rest = wording.number(rows.loc[own & ~slowest, "time_ms"].max() / least)
    assert rest != times
    changed = said(stopped(made, slowest, gpu))
    assert f"The slowest with repeats takes {rest} times as long" in changed
    assert "stopped early" in changed
    # Nor one that ran in pairs as well: what was stopped is said to have the time of one launch.
    paired = stopped(made, slowest, gpu)
    paired.sweeps[gpu]["basis"] = "pairs"
    assert said(paired) == changed


def test_a_baseline_that_is_no_candidate_is_not_counted(made):
    """block3d alone is asked about; the baseline is linear."""
    own = made.settings.model_copy(update={"candidates": {"variant": ["block3d"]}})
    for data in (made, dataclasses.replace(made, settings=own, _known={})):
        gpu, *problem = (shown_problem(data)[name] for name in ("gpu", *data.problem_columns))
        rows = data.sweeps[gpu]
        tried = rows[(rows[data.problem_columns] == problem).all(axis=1)]
        count = int((tried["variant"] == "block3d").sum()) if data is not made else len(tried)
        assert f": {wording.plural(count, 'configuration')} (" in repr(landscape(data))
