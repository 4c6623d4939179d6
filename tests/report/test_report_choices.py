"""What simpler choices cost against size, and which GPUs a study's pages show."""

import dataclasses

import pandas as pd
import pytest

from launchwise.report.answer import worth
from launchwise.report.blocks import Figure
from launchwise.report.numbers import fractions
from launchwise.report.site import assemble
from tests.support.report_study import settings, study
from tests.support.shown import blocks_of, notes, tables


def lines_of(made):
    """Time lost by each choice, %, on the only whole card."""
    (figure,) = blocks_of(worth.cost(made), Figure, folded=True)
    assert figure.id == "tiny-choices"
    return {trace["name"]: trace["y"] for trace in figure.panels[0].data}


def with_usual(made, times_ms):
    """The study with times of the usual choice at both sizes, by the workload's rule 32 x 8
    threads, on the whole card."""
    rows = made.sweeps["big"]
    usual = rows.iloc[[2, 5]].assign(bx=32, by=8, bz=1, time_ms=times_ms)
    sweeps = {**made.sweeps, "big": pd.concat([rows, usual], ignore_index=True)}
    return dataclasses.replace(made, sweeps=sweeps, _known={})


def test_choices_against_size_are_those_of_their_gpu():
    # The usual choice was not measured. Baseline, NARROW and WIDE take 2, 1, 1.6 and 8, 5, 4 ms.
    assert lines_of(study()) == {
        "baseline": [100, 100],
        "one fixed configuration": [0, 25],
        "rule": [0, 0],
        "kNN, unseen sizes": [0, 25],
    }


def test_the_table_says_from_which_size_a_choice_costs_much():
    # 3 % above the fastest at one size, 60 % at the other: the smaller is the beginning of nothing.
    said = ("202", "all 1 size"), ("–", ""), ("–", "")
    cases = ([1.03, 6.4], 202, 0.01), ([1.6, 4.12], 102, 0.01), ([1.03, 6.4], 202, 0.2)
    for (times, worst, error), known in zip(cases, said, strict=True):
        made = with_usual(study(), times)
        made.sweeps["big"]["error"] = error
        table, *_ = tables(worth.cost(made))
        assert table.caption == "Time that the usual choice loses over the fastest"
        ((kind, mean, most, begins),) = [row.cells for row in table.rows]
        assert (kind.text, mean.text) == ("float32, order=2", "28")
        assert table.columns[1].unit == "%, geometric"
        assert (most.text, most.detail) == ("60", f"at n={worst}")
        assert (begins.text, begins.detail) == known


def test_the_kinds_of_which_most_is_lost_are_listed_and_counted(monkeypatch):
    made = with_usual(study(), [1.25, 4.0])
    rows = made.sweeps["big"]
    # Another kind of problems with one size, where the usual choice takes three times as long.
    more = rows[rows["n"] == 102].assign(order=4)
    more["time_ms"] = more["time_ms"].where(more["by"] != 8, 3.0)
    sweeps = {**made.sweeps, "big": pd.concat([rows, more], ignore_index=True)}
    monkeypatch.setattr(worth, "MAX_KINDS", 1)
    table, *_ = tables(worth.cost(dataclasses.replace(made, sweeps=sweeps, _known={})))
    assert [row.cells[0].text for row in table.rows] == ["all", "float32, order=2"]
    assert table.rows[0].cells[2].detail == "at n=102, order=4"
    assert table.caption.endswith(
        "; of 2 kinds of problems the 1 with several sizes where it loses most"
    )


def test_what_is_faster_than_the_named_one_by_luck_loses_nothing():
    made = study()
    # The baseline is named at the smaller size: .2 % is no difference.
    rows = made.sweeps["big"].assign(time_ms=[1.002, 1.0, 1.6, 8.0, 5.0, 4.0, None])
    made = dataclasses.replace(made, sweeps={**made.sweeps, "big": rows}, _known={})
    lines = lines_of(made)
    assert lines["baseline"] == [0, 100]
    # Of the best it has what the evaluation says: the least time.
    assert fractions(made)["fraction"].iloc[0] == pytest.approx(1 / 1.002)
    assert min(min(each) for each in lines.values()) == 0


@pytest.mark.parametrize(("most", "shown"), [(1, False), (2, True), (3, True)])
def test_pages_say_which_gpus_they_leave_out(monkeypatch, most, shown):
    monkeypatch.setattr(assemble, "MOST_GPUS", most)
    pages = assemble.of_study(study())
    ids = [section.id for section in pages[0].sections]
    assert ids == [f"tiny-{end}" for end in ("answer", "cost", "gpus", "sure", "rows")]
    said = [text for text in notes(pages[0].sections) if text.startswith(f"This page shows {most}")]
    assert bool(said) != shown


def test_the_usual_choice_stands_beside_the_others_where_it_was_measured():
    assert lines_of(with_usual(study(), [1.25, 8.0]))["usual choice"] == [25, 100]


def test_only_reasons_that_a_problem_of_the_study_meets_are_said():
    whens = ("n > 999", "n > 150", "n > 50", "n > 1")
    usual = [{"when": n, "reason": n, "configuration": {"variant": "linear"}} for n in whens]
    made = dataclasses.replace(study(), settings=settings(usual=usual), _known={})
    assert made.usual_reasons == "n > 50; n > 150"
