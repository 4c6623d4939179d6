"""Rows of one launch on which figures rest, of sweeps that are known."""

import dataclasses

import pandas as pd
import pytest
import yaml

from launchwise.measuring.earlier_rows import named
from launchwise.report import wording
from launchwise.report.answer.landscape import landscape
from launchwise.report.health import health_section, sweep_health
from launchwise.report.measure_again import anew_settings, listed, of_one_launch, used_rows
from launchwise.report.numbers import shown_problem
from tests.support.report_study import study
from tests.support.shown import tables


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


def is_fastest(rows):
    """Rows with the least time of their problem."""
    return rows["time_ms"] == rows.groupby(["n", "dtype", "order"])["time_ms"].transform("min")


def test_rows_compared_in_pairs_are_not_of_one_launch():
    rows = pd.DataFrame({"status": ["ok", "slow", "slow"], "basis": ["sweep", "sweep", "pairs"]})
    assert of_one_launch(rows).tolist() == [False, True, False]
    assert of_one_launch(rows[["status"]]).tolist() == [False, True, True]


def test_without_single_launches_there_is_nothing(made):
    assert used_rows(made).empty
    assert listed([made]) == []


def test_the_fastest_row_of_a_problem_counts_and_a_slow_one_does_not(made):
    rows = made.sweeps["big"]
    fastest = is_fastest(rows) & (rows["n"] == rows["n"].min())
    found = used_rows(stopped(made, fastest))
    assert found["fastest"].tolist() == [True] * int(fastest.sum())
    assert not found["chosen"].any()
    far = rows["time_ms"] == rows["time_ms"].max()
    base = used_rows(stopped(made, far))
    assert not base["fastest"].any()


def test_a_row_that_a_method_chose_counts(made):
    rows = made.sweeps["big"]
    columns = ["gpu", *made.problem_columns, *made.spec.tunable_columns, "time_ms"]
    chosen = rows.loc[[rows["time_ms"].idxmax()], columns].assign(basis="sweep")
    once = dataclasses.replace(made, evaluation=chosen.assign(status="slow"), _known={})
    found = used_rows(once)
    assert found["chosen"].tolist() == [True]
    for other in ({"status": "ok"}, {"status": "slow", "basis": "pairs"}):
        tried = dataclasses.replace(made, evaluation=chosen.assign(**other), _known={})
        assert used_rows(tried).empty


def test_the_settings_name_these_rows_alone(made):
    rows = made.sweeps["big"]
    changed = stopped(made, is_fastest(rows))
    table, file = listed([changed])
    assert [cell.text for cell in table.rows[0].cells[:4]] == [
        made.name,
        "big",
        *[str(int(is_fastest(rows).sum()))] * 2,
    ]
    settings = yaml.safe_load(file.content)
    assert settings["gpus"] == {"big": {"source": "live", "extend": True}}
    sweep = settings["sweeps"][made.spec.workload]
    assert named(rows, sweep["anew"]).tolist() == is_fastest(rows).tolist()
    assert "gpu" not in sweep["anew"][0]
    assert sweep["slow_factor"] > 1000


def test_the_page_of_health_lists_them(made):
    at = "2026-06-15T12:00:00+00:00"
    changed = stopped(made, is_fastest(made.sweeps["big"]))
    for known, count in ((changed, 1), (made, 0)):
        section = health_section.section([known], sweep_health.of_studies([known]), at)
        captions = [one.caption for one in tables(section, folded=True)]
        assert captions.count("Figures that rest on one launch") == count


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
