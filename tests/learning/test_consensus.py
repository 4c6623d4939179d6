"""A simple rule's choice is the answer, unless methods agree that another is faster."""

from types import SimpleNamespace

import numpy as np
import pytest
from exported import problem
from hypothesis import given
from hypothesis import strategies as st

from launchwise.learning.recommenders.committee import (
    ANYWHERE,
    Experience,
    caution_of,
    consensus,
    first_rows,
    judged,
)
from launchwise.learning.splits import Case

CASES = np.repeat([0, 1, 2], [4, 3, 5])
USUAL = np.isin(np.arange(12), [1, 4, 9])
RULES = USUAL | np.isin(np.arange(12), [2, 11])
NEVER = np.zeros(12, dtype=bool)
LOSSES = st.lists(
    st.lists(st.floats(-1, 1, width=32), min_size=12, max_size=12), min_size=1, max_size=4
)


def answered(losses, caution=1.0, contenders=RULES, **more):
    named = {f"m{number}": np.asarray(each, dtype=float) for number, each in enumerate(losses)}
    given = {"log_times": (), "usual": USUAL, "baseline": NEVER, **more}
    limits = np.full(3, caution)
    found = consensus(named, cases=CASES, contenders=contenders, caution=limits, **given)
    (expected, spread), (other, loss, *_) = found.gains.T, found.scores.T
    assert expected == pytest.approx(np.where(given["usual"], 1, np.exp(-loss)))
    known = {"loss": loss, "spread": spread, "times_ms": found.predicted_ms}
    return SimpleNamespace(answers=other == 0, **known)


def chosen(found):
    return np.flatnonzero(found.answers).tolist()


@given(LOSSES, st.floats(0, 3))
def test_each_case_has_one_answer_and_the_usual_choice_loses_nothing(losses, caution):
    found = answered(losses, caution)
    assert CASES[found.answers].tolist() == [0, 1, 2]
    assert (found.loss[USUAL] == 0).all()
    assert (found.spread[USUAL] == 0).all()


@given(LOSSES, st.floats(0, 3), st.permutations(range(4)))
def test_neither_the_order_of_members_nor_the_level_of_a_case_matters(losses, caution, order):
    found = answered(losses, caution)
    levels = np.array([0.0, 8.0, -4.0])[CASES]
    shuffled = [np.asarray(losses[place]) + levels for place in order if place < len(losses)]
    again = answered(shuffled, caution)
    assert again.loss == pytest.approx(found.loss, abs=1e-9)
    assert again.spread == pytest.approx(found.spread, abs=1e-9)


@given(LOSSES)
def test_without_end_of_caution_a_contender_answers(losses):
    found = answered(losses, np.inf)
    assert RULES[found.answers].all()
    # The one of the least mean.
    least = [found.loss[(case == CASES) & RULES].min() for case in range(3)]
    assert found.loss[found.answers].tolist() == least


def test_members_that_disagree_leave_the_reference_and_those_that_agree_do_not():
    agree, one, other = np.zeros(12), np.zeros(12), np.zeros(12)
    agree[0], one[0], other[0] = -0.3, -1.2, 0.6
    assert chosen(answered([agree, agree]))[0] == 0
    assert chosen(answered([one, other]))[0] == 1
    # Their mean is the same; without caution it decides.
    assert chosen(answered([one, other], 0.0))[0] == 0


def test_the_best_contender_is_what_must_be_beaten():
    """Row 2 is a rule's choice, row 0 nobody's: it is better than the usual choice alone."""
    one, other = np.zeros(12), np.zeros(12)
    one[[0, 2]], other[[0, 2]] = [-0.55, -0.45], [-0.40, -0.45]
    assert chosen(answered([one, other], 0.3))[0] == 0
    assert chosen(answered([one, other], 2.0))[0] == 2
    assert chosen(answered([one, other], 2.0, USUAL))[0] == 0


def test_what_is_missing_takes_no_part():
    known, unknown = np.linspace(0, 1, 12), np.full(12, np.nan)
    alone = answered([known])
    both = answered([known, unknown], log_times=[np.log(known + 1), unknown])
    assert both.loss == pytest.approx(alone.loss)
    assert both.times_ms == pytest.approx(known + 1)
    assert np.isnan(alone.times_ms).all()
    nobody = answered([unknown])
    assert chosen(nobody) == [1, 4, 9]
    baseline = np.isin(np.arange(12), [3, 6, 7])
    without = answered([unknown], contenders=NEVER, usual=NEVER, baseline=baseline)
    assert chosen(without) == [3, 6, 7]


def test_caution_falls_with_the_root_of_the_problems():
    assert caution_of(6.0, 36) == 1.0
    assert caution_of(6.0, 0) == caution_of(6.0, 1) == 6.0


def test_on_another_gpu_a_rule_answers_where_one_problem_taught_all(domain):
    known, new = [*domain.profiles][:2]
    rows = domain.choices([Case(gpu, problem(100)) for gpu in (known, new)])
    place = rows.groupby("gpu", sort=False).cumcount().to_numpy()
    # A single member disagrees with nobody; to it the last is the fastest.
    losses, chosen = {"m": -place / len(rows)}, {ANYWHERE: place == 3, "nearest_size": place == 4}
    for problems in (1, 2):
        learnt = Experience(problems, (known,))
        found = judged(losses, {}, chosen, rows, domain, learnt, 6.0).scores[:, 0] == 0
        answers = dict(zip(rows["gpu"][found], place[found], strict=True))
        assert answers == {known: place.max(), new: 3 if problems == 1 else place.max()}


def test_first_rows_go_by_one_criterion_after_the_other():
    cases, one, two = (
        np.array([1, 0, 1, 0, 1]),
        np.array([2, 1, 1, 1, 1]),
        np.array([0, 5, 4, 3, 4]),
    )
    assert first_rows(cases, one, two).tolist() == [3, 2]
