"""A simple rule's choice is the answer, unless methods agree that another is faster."""

from types import SimpleNamespace

import numpy as np
import pytest
from exported import problem
from hypothesis import given
from hypothesis import strategies as st

from launchwise.learning.recommenders.committee import (
    ANYWHERE,
    COST_MODEL_WITH_TREES,
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


@given(
    LOSSES,
    st.just(np.inf) | st.floats(0, 3),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_the_fastest_answers_where_members_agree_that_it_beats_the_best_contender(
    losses, caution, contending
):
    found = answered(losses, caution, np.array(contending))
    for case in range(3):
        own = np.flatnonzero(case == CASES)
        (usual,) = own[USUAL[own]]
        relative = np.array([[one[row] - one[usual] for row in own] for one in losses])
        means = dict(zip(own, relative.mean(axis=0), strict=True))
        assert found.loss[own] == pytest.approx([*means.values()])
        assert found.spread[own] == pytest.approx(relative.std(axis=0))
        order = sorted(own, key=lambda row: (means[row], row != usual, row))
        reference = next((row for row in order if contending[row]), usual)
        apart = (relative[:, own == order[0]] - relative[:, own == reference]).ravel()
        sure = caution < np.inf and apart.mean() + caution * apart.std() < 0
        assert own[found.answers[own]].tolist() == [order[0] if sure else reference]


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
    # Times are those of the cost model with trees, else of all.
    both = np.full(len(rows), 2.0), np.full(len(rows), 8.0)
    for names, mean in (((COST_MODEL_WITH_TREES, "knn"), 2.0), (("tree", "knn"), 4.0)):
        times = dict(zip(names, both, strict=True))
        told = judged(losses, times, chosen, rows, domain, learnt, 6.0).predicted_ms
        assert told == pytest.approx(mean)


def test_first_rows_go_by_one_criterion_after_the_other():
    cases, one, two = (
        np.array([1, 0, 1, 0, 1]),
        np.array([2, 1, 1, 1, 1]),
        np.array([0, 5, 4, 3, 4]),
    )
    assert first_rows(cases, one, two).tolist() == [3, 2]
