"""Figures that cannot be are told with their row, and all else stands."""

import dataclasses
import logging

import pytest

from launchwise.learning.features import Domain
from launchwise.report.blocks import Notice
from launchwise.report.pages.invariants import NONE, section, violations
from tests.support.named_tables import named_table
from tests.support.report_pages import html_of, pages, visible
from tests.support.report_study import study


def changed(**tables):
    return dataclasses.replace(study(), **tables, _known={})


def spoilt_evaluation(column, value):
    rows = study().evaluation.copy()
    rows.loc[rows.index[rows["model"] == "knn"][0], column] = value
    return changed(evaluation=rows)


def answered(**entry):
    known = {"gpu": "big", "problem": {"n": 102, "dtype": "float32", "order": 2}, "gain": 1.0}
    made = study()
    return changed(table=named_table([{**known, **entry}], Domain(made.spec, made.profiles), "x"))


def test_the_front_page_counts_contradictions():
    front = pages([spoilt_evaluation("fraction", 1.02)])[0]
    told = [each for each in front.sections[0].blocks if isinstance(each, Notice)]
    assert "1 figure contradicts another." in [each.text for each in told]


def test_nothing_is_said_of_a_sound_study():
    # A gain may be an end of its interval, and a problem may be that of a blind test.
    sound = [study(), answered(), paired(), paired(gain_low=2.0), paired(gain_high=2.0)]
    asked = answered(problem={"n": 7, "dtype": "float32", "order": 2})
    tested = asked.rows.iloc[:1].assign(gpu="big", n=7, dtype="float32", order=2)
    sound.append(dataclasses.replace(asked, tested={"big": tested}))
    assert violations(sound) == []
    assert NONE in visible(html_of(study())["gpus.html"])


def paired(**changes):
    """The baseline, of 2 ms, and a configuration of 1 ms in pairs, by which they are judged."""
    sweep = study().sweeps["big"]
    rows = sweep.iloc[[0, 1]]
    limits = {"gain": [1.0, 2.0], "gain_low": [1.0, 1.9], "gain_high": [1.0, 2.1]}
    ran = {"roles": ["baseline+usual", "best"], "rounds": 20, "thrown": 0, "status": "ok"}
    pairs = rows[study().spec.key_columns].assign(**limits, **ran).reset_index(drop=True)
    for column, value in changes.items():
        pairs.loc[1, column] = value
    judged = sweep.assign(basis=["pairs", "pairs", *["sweep"] * (len(sweep) - 2)])
    return changed(pairs={"big": pairs}, sweeps={**study().sweeps, "big": judged})


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: spoilt_evaluation("fraction", 1.02), "nothing beats the fastest of its own set"),
        (lambda: spoilt_evaluation("best_of_5", -0.1), "a share lies between 0 and 1"),
        (lambda: spoilt_evaluation("improved_runs", 37.0), "a share lies between 0 and 1"),
        (lambda: paired(gain_low=2.001), "a gain lies in its interval"),
        (lambda: paired(gain_high=1.999), "a gain lies in its interval"),
        (lambda: paired(gain=3.0, gain_low=2.9, gain_high=3.1), "a gain lies in its interval"),
        (lambda: answered(problem={"n": 7, "dtype": "float32", "order": 2}), "was measured"),
        (lambda: answered(gain_low=2.0, gain_high=1.0), "an interval has its ends in order"),
        (lambda: answered(time_low_ms=2.0, time_high_ms=1.0), "an interval has its ends in order"),
    ],
)
def test_a_planted_contradiction_is_told_with_its_row(make, rule, caplog):
    made = make()
    found = violations([made])
    assert found
    assert all(rule in each.rule and each.row for each in found)
    with caplog.at_level(logging.WARNING, logger="launchwise"):
        section([made])
    assert rule in caplog.text
    assert "big" in found[0].row
