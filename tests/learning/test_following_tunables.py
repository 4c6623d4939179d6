"""Tunables that follow from the problem: what is carried over has the asked problem's value."""

import pytest
from companions import SIZES, SPEC, WIDTHS, domain, measured
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import following_tunables
from launchwise.learning.recommenders._trees import TreeRecommender
from launchwise.learning.splits import Case

HEURISTICS = [name for name in BASELINES if name not in ("untuned", "usual")]


@pytest.mark.parametrize(("text", "found"), read_yaml(ROOT / "tests/learning/data/following.yaml"))
def test_only_an_equation_with_the_problem_decides_a_tunable(text, found):
    assert following_tunables(SPEC, [text]) == found


def chosen(kind, rows, *conditions):
    """Width and parts that a kind of model answers with at a size that was never measured."""
    first = kind(domain(*conditions)).fit(rows).recommend("gpu", [{"m": 16}]).iloc[0]
    return first["width"], first["parts"]


@pytest.mark.parametrize("name", HEURISTICS)
def test_heuristics_take_the_asked_problems_value(name):
    for every in (True, False):
        assert chosen(BASELINES[name], measured(every), "parts == m") == (4, 16)
    # Without such a condition they copy everything.
    width, parts = chosen(BASELINES[name], measured(every=False))
    assert width == 4
    assert parts in SIZES


def test_models_count_choices_not_their_companions():
    assert chosen(TreeRecommender, measured(every=False), "parts == m") == (4, 16)


def test_the_baseline_yields_to_its_twin_with_the_right_value():
    rows = measured(every=False)
    # Width 1, the baseline's, is the best everywhere; the baseline has one part.
    rows["time_ms"] = rows["width"] * 1.0
    for name in HEURISTICS:
        assert chosen(BASELINES[name], rows, "parts == m") == (1, 16)
    cases = [Case("gpu", {"m": 16})]
    assert len(domain("parts == m").choices(cases)) == len(WIDTHS) + 1
