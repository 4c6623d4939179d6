"""Best configurations that went stale, and how both sides were measured."""

import numpy as np
import pandas as pd
import pytest
from compared import SPEC, made_up, with_times
from hypothesis import given, settings
from hypothesis import strategies as st

from launchwise.comparing.matching import Difference, Rule, differences, matched, remeasured
from launchwise.comparing.sweep_comparison import NONE, best_answers

SWEEP = made_up()
PROBLEM = {"n": 2000, "dtype": "float32"}


def of_problem():
    """Ok rows of :data:`PROBLEM`, the fastest first, with their index in the sweep."""
    return SWEEP[OWN & (SWEEP["status"] == "ok")].sort_values("time_ms")


OWN = np.logical_and.reduce([SWEEP[name] == value for name, value in PROBLEM.items()])
"""Rows of :data:`PROBLEM`."""


def answer(new):
    """What is said of :data:`PROBLEM` after all others were found unchanged; the rows."""
    rows = matched(SWEEP, new, SPEC, Rule())
    answers = best_answers(rows, SPEC, Rule())
    own = np.logical_and.reduce([answers[name] == value for name, value in PROBLEM.items()])
    assert own.sum() == 1
    assert set(answers.loc[~own, "verdict"]) == {"kept"}
    assert len(answers) == len(SWEEP[SPEC.problem_columns].drop_duplicates())
    return answers[own].iloc[0], rows


def tunables(row):
    return list(row[SPEC.tunable_columns])


CHANGES = [0.1, 0.8, 1.01, 1.3, 3.0, "unverified", "failed", "gone"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(CHANGES), min_size=3, max_size=3), st.booleans())
def test_a_verdict_is_that_of_plain_arithmetic(changes, others_run):
    places = of_problem().index
    new = SWEEP.copy()
    for place, change in zip(places, changes, strict=False):
        new = with_times(new, [place], change if isinstance(change, float) else 1.5)
        if isinstance(change, str):
            new.loc[place, "status"] = change
            new.loc[place, "time_ms"] *= np.nan if change == "failed" else 1
    if not others_run:
        new.loc[places[3:], ["status", "time_ms"]] = ["failed", np.nan]
    new = new[new["status"] != "gone"]
    found, rows = answer(new)
    ok = new.loc[new.index.isin(places) & (new["status"] == "ok")].sort_values("time_ms")
    assert tunables(rows.iloc[found["old_best"]]) == tunables(SWEEP.loc[places[0]])
    if ok.empty:
        assert found["new_best"] == NONE
    else:
        assert tunables(rows.iloc[found["new_best"]]) == tunables(ok.iloc[0])
    if places[0] in ok.index:
        ratio = ok["time_ms"][places[0]] / ok["time_ms"].iloc[0]
        wanted = "kept" if ratio == 1 else "close" if ratio <= 1.02 else "stale"
        assert found["ratio"] == pytest.approx(ratio)
        assert found["ratio_low"] <= ratio <= found["ratio_high"]
    else:
        wanted = "unmeasured" if changes[0] == "gone" else "stale"
        assert np.isnan(found["ratio"])
    assert found["verdict"] == wanted


def test_a_noisy_best_is_unclear():
    first, second = of_problem().index[:2]
    new = with_times(SWEEP, [first], 1)
    median = 1.1 * SWEEP.loc[second, "time_ms"]
    new.loc[first, "time_ms"] = median
    count = new.loc[first, "repeats"]
    noisy = median * np.linspace(0.5, 1.5, count)
    new["times_ms"] = [noisy if place == first else each for place, each in new["times_ms"].items()]
    assert answer(new)[0]["verdict"] == "unclear"


def test_a_problem_of_one_side_has_no_verdict():
    for old, new in ((SWEEP, SWEEP[~OWN]), (SWEEP[~OWN], SWEEP)):
        answers = best_answers(matched(old, new, SPEC, Rule()), SPEC, Rule())
        assert len(answers) == 35
        assert set(answers["verdict"]) == {"kept"}


def said(new):
    rows = matched(SWEEP, new, SPEC, Rule())
    return {each.what: each for each in differences(rows)}


def test_cards_versions_clocks_and_throttling_are_said():
    ok = SWEEP["status"] == "ok"
    new = SWEEP.assign(driver="590.1", toolkit="13.1")
    new.loc[7, "card"] = "1" * 16
    new.loc[ok, "sm_clock_mhz"] *= 0.9
    new.loc[ok, "throttle"] = "sw_power_cap+hw_slowdown"
    found = said(new)
    count = len(SWEEP)
    assert found["driver"] == Difference("driver", ["580.0"], ["590.1"], count, count)
    assert found["toolkit"].rows == count
    assert (found["card"].rows, "1" * 16 in found["card"].new) == (1, True)
    clocks = Difference("sm_clock_mhz", ["1980"], ["1782"], int(ok.sum()), int(ok.sum()))
    assert found["sm_clock_mhz"] == clocks
    assert found["throttle"].new == ["hw_slowdown", "sw_power_cap"]
    assert (found["throttle"].old, found["throttle"].rows) == ([], int(ok.sum()))
    assert set(found) == {"driver", "toolkit", "card", "sm_clock_mhz", "throttle"}


def test_what_one_side_does_not_state_is_no_difference():
    assert said(SWEEP.assign(card="", sm_clock_mhz=np.nan, throttle="unknown")) == {}
    # A clock that reads a few MHz less is the same clock.
    assert said(SWEEP.assign(sm_clock_mhz=SWEEP["sm_clock_mhz"] * 0.995)) == {}


def test_only_rows_that_were_measured_again_count_as_two_measurements():
    rows = matched(SWEEP, with_times(SWEEP, [2, 9], 1.0), SPEC, Rule())
    assert remeasured(rows).sum() == 2
    # Imported rows have no time stamp: nothing says that they are one measurement.
    unstamped = SWEEP.assign(measured_at="")
    assert remeasured(matched(unstamped, unstamped, SPEC, Rule())).all()


def visited(slower, generator, spread=0.05):
    """The sweep, and another visit of it in which each row lies elsewhere: problems are 30 sizes.
    ``slower``: how many times as long the best of the first takes then."""
    sizes = [SWEEP[OWN].assign(n=1000 + 10 * place) for place in range(30)]
    sweep = pd.concat(sizes, ignore_index=True)
    factors = np.exp(generator.normal(0, spread, len(sweep)))
    ok = sweep["status"] == "ok"
    first = sweep[ok].sort_values("time_ms").drop_duplicates(SPEC.problem_columns).index[:1]
    factors[first] = slower * factors[first]
    times = [own * factor for own, factor in zip(sweep["times_ms"], factors, strict=True)]
    moved = {"time_ms": sweep["time_ms"] * factors, "times_ms": times, "measured_at": "later"}
    return matched(sweep, sweep.assign(**moved), SPEC, Rule()), sweep.loc[first, "n"].item()


def test_what_two_visits_differ_by_makes_no_answer_stale():
    dice, said = np.random.default_rng(2), {0.99: [], 0.5: []}
    for _ in range(20):
        rows, _ = visited(1.0, dice)
        for level, each in said.items():
            each += best_answers(rows, SPEC, Rule(confidence=level))["verdict"].tolist()
    # The repeats of each row agree, so an interval of them alone excludes 1.
    assert said[0.99].count("stale") == 0
    assert said[0.99].count("unclear") > 50
    # Of all answers of a comparison none is by chance, as often as the level says.
    assert said[0.5].count("stale") < 10


def test_what_is_slower_than_visits_differ_is_stale_among_them():
    dice = np.random.default_rng(3)
    for slower, found in ((2.0, 10), (1.05, 0)):
        stale = 0
        for _ in range(10):
            rows, n = visited(slower, dice)
            answers = best_answers(rows, SPEC, Rule()).set_index("n")["verdict"]
            stale += answers[n] == "stale"
            assert not (answers.drop(n) == "stale").any()
        assert stale == found
