"""Intervals of ratios: how often noise alone is taken for a change, and what they hold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from launchwise.comparing.rows import LEAST_REPEATS, ratio_intervals

ROWS = 4000

EVEN = {
    "normal": lambda draw, shape: draw.normal(size=shape),
    "heavy tails": lambda draw, shape: draw.laplace(size=shape),
}
SKEWED = {
    "waits": lambda draw, shape: draw.exponential(size=shape),
    "rare disturbance": lambda draw, shape: (
        draw.normal(size=shape) + 9 * (draw.random(shape) < 0.1)
    ),
    "two levels": lambda draw, shape: (
        0.3 * draw.normal(size=shape) + 3 * (draw.random(shape) < 0.3)
    ),
}


def most(rate):
    """Rate that four standard errors of the simulation lie above ``rate``."""
    return rate + 4 * math.sqrt(rate * (1 - rate) / ROWS)


def false_alarms(kind, old, new, scatter, confidence):
    """Share of rows with an interval beside 1 though both sides have one distribution."""
    draw = np.random.default_rng([old, new])
    before, after = (np.exp(scatter * kind(draw, (ROWS, count))) for count in (old, new))
    low, high = ratio_intervals(list(before), list(after), confidence)
    return float(((low > 1) | (high < 1)).mean())


@pytest.mark.parametrize("kind", EVEN)
@settings(max_examples=25, derandomize=True)
@given(st.integers(3, 25), st.integers(3, 25), st.floats(1e-3, 0.3), st.sampled_from([0.95, 0.99]))
def test_noise_is_taken_for_a_change_no_more_often_than_stated(kind, old, new, scatter, confidence):
    # Heavy tails with few repeats on one side cost up to half as much again.
    stated = (1 - confidence) * (1 if kind == "normal" else 1.5)
    assert false_alarms(EVEN[kind], old, new, scatter, confidence) <= most(stated)


@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize(("old", "new"), [(3, 3), (3, 5), (5, 3), (3, 25), (25, 3), (10, 10)])
def test_skewed_repeats_keep_a_rate_of_a_few_percent(kind, old, new):
    assert false_alarms(SKEWED[kind], old, new, 0.05, 0.99) <= most(0.03)


@settings(max_examples=25, derandomize=True)
@given(st.integers(3, 25), st.integers(3, 25), st.floats(0.2, 5.0))
def test_the_interval_holds_the_true_ratio_as_often_as_stated(old, new, ratio):
    draw = np.random.default_rng([old, new])
    before = np.exp(draw.normal(0, 0.05, (ROWS, old)))
    after = ratio * np.exp(draw.normal(0, 0.05, (ROWS, new)))
    low, high = ratio_intervals(list(before), list(after), 0.95)
    held = ((low <= ratio) & (ratio <= high)).mean()
    assert 0.95 - (most(0.05) - 0.05) <= held <= 0.95 + (most(0.05) - 0.05)


repeats = st.lists(st.floats(1e-3, 1e3), min_size=LEAST_REPEATS, max_size=8).map(np.array)


@given(st.lists(st.tuples(repeats, repeats), min_size=1, max_size=6))
def test_the_other_way_round_it_is_the_inverse(pairs):
    old, new = ([pair[side] for pair in pairs] for side in (0, 1))
    low, high = ratio_intervals(old, new, 0.99)
    back_low, back_high = ratio_intervals(new, old, 0.99)
    assert (low <= high).all()
    np.testing.assert_allclose(np.log(back_low), -np.log(high), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.log(back_high), -np.log(low), rtol=1e-9, atol=1e-9)


def test_rows_of_any_length_have_the_interval_that_each_has_alone():
    draw = np.random.default_rng(7)
    sizes = draw.integers(1, 6, (60, 2))
    old, new = ([np.exp(draw.normal(0, 0.1, size)) for size in sizes[:, side]] for side in (0, 1))
    low, high = ratio_intervals(old, new, 0.9)
    for place, (before, after) in enumerate(zip(old, new, strict=True)):
        if min(len(before), len(after)) < LEAST_REPEATS:
            assert np.isnan([low[place], high[place]]).all()
            continue
        alone = stats.ttest_ind(np.log(after), np.log(before)).confidence_interval(0.9)
        assert (low[place], high[place]) == pytest.approx(np.exp([alone.low, alone.high]))


def test_equal_repeats_have_an_interval_without_width():
    same, longer = np.full(3, 0.7), np.full(4, 0.77)
    low, high = ratio_intervals([same, same], [same, longer], 0.99)
    assert low == pytest.approx([1, 1.1])
    assert high == pytest.approx([1, 1.1])
    assert ratio_intervals([], [], 0.99)[0].shape == (0,)
