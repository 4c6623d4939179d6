"""Figures of merit against numbers worked out by hand or by brute force."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.learning import merit

times = st.lists(st.integers(1, 20).map(float), min_size=1, max_size=8)


def test_as_fast_as_the_baseline_is_no_improvement():
    assert merit.percent_improved(np.array([1.0, 1.0 + 1e-9, 0.5, 3.0])) == 50.0


@given(times, times, st.randoms())
def test_improved_runs_do_not_depend_on_the_order_of_runs(first, second, random):
    shuffled = list(first)
    random.shuffle(shuffled)
    expected = sum(a < b for a, b in itertools.product(first, second)) / len(first) / len(second)
    found = merit.improved_runs(np.array(shuffled), np.array(second))
    assert found == pytest.approx(expected)


@given(times, st.integers(1, 9))
def test_expected_best_is_the_mean_over_every_draw(values, draws):
    every = list(itertools.combinations(values, min(draws, len(values))))
    expected = sum(map(min, every)) / len(every)
    assert merit.smallest_of_draws(np.array(values), draws, 0)[0] == pytest.approx(expected)


@given(times, st.integers(1, 9), st.integers(1, 21))
def test_chance_below_is_the_share_of_every_draw(values, draws, limit):
    every = list(itertools.combinations(values, min(draws, len(values))))
    expected = sum(min(draw) < limit for draw in every) / len(every)
    _, found = merit.smallest_of_draws(np.array(values), draws, float(limit))
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("count", "draws"), [(1, 1), (5000, 1), (5000, 20), (5000, 5000)])
def test_chances_of_draws_sum_to_1_for_whole_sweeps(count, draws):
    weights = merit.draws_weights(count, draws)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == pytest.approx(draws / count)
    # The smallest of d draws has d - 1 larger ones: the last d - 1 ranks cannot be it.
    assert np.count_nonzero(weights) <= count - draws + 1


def test_figures_of_nothing_are_unknown():
    none = np.array([])
    for found in (
        merit.geometric_mean(none),
        merit.improvement_coefficient(none, none),
        merit.percent_improved(none),
        merit.improved_runs(none, np.array([1.0])),
        merit.null_accuracy([]),
    ):
        assert math.isnan(found)
