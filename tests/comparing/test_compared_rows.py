"""What happened to each row: sweeps with planted changes, and with noise alone."""

import numpy as np
import pytest
from compared import SPEC, made_up, redrawn, steady, with_times
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.comparing.matching import Rule, matched
from launchwise.comparing.sweep_comparison import SweepComparison, best_answers

SWEEP, STATUSES = made_up(), ROOT / "tests/comparing/data/statuses.yaml"


def outcomes(old, new, rule=None):
    """Outcome by key."""
    rows = matched(old, new, SPEC, rule or Rule())
    return rows.set_index([*SPEC.problem_columns, *SPEC.tunable_columns])["outcome"]


def counts(found):
    return {str(name): int(count) for name, count in found.value_counts().items()}


def key(place):
    return tuple(SWEEP[[*SPEC.problem_columns, *SPEC.tunable_columns]].iloc[place])


def test_a_sweep_is_the_same_as_itself_in_any_order():
    shuffled = SWEEP.sample(frac=1, random_state=1, ignore_index=True)
    assert counts(outcomes(SWEEP, shuffled)) == {"same": len(SWEEP)}


def test_every_steady_row_that_is_made_slower_is_found_and_no_other():
    planted = steady(SWEEP) & (np.arange(len(SWEEP)) % 5 == 0)
    assert planted.sum() > 10
    new = with_times(SWEEP, planted, 1.1)
    found = outcomes(SWEEP, new)
    assert counts(found) == {"same": int((~planted).sum()), "slower": int(planted.sum())}
    assert set(found.index[found == "slower"]) == {key(place) for place in np.flatnonzero(planted)}
    rows = matched(SWEEP, new, SPEC, Rule())
    one = SweepComparison(SPEC, "a", "b", rows, best_answers(rows, SPEC, Rule()), [])
    assert (one.matched, one.carried) == (len(SWEEP), int((~planted).sum()))
    assert one.shift == (int(planted.sum()), pytest.approx((1.1, 1.1, 1.1)))


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.floats(0.3, 3.0), st.floats(0.02, 0.5))
def test_one_row_is_called_by_its_ratio_and_the_threshold(place, factor, threshold):
    beyond = abs(np.log(factor)) - np.log1p(threshold)
    assume(abs(beyond) > 1e-9)
    # So steady that the interval is narrower than any of the thresholds.
    places = np.flatnonzero(steady(SWEEP, 3e-3))
    place = int(places[place % len(places)])
    found = outcomes(SWEEP, with_times(SWEEP, [place], factor), Rule(threshold))
    expected = "same" if beyond < 0 else "slower" if factor > 1 else "faster"
    assert found.loc[key(place)] == expected
    assert counts(found).get("same", 0) >= len(SWEEP) - 1


@pytest.mark.parametrize("seed", [1, 2])
def test_noise_alone_is_called_a_change_less_often_than_stated(seed):
    old, new = (redrawn(SWEEP, 10 * seed + side) for side in (0, 1))
    for confidence in (0.95, 0.99):
        found = counts(outcomes(old, new, Rule(confidence=confidence)))
        alarms = found.get("slower", 0) + found.get("faster", 0)
        assert alarms <= (1 - confidence) * (SWEEP["status"] == "ok").sum()
        # The noise is there: without intervals these would be changes.
        assert found["noise"] > alarms


def test_old_and_new_the_other_way_round_mirror_each_other():
    old = made_up(seed=1)
    new = with_times(made_up(slower=1.2, seed=2), np.arange(len(old)) % 3 == 0, 0.6)
    there, back = (counts(outcomes(*pair)) for pair in ((old, new), (new, old)))
    assert there["slower"] > there["faster"] > 100
    assert (there["slower"], there["faster"]) == (back["faster"], back["slower"])
    assert (there["same"], there["noise"]) == (back["same"], back["noise"])


def test_rows_of_one_side_are_new_or_gone():
    found = outcomes(SWEEP.drop(index=[3]), SWEEP.drop(index=[5, 8]))
    assert counts(found) == {"same": len(SWEEP) - 3, "new": 1, "gone": 2}
    assert found.loc[key(3)] == "new"
    assert found.loc[key(5)] == "gone"


def restated(sweep, place, status):
    """A copy with a row of another status: no time unless it is one with a time."""
    found = sweep.copy()
    found.loc[place, "status"] = status
    if status not in ("ok", "slow", "unverified"):
        found.loc[place, "time_ms"] = np.nan
        found["times_ms"] = [
            np.array([]) if each == place else times for each, times in found["times_ms"].items()
        ]
    return found


@pytest.mark.parametrize(("before", "after", "outcome"), read_yaml(STATUSES))
def test_a_change_of_status_is_said(before, after, outcome):
    found = outcomes(restated(SWEEP, 4, before), restated(SWEEP, 4, after))
    assert found.loc[key(4)] == outcome
    assert counts(found)["same"] >= len(SWEEP) - 1


def test_a_row_that_stops_early_is_told_by_its_first_launch():
    slow = SWEEP.copy()
    slow.loc[4, "status"] = "slow"
    slow.loc[4, "time_ms"] = 1.5 * max(*SWEEP.loc[4, "times_ms"], SWEEP.loc[4, "first_ms"])
    assert outcomes(SWEEP, slow).loc[key(4)] == "stopped"
    # Its own first launch took as long before: near the limit, a sweep stops by chance.
    known = SWEEP.assign(first_ms=SWEEP["first_ms"].where(SWEEP.index != 4, slow["time_ms"]))
    assert outcomes(known, slow).loc[key(4)] == "changed"


def test_rows_of_one_launch_prove_nothing():
    slow = (SWEEP["status"] == "slow").to_numpy()
    found = outcomes(SWEEP, with_times(SWEEP, slow, 1.5))
    assert counts(found) == {"same": int((~slow).sum()), "unproven": int(slow.sum())}
