"""Speed-up of streams and its bound, by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from kernels.tridiagonal.recommenders.stream_law.choice import STAGES
from kernels.tridiagonal.studies.tridiagonal_streams.gains import (
    GAIN_COLUMNS,
    gain_table,
    largest_gain,
    remark,
)
from launchwise.tables.rows import DEFAULT_ERROR


def runs(*lines, stage_ms=0.5):
    """Rows of a sweep; each of the four overlapped stages takes ``stage_ms`` with one stream."""
    columns = ["n", "streams", "time_ms", "status", "error"]
    table = pd.DataFrame(list(lines), columns=columns)
    table = table.assign(sweep_ms=table["time_ms"], basis="sweep")
    # 95 % intervals of one measurement.
    for name, sign in (("time_low_ms", -1), ("time_high_ms", 1)):
        table[name] = table["time_ms"] * np.exp(sign * 1.96 * table["error"])
    for name in STAGES:
        table[name] = stage_ms
        table.loc[table["streams"] > 1, name] = math.nan
    return table


def only(table):
    (place,) = table.index
    return table.loc[place]


def test_gain_and_bound_by_hand():
    found = only(gain_table(runs((10, 1, 10.0, "ok", 0.003), (10, 4, 9.0, "ok", 0.004))))
    assert (found["rows"], found["single_launches"], found["well_measured"]) == (2, 0, True)
    assert (found["best_streams"], found["best_ms"], found["saved_ms"]) == (4, 9.0, 1.0)
    assert found["gain"] == pytest.approx(10 / 9)
    # Four stages of .5 ms: T - sum is 8 ms.
    assert (found["sum_ms"], found["bound"]) == (2.0, 1.25)
    assert found["gain_error"] == pytest.approx(1.96 * 0.005)
    assert not found["above_bound"]


def test_what_was_not_judged_has_an_error_too():
    unknown = runs((10, 1, 10.0, "ok", math.nan), (10, 4, 7.95, "ok", math.nan))
    found = only(gain_table(unknown))
    assert found["gain_error"] == pytest.approx(1.96 * DEFAULT_ERROR * math.sqrt(2))
    # 1.258 times as fast, where overlap explains 1.25: less than two errors above it.
    assert found["gain"] > found["bound"]
    assert not found["above_bound"]


def test_the_fastest_of_several_counts_and_the_first_of_equals():
    lines = [(10, s, t, "ok", 0.01) for s, t in ((8, 9.0), (1, 10.0), (4, 9.0))]
    assert only(gain_table(runs(*lines)))["best_streams"] == 4
    slower = only(gain_table(runs((10, 1, 9.0, "ok", 0.1), (10, 2, 10.0, "ok", 0.1))))
    assert (slower["gain"], slower["best_streams"], slower["gain_error"]) == (1.0, 1, 0.0)


def test_a_single_launch_is_no_gain():
    lucky = [(10, 1, 10.0, "ok", 0.0), (10, 2, 9.9, "ok", 0.0)]
    found = only(gain_table(runs(*lucky, (10, 16, 5.0, "slow", math.nan))))
    assert found[list(GAIN_COLUMNS)].isna().all()
    # A single launch that is slower than the best says nothing against the size.
    found = only(gain_table(runs(*lucky, (10, 16, 9.95, "slow", math.nan))))
    assert (found["well_measured"], found["best_streams"]) == (True, 2)


def judged(*lines):
    """Rows with judged times; with each the time in the sweep, and what judged it."""
    table = runs(*(line for line, _, _ in lines))
    table["sweep_ms"] = [time for _, time, _ in lines]
    table["basis"] = [basis for _, _, basis in lines]
    return table.assign(error=table["error"].mask(table["basis"] == "pairs", 0.01))


def test_times_of_pairs_are_compared_with_times_of_pairs():
    # In the sweep one stream took 12 ms and four took 9; in pairs one took 10 and eight 9.9.
    rows = judged(
        ((10, 1, 10.0, "ok", 0.5), 12.0, "pairs"),
        ((10, 4, 9.0, "ok", 0.5), 9.0, "sweep"),
        ((10, 8, 9.9, "slow", math.nan), 9.5, "pairs"),
    )
    found = only(gain_table(rows))
    assert (found["best_streams"], found["alone_ms"], found["best_ms"]) == (8, 10.0, 9.9)
    # Errors are those of pairs, too, and a row of pairs has repeats.
    assert found["gain_error"] == pytest.approx(1.96 * 0.01 * math.sqrt(2))
    assert (found["rows"], found["single_launches"], found["well_measured"]) == (3, 1, True)


def test_without_one_stream_in_pairs_the_sweep_tells():
    rows = judged(
        ((10, 1, 10.0, "ok", 0.003), 10.0, "sweep"),
        ((10, 4, 8.0, "ok", 0.004), 9.5, "pairs"),
        ((20, 1, 7.0, "ok", 0.003), 8.0, "pairs"),
        ((20, 4, 5.0, "ok", 0.003), 5.0, "sweep"),
    )
    found = gain_table(rows).set_index("n")
    assert found.loc[10, "gain"] == pytest.approx(10 / 9.5)
    assert found.loc[10, "gain_error"] == pytest.approx(1.96 * 0.005)
    # No other number was in pairs, and the sweep's four are faster: nothing is known.
    assert found.loc[20, list(GAIN_COLUMNS)].isna().all()
    assert (found.loc[20, "tied"], found.loc[20, "open"]) == ((), (4,))


@pytest.mark.parametrize(("error", "tie"), [(0.2, ()), (0.01, (8,))])
def test_an_optimum_is_known_where_no_number_that_was_not_compared_may_be_it(error, tie):
    # Two streams were in no pairs and took 5 % more than eight, with a large error or a small one.
    lines = (10, 1, 10.0, "ok", 0.01), (10, 8, 9.0, "ok", 0.01), (10, 2, 9.45, "ok", error)
    found = only(gain_table(runs(*lines).assign(basis=["pairs", "pairs", "sweep"])))
    assert (found["tied"], found["open"]) == (tie, () if tie else (2,))
    assert found["gain"] == pytest.approx(10 / 9)
    assert remark(dict(found)) == ("" if tie else "2 not compared")


def test_without_a_repeated_time_of_one_stream_there_is_no_gain():
    once = gain_table(runs((10, 1, 10.0, "slow", math.nan), (10, 2, 5.0, "ok", 0.0)))
    never = gain_table(runs((10, 2, 10.0, "ok", 0.0), (10, 4, 5.0, "ok", 0.0)))
    assert not once["well_measured"].any()
    assert not never["well_measured"].any()
    assert gain_table(runs((10, 1, 10.0, "ok", 0.0))).empty


@pytest.mark.parametrize(("error", "flagged"), [(0.02, True), (0.03, False)])
def test_a_gain_above_its_bound_is_flagged_beyond_two_errors(error, flagged):
    # 10 / 7.58 is 1.319, 5.3 % above the bound of 1.25: beyond 2 * 2 %, within 2 * 3 %.
    table = gain_table(runs((10, 1, 10.0, "ok", 0.0), (10, 4, 7.58, "ok", error)))
    found = only(table)
    assert (bool(found["above_bound"]), remark(dict(found)) != "") == (flagged, flagged)
    # Neither is the largest gain that overlap can explain.
    assert largest_gain(table) is None


def test_stages_that_take_longer_than_a_run_or_have_no_time_give_no_bound():
    found = only(gain_table(runs((10, 1, 2.0, "ok", 0.0), (10, 2, 1.9, "ok", 0.0), stage_ms=0.5)))
    assert math.isnan(found["bound"])
    assert not found["above_bound"]
    rows = runs((10, 1, 10.0, "ok", 0.0), (10, 2, 9.0, "ok", 0.0))
    rows[STAGES[2]] = math.nan
    found = only(gain_table(rows))
    assert math.isnan(found["bound"])
    assert found["gain"] == pytest.approx(10 / 9)


def test_sizes_are_sorted():
    first = runs((20, 1, 10.0, "ok", 0.0), (20, 2, 9.0, "ok", 0.0))
    second = runs((10, 1, 10.0, "ok", 0.0), (10, 2, 8.0, "ok", 0.0))
    assert gain_table(pd.concat([first, second], ignore_index=True))["n"].tolist() == [10, 20]
    assert gain_table(first.iloc[:0]).empty


def test_sizes_are_faster_beyond_error_whatever_their_bound():
    honest = [(10, 1, 10.0, "ok", 0.001), (10, 2, 9.0, "ok", 0.001)]
    lucky = [(20, 1, 20.0, "ok", 0.001), (20, 2, 10.0, "slow", math.nan)]
    noisy = [(30, 1, 30.0, "ok", 0.001), (30, 2, 20.0, "ok", 0.001)]
    table = gain_table(runs(*honest, *lucky, *noisy))
    assert table.loc[table["gain_low"] > 1, "n"].tolist() == [10, 30]
    # In pairs one stream lost each round of one visit, but another visit may find it no slower.
    rounds = {"rounds_low_ms": [9.9, 8.9], "rounds_high_ms": [10.1, 9.1]}
    limits = {"ratio_error": [0.001, 0.07]}
    lost = gain_table(runs(*honest).assign(basis="pairs", **rounds, **limits))
    assert (lost["tied"].tolist(), (lost["gain_low"] > 1).sum()) == ([(2,)], 0)
    assert largest_gain(table)["n"] == 10
    assert largest_gain(gain_table(runs(*lucky))) is None
