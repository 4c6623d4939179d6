"""Intervals of ratios: those of Student, and how often skewed noise is taken for a change."""

import math

import numpy as np
import pytest
from scipy import stats

from launchwise.comparing.matching import LEAST_REPEATS, ratio_intervals

ROWS = 4000

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


@pytest.mark.parametrize("kind", SKEWED)
@pytest.mark.parametrize(("old", "new"), [(3, 3), (3, 5), (5, 3), (3, 25), (25, 3), (10, 10)])
def test_skewed_repeats_keep_a_rate_of_a_few_percent(kind, old, new):
    assert false_alarms(SKEWED[kind], old, new, 0.05, 0.99) <= most(0.03)


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
