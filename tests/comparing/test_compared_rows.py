"""What happened to each row: recorded sweeps with planted changes, and with noise alone."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from compared import recorded, redrawn, spec_of, steady, with_times
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from launchwise.comparing.answers import best_answers
from launchwise.comparing.conditions import differences
from launchwise.comparing.rows import Outcome, Rule, matched

GPU = "h200.sm16"
WORKLOADS = ("acoustic", "granger", "sentiment", "tridiagonal")
SWEEPS = {workload: recorded(GPU, workload) for workload in WORKLOADS}
SPECS = {workload: spec_of(workload) for workload in WORKLOADS}


def outcomes(
    workload: str, old: pd.DataFrame, new: pd.DataFrame, rule: Rule | None = None
) -> pd.Series:
    """Outcome by key."""
    spec = SPECS[workload]
    rows = matched(old, new, spec, rule or Rule())
    return rows.set_index([*spec.problem_columns, *spec.tunable_columns])["outcome"]


def counts(found: pd.Series) -> dict[str, int]:
    return {str(name): int(count) for name, count in found.value_counts().items()}


def key(workload: str, sweep: pd.DataFrame, place: int) -> tuple[object, ...]:
    spec = SPECS[workload]
    return tuple(sweep[[*spec.problem_columns, *spec.tunable_columns]].iloc[place])


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_sweep_is_the_same_as_itself_in_any_order(workload: str) -> None:
    sweep = SWEEPS[workload]
    shuffled = sweep.sample(frac=1, random_state=1, ignore_index=True)
    assert counts(outcomes(workload, sweep, shuffled)) == {"same": len(sweep)}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_steady_row_that_is_made_slower_is_found_and_no_other(workload: str) -> None:
    sweep = SWEEPS[workload]
    planted = steady(sweep) & (np.arange(len(sweep)) % 5 == 0)
    assert planted.sum() > 10
    found = outcomes(workload, sweep, with_times(sweep, planted, 1.1))
    assert counts(found) == {"same": int((~planted).sum()), "slower": int(planted.sum())}
    assert set(found.index[found == "slower"]) == {
        key(workload, sweep, place) for place in np.flatnonzero(planted)
    }


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(WORKLOADS), st.integers(0, 10**6), st.floats(0.3, 3.0), st.floats(0.02, 0.5))
def test_one_row_is_called_by_its_ratio_and_the_threshold(
    workload: str, place: int, factor: float, threshold: float
) -> None:
    beyond = abs(np.log(factor)) - np.log1p(threshold)
    assume(abs(beyond) > 1e-9)
    sweep = SWEEPS[workload]
    # So steady that the interval is narrower than any of the thresholds.
    places = np.flatnonzero(steady(sweep, 3e-3))
    place = int(places[place % len(places)])
    found = outcomes(workload, sweep, with_times(sweep, [place], factor), Rule(threshold))
    expected = "same" if beyond < 0 else "slower" if factor > 1 else "faster"
    assert found.loc[key(workload, sweep, place)] == expected
    assert counts(found).get("same", 0) >= len(sweep) - 1


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("seed", [1, 2])
def test_noise_alone_is_called_a_change_less_often_than_stated(workload: str, seed: int) -> None:
    old, new = (redrawn(SWEEPS[workload], 10 * seed + side) for side in (0, 1))
    for confidence in (0.95, 0.99):
        found = counts(outcomes(workload, old, new, Rule(confidence=confidence)))
        alarms = found.get("slower", 0) + found.get("faster", 0)
        assert alarms <= (1 - confidence) * (SWEEPS[workload]["status"] == "ok").sum()
        # The noise is there: without intervals these would be changes.
        assert found["noise"] > alarms


def test_old_and_new_the_other_way_round_mirror_each_other() -> None:
    old = recorded("h200.sm32", "tridiagonal")
    new = recorded("h200.sm72", "tridiagonal")
    there, back = (counts(outcomes("tridiagonal", *pair)) for pair in ((old, new), (new, old)))
    assert there["slower"] > 100
    assert (there["slower"], there["faster"]) == (back["faster"], back["slower"])
    assert (there["same"], there["noise"]) == (back["same"], back["noise"])


def test_rows_of_one_side_are_new_or_gone() -> None:
    sweep = SWEEPS["tridiagonal"]
    found = outcomes("tridiagonal", sweep.drop(index=[3]), sweep.drop(index=[5, 8]))
    assert counts(found) == {"same": len(sweep) - 3, "new": 1, "gone": 2}
    assert found.loc[key("tridiagonal", sweep, 3)] == "new"
    assert found.loc[key("tridiagonal", sweep, 5)] == "gone"


def restated(sweep: pd.DataFrame, place: int, status: str) -> pd.DataFrame:
    """A copy with a row of another status: no time unless it is one with a time."""
    found = sweep.copy()
    found.loc[place, "status"] = status
    if status not in ("ok", "slow", "unverified"):
        found.loc[place, "time_ms"] = np.nan
        found["times_ms"] = [
            np.array([]) if each == place else times for each, times in found["times_ms"].items()
        ]
    return found


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("ok", "wrong", Outcome.broken),
        ("ok", "timeout", Outcome.broken),
        ("ok", "unverified", Outcome.broken),
        ("unverified", "failed", Outcome.broken),
        ("failed", "ok", Outcome.mended),
        ("failed", "unverified", Outcome.mended),
        ("unverified", "ok", Outcome.mended),
        ("failed", "wrong", Outcome.changed),
        ("slow", "ok", Outcome.changed),
        # No longer than any launch before.
        ("ok", "slow", Outcome.changed),
        ("failed", "failed", Outcome.same),
    ],
)
def test_a_change_of_status_is_said(before: str, after: str, outcome: Outcome) -> None:
    sweep = SWEEPS["tridiagonal"]
    found = outcomes("tridiagonal", restated(sweep, 4, before), restated(sweep, 4, after))
    assert found.loc[key("tridiagonal", sweep, 4)] == outcome
    assert counts(found)["same"] >= len(sweep) - 1


def test_a_row_that_stops_early_is_told_by_its_first_launch() -> None:
    sweep = SWEEPS["tridiagonal"]
    slow = sweep.copy()
    slow.loc[4, "status"] = "slow"
    slow.loc[4, "time_ms"] = 1.5 * max(*sweep.loc[4, "times_ms"], sweep.loc[4, "first_ms"])
    found = outcomes("tridiagonal", sweep, slow)
    assert found.loc[key("tridiagonal", sweep, 4)] == "stopped"


def test_rows_of_one_launch_prove_nothing() -> None:
    sweep = SWEEPS["acoustic"]
    slow = (sweep["status"] == "slow").to_numpy()
    found = outcomes("acoustic", sweep, with_times(sweep, slow, 1.5))
    assert counts(found) == {"same": int((~slow).sum()), "unproven": int(slow.sum())}


def test_39344_rows_take_seconds() -> None:
    sweep, spec = recorded("h200", "acoustic"), SPECS["acoustic"]
    new = with_times(sweep, steady(sweep), 1.05)
    assert len(sweep) == 39344
    begin = time.process_time()
    rows = matched(sweep, new, spec, Rule())
    best_answers(rows, spec, Rule())
    differences(rows)
    assert time.process_time() - begin < 5
    assert counts(rows["outcome"])["slower"] > 20000
