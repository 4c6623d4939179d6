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


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("every", [True, False])
def test_heuristics_take_the_asked_problems_value(name, every):
    of_study = domain("parts == m")
    heuristic = BASELINES[name](of_study).fit(measured(every))
    first = heuristic.recommend("gpu", [{"m": 16}]).iloc[0]
    # Sixteen parts were never measured: with the parts of another size nothing could be found.
    assert (first["width"], first["parts"]) == (4, 16)


@pytest.mark.parametrize("name", HEURISTICS)
def test_without_such_a_condition_they_copy_everything(name):
    first = BASELINES[name](domain()).fit(measured(every=False)).recommend("gpu", [{"m": 16}])
    assert first.iloc[0]["width"] == 4
    assert first.iloc[0]["parts"] in SIZES


def test_models_count_choices_not_their_companions():
    fitted = TreeRecommender(domain("parts == m")).fit(measured(every=False))
    first = fitted.recommend("gpu", [{"m": 16}]).iloc[0]
    assert (first["width"], first["parts"]) == (4, 16)


def test_the_baseline_yields_to_its_twin_with_the_right_value():
    rows = measured(every=False)
    # Width 1, the baseline's, is the best everywhere; the baseline has one part.
    rows["time_ms"] = rows["width"] * 1.0
    for name in HEURISTICS:
        heuristic = BASELINES[name](domain("parts == m")).fit(rows)
        first = heuristic.recommend("gpu", [{"m": 16}]).iloc[0]
        assert (first["width"], first["parts"]) == (1, 16)
    cases = [Case("gpu", {"m": 16})]
    assert len(domain("parts == m").choices(cases)) == len(WIDTHS) + 1
