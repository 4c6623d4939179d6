"""Statistics of repeats, how many are made, and pauses between configurations."""

import math
import statistics
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.robust import outcome
from launchwise.experiment.method import Repeats
from launchwise.measuring.repeats import LONGEST_REST, Rest, relative_error, repeat
from launchwise.tables.rows import of_repeats


def repeats_of(*rows):
    """Columns of rows with these times."""
    return {name: values.tolist() for name, values in of_repeats(rows).items()}


times = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=50)


def test_the_robust_spread_is_a_normal_laws_deviation():
    sample = np.random.default_rng(1).normal(100.0, 2.0, 20000).tolist()
    assert repeats_of(sample)["spread_ms"] == [pytest.approx(2.0, rel=0.03)]
    # The median of a normal sample has a standard error of 1.2533 sigma / sqrt(n).
    assert relative_error(sample) == pytest.approx(1.2533 * 0.02 / math.sqrt(20000), rel=0.03)


@given(times, st.floats(0.1, 10.0))
def test_relative_figures_do_not_depend_on_the_unit(sample, factor):
    scaled = [factor * time for time in sample]
    assert relative_error(scaled) == pytest.approx(relative_error(sample), abs=1e-9)
    one, other = repeats_of(sample, scaled)["spread_ms"]
    assert other == pytest.approx(factor * one, abs=1e-9)


@given(st.floats(0.5, 2.0), st.integers(7, 40))
def test_one_disturbed_repeat_is_flagged_and_changes_no_spread(time, count):
    steady = [time * (1 + 0.001 * (number % 5)) for number in range(count)]
    disturbed = [*steady[:-1], 100 * time]
    found = repeats_of(steady, disturbed)
    assert found["outlier_repeats"] == [0, 1]
    assert found["spread_ms"][1] < 0.01 * time


def test_columns_of_repeats_say_nothing_where_there_are_too_few():
    sample = [1.0, 1.02, 1.04, 1.03, 9.0]
    found = repeats_of(sample, [1.0], [], [1.0, 1.0, 50.0])
    assert found["repeats"] == [5, 1, 0, 3]
    # Three are too few for fences.
    assert found["outlier_repeats"] == [1, 0, 0, 0]
    assert found["relative_error"][0] == relative_error(sample)
    assert np.isnan(found["relative_error"]).tolist() == [False, True, True, False]
    assert np.isnan(found["spread_ms"]).tolist() == [False, True, True, False]
    assert relative_error([1.0]) == math.inf


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.01, 1.2, "faster"), (0.8, 0.99, "slower"), (0.99, 1.01, "tie"), (1.0, 1.02, "tie"),
        (0.9, 1.5, "undecided"), (0.99, 1.5, "undecided"), (0.9, 1.01, "undecided"),
        (math.nan, math.nan, "no interval"),
    ],
)  # fmt: skip
def test_an_interval_decides_where_it_leaves_1_out_and_ties_where_it_is_narrow(low, high, said):
    assert outcome(low, high) == said


class Stopwatch:
    """Gives planned times and counts how many were asked for."""

    def __init__(self, planned):
        self.planned = planned
        self.given = 0

    def __call__(self, count):
        found = [self.planned[(self.given + one) % len(self.planned)] for one in range(count)]
        self.given += count
        return found


def test_the_budget_ends_it():
    found = repeat(Stopwatch([1.0, 2.0, 3.0]), Repeats(minimum=5, maximum=500, budget_ms=60), 1.0)
    assert 60 <= sum(found) < 60 + 5 * 3
    # Launches as long as it, or of which it holds fewer than usual, are timed a few times.
    for times in ([100.0, 130.0], [15.0]):
        limits = Repeats(minimum=5, few=3, budget_ms=60)
        assert len(repeat(Stopwatch(times), limits, times[0])) == 3


def test_what_is_far_from_the_best_is_known_well_enough_sooner():
    limits = Repeats(minimum=5, few=3, near=0.1, precision=0.005, coarse=0.02)
    assert len(repeat(Stopwatch([1.2]), limits, 1.2, best_ms=1.0)) == 3
    assert len(repeat(Stopwatch([1.05]), limits, 1.05, best_ms=1.0)) == 5
    assert len(repeat(Stopwatch([0.9]), limits, 0.9, best_ms=1.0)) == 5
    # A spread of 1 %: enough for the one, not for the other.
    wavering = [1.0, 1.01, 0.99, 1.015, 0.985]
    far = repeat(Stopwatch([2 * time for time in wavering]), limits, 2.0, best_ms=1.0)
    assert len(far) == 3
    assert relative_error(far) > limits.precision
    near = repeat(Stopwatch(wavering), limits, 1.0, best_ms=1.0)
    assert relative_error(near) <= limits.precision or len(near) == limits.maximum
    # A far one that wavers is repeated all the same.
    limits = Repeats(minimum=5, few=3, maximum=30, budget_ms=1e9)
    assert len(repeat(Stopwatch([2.0, 2.5, 3.0]), limits, 2.0, best_ms=1.0)) == 30


def test_repeats_that_were_made_already_count():
    watch = Stopwatch([1.0])
    assert repeat(watch, Repeats(minimum=5), 1.0, begun=[1.0, 1.0, 1.0]) == [1.0] * 5
    assert watch.given == 2


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=9), st.integers(1, 9), st.integers(0, 20))
def test_repeats_stay_between_minimum_and_maximum(planned, minimum, more):
    limits = Repeats(minimum=minimum, maximum=minimum + more, few=2, budget_ms=50)
    found = repeat(Stopwatch(planned), limits, statistics.median(planned))
    assert min(2, minimum) <= len(found) <= minimum + more
    enough = relative_error(found) <= limits.precision
    assert enough or len(found) == limits.maximum or sum(found) >= limits.budget_ms


def pause(rest, busy_s, throttled):
    """Seconds that ``rest`` takes after ``busy_s`` seconds of work."""
    time.sleep(busy_s)
    began = time.monotonic()
    rest.after(lambda: throttled)
    return time.monotonic() - began


def test_a_cool_card_is_not_kept_waiting():
    rest = Rest()
    assert all(pause(rest, 0.01, throttled=False) < 0.005 for _ in range(5))
    assert rest.share == 0
    unwanted = Rest(wanted=False)
    assert pause(unwanted, 0.01, throttled=True) < 0.005
    assert unwanted.share == 0


def test_pauses_grow_while_the_card_is_throttled_and_shrink_afterwards():
    rest = Rest()
    shares = []
    for _ in range(12):
        paused = pause(rest, 0.005, throttled=True)
        assert paused >= 0.9 * rest.share * 0.005
        shares.append(rest.share)
    assert shares[0] == 0.25
    assert shares == sorted(shares)
    assert shares[-1] == LONGEST_REST
    pause(rest, 0.001, throttled=False)
    assert 0 < rest.share < LONGEST_REST
    for _ in range(200):
        rest.after(lambda: False)
    assert rest.share == 0
