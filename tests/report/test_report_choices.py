"""Figures of methods against size, and which GPUs a study's pages show."""

import dataclasses

import pandas as pd
import pytest

from launchwise.report.answer import sizes, study_answer
from launchwise.report.blocks import Figure
from launchwise.report.site import assemble
from tests.support.report_study import study
from tests.support.shown import blocks_of, rows_of


def test_methods_against_size_are_those_of_their_gpu():
    figures = blocks_of(sizes.tiles(study()), Figure, folded=True)
    lines = {
        figure.id: {trace["name"]: trace["y"] for trace in figure.panels[0].data}
        for figure in figures
        if "-choices-" in figure.id
    }
    for figure in figures:
        for panel in figure.panels if figure.id in lines else ():
            low, high = panel.layout["yaxis"]["range"]
            assert 40 < low < 50
            assert 100 < high < 110
    # The usual choice was not measured. Baseline, NARROW and WIDE take 2, 1, 1.6 and 8, 5, 4 ms.
    assert lines == {
        "tiny-choices-big": {
            "baseline": [50, 50],
            "one fixed configuration": [100, 80],
            "kNN, unseen sizes": [100, 80],
        },
    }


@pytest.mark.parametrize(("most", "shown"), [(1, False), (2, True), (3, True)])
def test_pages_say_which_gpus_they_leave_out(monkeypatch, most, shown):
    monkeypatch.setattr(assemble, "MOST_GPUS", most)
    pages = assemble.of_study(study())
    ids = [section.id for page in pages for section in page.sections]
    first = ["tiny-answer", *([] if shown else ["tiny-shown"]), "tiny-landscape"]
    assert ids[: len(first)] == first


def test_without_a_model_one_configuration_stands_for_the_answers():
    made = study()
    rows, slice_rows = made.sweeps["big"], made.sweeps["big.sm4"]
    # No configuration is possible at both sizes: WIDE at the larger one alone, others at the other.
    possible = (rows["n"] == 202) == (rows["bx"] == 64)
    sweeps = {"big": rows[possible], "big.sm4": slice_rows[slice_rows["n"] == 102]}
    plain = dataclasses.replace(made, evaluation=made.evaluation.iloc[:0], sweeps=sweeps, _known={})
    (row,) = rows_of(study_answer.answer(plain), "What answers reach")
    assert row[0] == "big"
    assert row[1].endswith(" at every problem")
    assert row[2:5] == ["1.000", "–", "1"]


def test_the_usual_choice_stands_beside_the_others_where_it_was_measured():
    made = study()
    sweep = made.sweeps["big"]
    # What is usual by the workload's rule: 32 x 8 threads.
    usual = sweep.iloc[[2, 5]].assign(bx=32, by=8, bz=1, time_ms=[1.25, 8.0])
    sweeps = {**made.sweeps, "big": pd.concat([sweep, usual], ignore_index=True)}
    made = dataclasses.replace(made, sweeps=sweeps, _known={})
    figures = blocks_of(sizes.tiles(made), Figure, folded=True)
    (figure,) = (each for each in figures if "-choices-" in each.id)
    lines = {trace["name"]: trace["y"] for trace in figure.panels[0].data}
    assert lines["usual choice"] == [80, 50]
