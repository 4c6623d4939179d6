"""The rule of a study: few ranges of one parameter, each with one configuration."""

import dataclasses

import pandas as pd
import pytest

from launchwise.report.answer import rule
from launchwise.report.numbers import fractions
from tests.support.report_study import sized_study, study, sweep
from tests.support.samples import STENCIL
from tests.support.shown import texts

SIZES = (100, 200, 300, 400)


def measured(factors):
    """The study on one card; ``factors``: times of both blocks at each size, ms. The baseline takes
    9 ms."""
    made = study(gpus=("big",))
    rows = sweep(made.spec, "big").iloc[:3]
    parts = [rows.assign(n=n, time_ms=[9.0, *pair]) for n, pair in zip(SIZES, factors, strict=True)]
    sweeps = {"big": pd.concat(parts, ignore_index=True)}
    return sized_study(STENCIL, "tiny", "A tiny study", list(SIZES), sweeps)


def said(made):
    return [(one.words, one.rows["bx"].unique().tolist()) for one in rule.rule_of(made, "big")]


def test_ranges_begin_where_another_configuration_is_faster():
    made = measured([(1, 2), (1, 2), (2, 1), (2, 1)])
    assert said(made) == [("n < 300", [32]), ("n ≥ 300", [64])]
    made = measured([(1, 2), (2, 1), (2, 1), (1, 2)])
    assert said(made) == [("n < 200", [32]), ("200 ≤ n < 400", [64]), ("n ≥ 400", [32])]


def test_a_range_that_brings_little_is_none():
    assert said(measured([(1, 2), (1, 2), (1, 2), (1.01, 1)])) == [("every problem", [32])]
    found = said(measured([(1, 2), (1, 2), (1, 2), (1.2, 1)]))
    assert found == [("n < 400", [32]), ("n ≥ 400", [64])]


def test_a_configuration_counts_where_it_ran_at_every_problem_of_the_range():
    made = measured([(1, 2)] * 4)
    rows = made.sweeps["big"]
    gone = (rows["n"] == 200) & (rows["bx"] == 32)
    torn = dataclasses.replace(made, sweeps={"big": rows[~gone]}, _known={})
    assert [bx for _, bx in said(torn)] == [[32], [64], [32]]


def test_the_table_has_what_the_rule_loses():
    lead, table = rule.table(measured([(1, 2), (1, 2), (1, 2), (1.01, 1)]))
    (row,) = texts(table)
    assert row[:4] == ["big", "every problem", "block3d 32×4×1", "4"]
    # 1, 1, 1 and 1 / 1.01; the usual choice was not measured.
    assert row[4:] == ["99.8", "99.0", "–"]
    assert (
        lead.text
        == "In the geometric mean a rule of at most 3 ranges reaches 99.8 % of the best on big."
    )


def test_the_gain_of_a_choice_is_its_speed_over_that_of_the_usual_one(monkeypatch):
    made = measured([(1, 2)] * 4)
    every = fractions(made)
    monkeypatch.setattr(rule, "fractions", lambda _: every.assign(is_usual=every["bx"] == 64))
    assert rule.reached(made, "big", every[every["bx"] == 32]) == (1.0, pytest.approx(2.0))


def test_a_rule_that_loses_much_is_not_shown():
    # Which block is faster changes at each size: of three ranges, one serves a size badly.
    made = measured([(1, 2), (2, 1), (1, 2), (2, 1)])
    (lead,) = rule.table(made)
    assert lead.text.endswith("84.1 % of the best on big (not shown: use the lookup).")
