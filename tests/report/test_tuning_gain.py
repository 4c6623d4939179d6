"""The gain from tuning: its verdict; what others measured stands apart."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.report import numbers
from launchwise.report.blocks import Fold
from launchwise.report.pages import index_page
from tests.support.report_study import study
from tests.support.shown import blocks_of, tables


def imported():
    made = study(name="theirs")
    profiles = {
        gpu: one.model_copy(update={"source": "described"}) for gpu, one in made.profiles.items()
    }
    return dataclasses.replace(made, profiles=profiles, _known={})


def overviews(*studies):
    """Links of the rows of the front page's table, and of the fold of what others measured."""
    kernels = index_page.sections(studies)[-1]
    folds = [one for one in blocks_of(kernels, Fold) if one.id == "others"]
    parts = [kernels.blocks[:1], *(fold.blocks for fold in folds)]
    return [[row.cells[0].link for row in tables(part)[0].rows] for part in parts]


def test_what_others_measured_stands_apart_where_there_is_ours():
    assert overviews(study(), imported()) == [["#tiny-answer"], ["#theirs-answer"]]
    assert overviews(imported()) == [["#theirs-answer"]]


def row_of(made, *others):
    """Titles of the front page's table, and its first row: texts and details."""
    (table, *_) = tables(index_page.sections([made, *others])[-1].blocks[:1])
    cells = table.rows[0].cells
    titles = [column.title for column in table.columns]
    return titles, [cell.text for cell in cells], [cell.detail for cell in cells]


def on_two_cards(gains):
    """The study, and what it gained on a second whole card over as many problems."""
    made = study()
    sweeps = {**made.sweeps, "other": made.sweeps["big"].assign(gpu="other")}
    rows = made.evaluation[made.evaluation["gpu"] == "big"]
    second = pd.concat([rows.assign(gpu="other", n=rows["n"] * k, gain=gain) for k, gain in gains])
    profiles = {**made.profiles, "other": made.profiles["big"]}
    rows = pd.concat([made.evaluation, second], ignore_index=True)
    return dataclasses.replace(made, evaluation=rows, profiles=profiles, sweeps=sweeps, _known={})


def test_the_overview_has_the_verdict_and_the_cards():
    said = "too few problems to tell"
    titles, texts, details = row_of(study())
    assert titles[:3] == ["kernel", "gain, big", "verdict"]
    assert texts[1:3] == ["1.58 / 2.00", said]
    assert details[:3] == ["2 test problems", "", ""]
    both = on_two_cards([(1, 1.5), (3, 1.5), (5, 1.4)])
    titles, texts, details = row_of(both)
    assert titles[:4] == ["kernel", "gain, big", "gain, other", "verdict"]
    assert texts[1:4] == ["1.58 / 2.00", "1.47 / 1.47", said]
    assert [details[0], details[3]] == ["2 and 6 test problems", "other: tune"]
    # A card that another study was not tested on has no column.
    assert row_of(both, study(name="small"))[0][1:3] == ["gain, big", "verdict"]
    rows = both.evaluation[both.evaluation["gpu"] == "other"]
    titles, texts, details = row_of(study(), dataclasses.replace(both, evaluation=rows, _known={}))
    assert (titles[1], texts[1], details[0]) == ("gain", "1.58 / 2.00", "2 test problems, big")


VERDICTS = {
    **{(1.02, 1.5): "tune", (1.01, 1.5): "little to gain", (0.99, 1.02): "little to gain"},
    **{(0.99, 1.01): "keep the usual choice", None: "too few problems to tell"},
}


@pytest.mark.parametrize(("interval", "verdict"), VERDICTS.items())
def test_tuning_pays_where_the_whole_interval_says_so(interval, verdict):
    known = index_page.tuning_gains(study())["big"]
    assert dataclasses.replace(known, best_interval=interval).verdict == verdict


@pytest.mark.parametrize(
    ("slower", "said"), read_yaml(ROOT / "tests/report/data/simple_rules.yaml")
)
def test_a_simple_rule_that_is_as_good_as_the_model_is_named(slower, said):
    made = study()
    rows = made.evaluation
    model = numbers.leader(made, numbers.first_split(made), "all")
    problems = [rows.assign(n=rows["n"] * scale) for scale in (1, 3, 5)]
    rows = pd.concat(problems, ignore_index=True)
    own = rows[rows["model"] == model].reset_index(drop=True).assign(gain=1.5, fraction=0.9)
    named = {"oracle": 1.2, "nearest_size": 1.0, **slower}
    others = [
        own.assign(model=name, gain=1.5 * np.resize(factor, len(own)))
        for name, factor in named.items()
    ]
    rows = pd.concat([own, *others], ignore_index=True)
    known = dataclasses.replace(made, evaluation=rows, _known={})
    (table,) = tables(index_page.sections([known])[-1].blocks[:1])
    verdict = table.rows[0].cells[2]
    assert [verdict.text, verdict.detail] == ["tune", said]
