"""Pairs with real measuring processes on the CPU: rounds, wrong results, deaths, clocks."""

import dataclasses
import json
import os
import signal
import time

import numpy as np
import pytest
from host_device import HostParts
from samples import ROOT
from scipy.stats import quantile_test

from launchwise.base.errors import Interrupted, UserError
from launchwise.base.robust import LEAST_ROUNDS, TIE, outcome, paired_ratio
from launchwise.base.typed import read_yaml
from launchwise.experiment.method import Confirmation, Contest, Entrant, read_contests
from launchwise.measuring.journal import Journal, read_notes
from launchwise.measuring.pairs.confirming import confirm, rounds_of
from launchwise.measuring.pairs.visit import beside_earlier, pairs_table, peers_table
from launchwise.measuring.progress import Progress
from launchwise.measuring.telemetry import Sample, Telemetry
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import pairs_schema, peers_schema
from launchwise.workloads.space import baseline, configurations
from tests.measuring.conftest import QUICK, WATTS, steady
from tests.support.stencil import change_sessions

pytestmark = pytest.mark.usefixtures("forked_starts")

PROBLEM = {"n": 20, "dtype": "float32", "order": 2}
QUICKLY = Confirmation(precision=0.9, seconds=1.0)


def contest_of(shard, *peers):
    """The baseline, two other configurations of the problem, and libraries."""
    listed = configurations(shard.spec, PROBLEM)[:3]
    assert listed[0] == baseline(shard.spec)
    listed += [{"peer": name} for name in peers]
    roles = [["baseline"], ["best", "usual"], ["near"], *[["peer"]] * len(peers)]
    entrants = [
        Entrant(configuration=each, roles=role) for each, role in zip(listed, roles, strict=True)
    ]
    return Contest(problem=PROBLEM, entrants=entrants)


def run(shard, contest, path, how=QUICKLY, telemetry=None):
    """Confirm a contest; its table."""
    with Journal(path, "print", shard.spec.key_columns) as journal:
        confirm(shard, [contest], how, journal, telemetry)
        return pairs_table(shard, [contest], how, journal.notes, {})


def test_each_configuration_runs_once_a_round(make_shard, tmp_path):
    shard = make_shard([PROBLEM])
    contest = contest_of(shard)
    table = run(shard, contest, tmp_path / "journal")
    assert list(table["status"]) == ["ok"] * 3
    assert set(table["rounds"]) == set(map(len, table["times_ms"]))
    assert table["rounds"].iloc[0] >= LEAST_ROUNDS
    assert table["rounds"].nunique() == 1
    (usual,) = (row for _, row in table.iterrows() if "usual" in row["roles"])
    assert usual["gain"] == usual["gain_low"] == usual["gain_high"] == 1
    for _, row in table.iterrows():
        ratios = usual["times_ms"] / row["times_ms"]
        assert row["gain"] == pytest.approx(np.median(ratios))
    schema = pairs_schema(shard.spec)
    write_table(tmp_path / "pairs.parquet", table, schema)
    assert read_table(tmp_path / "pairs.parquet", schema).equals(table)


def test_the_fastest_and_the_defaults_run_back_to_back_after_the_rounds(make_shard, tmp_path):
    shard = make_shard([PROBLEM], method=QUICK.model_copy(update={"energy_ms": 200.0}))
    contest = contest_of(shard)
    with Telemetry(steady, 0.005) as telemetry:
        table = run(shard, contest, tmp_path / "journal", telemetry=telemetry)
    own = table["roles"].isin(["baseline", "best+usual"])
    assert own.sum() == 2
    ran = table[own]
    assert list(ran["energy_j"]) == pytest.approx(list(ran["sustained_ms"] * WATTS / 1e3), rel=0.5)
    # The device is a busy CPU: a launch takes about as long alone.
    assert (ran["sustained_ms"] / ran["time_ms"]).between(0.1, 10).all()
    assert table.loc[~own, ["sustained_ms", "energy_j"]].isna().all(axis=None)
    # Another look at the journal finds the same.
    assert run(shard, contest, tmp_path / "journal").equals(table)


def test_gains_of_an_earlier_visit_stand_beside_those_of_this_one(make_shard, tmp_path):
    shard = make_shard([PROBLEM])
    table = run(shard, contest_of(shard), tmp_path / "journal")
    assert table["earlier_gain"].isna().all()
    usual = table["gain"] == 1
    before = table.assign(gain=table["gain"].where(usual, 2.0))
    found = beside_earlier(table, before, shard.spec)
    assert list(found.columns) == list(table.columns)
    assert sorted(found["earlier_gain"]) == [1.0, 2.0, 2.0]
    # Ratios to another configuration are no ratios to this one.
    other = before.assign(gain=before["gain"] / 2)
    assert beside_earlier(table, other, shard.spec)["earlier_gain"].isna().all()


@pytest.mark.parametrize("precision", [0.9, 1e-9])
def test_what_is_there_is_not_measured_again(make_shard, tmp_path, precision):
    shard = make_shard([PROBLEM])
    contest, how = contest_of(shard), Confirmation(precision=precision, seconds=0.05)
    before = run(shard, contest, tmp_path / "journal", how)
    idle = make_shard([PROBLEM], script=tmp_path / "no such program")
    idle.labels["card"] = "another"
    again = run(idle, contest, tmp_path / "journal", how)
    # However wide the intervals are: no pair was discarded.
    notes = read_notes(tmp_path / "journal")
    assert rounds_of(contest, notes).visits == 1
    then = "2026-01-02T03:04:05+00:00"
    earlier = [{**note, "measured_at": then} for note in notes]
    assert again.equals(before)
    # The time is that of the visit, however often its table is written.
    assert set(pairs_table(idle, [contest], how, earlier, {})["measured_at"]) == {then}
    # Rounds of another card, or without one that fails now, do not belong to those before.
    (visit,) = (note for note in notes if note["note"] == "visit")
    times = rounds_of(contest, notes).times_ms[0]
    *right, last = visit["found"]
    fewer = [{name: each[:-1] for name, each in one.items()} for one in visit["rounds"]]
    failed = {**visit, "found": [*right, {**last, "status": "failed"}], "rounds": fewer}
    for second, known in ((visit, 2 * times), ({**visit, "card": "x"}, times), (failed, times)):
        assert rounds_of(contest, [visit, second]).times_ms[0] == known


def marked(listed):
    """The configuration that a fault strikes."""
    return next(each for each in listed if (each["variant"], each["tz"]) == ("column", 2))


def test_a_kernel_that_kills_its_process_takes_part_no_longer(faulty, tmp_path):
    shard = faulty(fault="crashed", at="launch")
    listed = configurations(shard.spec, PROBLEM)
    bad = marked(listed)
    good = [each for each in listed if each != bad][:2]
    entrants = [
        Entrant(configuration=good[0], roles=["baseline"]),
        Entrant(configuration=bad, roles=["usual"]),
        Entrant(configuration=good[1], roles=["best"]),
    ]
    table = run(shard, Contest(problem=PROBLEM, entrants=entrants), tmp_path / "journal")
    statuses = {row["roles"]: row["status"] for _, row in table.iterrows()}
    assert statuses == {"baseline": "ok", "usual": "failed", "best": "ok"}
    best = table[table["roles"] == "best"].iloc[0]
    # Without a usual choice, the baseline is what it is compared with.
    assert best["gain"] == best["improvement"]
    assert best["rounds"] >= LEAST_ROUNDS


def test_a_request_to_stop_is_heard_where_no_contest_has_a_round(faulty, tmp_path):
    class Stopping(Progress):
        def row(self, *shown):
            os.kill(os.getpid(), signal.SIGTERM)

    sizes = [{**PROBLEM, "n": n} for n in (20, 22, 24)]
    shard = faulty(problems=sizes, fault="refused", at="launch")
    listed = configurations(shard.spec, PROBLEM)
    entrants = [
        Entrant(configuration=listed[0], roles=["baseline", "usual"]),
        Entrant(configuration=marked(listed), roles=["best"]),
    ]
    contests = [Contest(problem=size, entrants=entrants) for size in sizes]
    with Journal(tmp_path / "journal", "print", shard.spec.key_columns) as journal:
        with pytest.raises(Interrupted, match="signal 15: 1 visits of problems are kept"):
            confirm(shard, contests, QUICKLY, journal, None, Stopping(3, "pairs"))
        assert len([note for note in journal.notes if note["note"] == "visit"]) == 1


def test_pairs_under_different_clocks_are_thrown_away():
    times = np.full(20, 2.0)
    slow = np.where(np.arange(20) < 8, 4.0, 2.0)
    clocks = np.full(20, 1980.0)
    capped = np.where(np.arange(20) < 8, 990.0, 1980.0)
    ratio = paired_ratio(slow, times, capped, clocks, 0.01)
    assert (ratio.value, ratio.pairs, ratio.thrown) == (1.0, 12, 8)
    assert outcome(ratio.low, ratio.high) == TIE
    # Where a clock is not known, every pair counts.
    ratio = paired_ratio(slow, times, np.zeros(20), clocks, 0.01)
    assert (ratio.pairs, ratio.thrown) == (20, 0)


def test_spoilt_problems_are_visited_again_but_not_for_ever(make_shard, tmp_path):
    shard = make_shard([PROBLEM])
    contest = contest_of(shard)
    moments = iter(range(10**9))

    def source():
        """A card whose clock jumps all the time."""
        return Sample(at=time.monotonic(), sm_clock_mhz=1000.0 if next(moments) % 2 else 2000.0)

    how = Confirmation(precision=1e-9, seconds=0.2)
    with Telemetry(source, period_s=0.0005) as telemetry:
        table = run(shard, contest, tmp_path / "journal", how, telemetry)
        assert rounds_of(contest, read_notes(tmp_path / "journal")).visits == 3
        # What is unknown on one card is measured anew on another.
        other = dataclasses.replace(shard, labels={**shard.labels, "card": "another"})
        run(other, contest, tmp_path / "journal", how, telemetry)
    assert rounds_of(contest, read_notes(tmp_path / "journal")).origin["card"] == "another"
    assert (table.loc[table["roles"] == "near", "thrown"] > 0).all()


@pytest.mark.parametrize("number", [*range(LEAST_ROUNDS, 80), 257, 2000])
def test_the_limits_are_those_of_the_sign_test(number):
    ratios, clocks = np.random.default_rng(number).lognormal(size=number), np.zeros(number)
    found = paired_ratio(ratios, np.ones(number), clocks, clocks, 0.01)
    expected = quantile_test(ratios, q=1.0, p=0.5).confidence_interval(0.95)
    assert (found.low, found.high) == (expected.low, expected.high)
    assert found.low <= found.value <= found.high


def test_few_rounds_have_no_interval_and_shapes_must_agree():
    few = np.ones(LEAST_ROUNDS - 1)
    ratio = paired_ratio(2 * few, few, few, few, 0.01)
    assert ratio.value == 2
    assert np.isnan(ratio.low)
    assert ratio.half_width == float("inf")
    with pytest.raises(ValueError, match="two times and two clocks"):
        paired_ratio(few, few[1:], few, few, 0.01)


def test_what_ran_while_the_card_was_held_back_is_thrown_away(make_shard, tmp_path):
    """Planted: at a low clock one configuration loses more than the others."""
    shard = make_shard([PROBLEM])
    contest, path = contest_of(shard), tmp_path / "journal"
    plain = run(shard, contest, path)
    (visit,) = (note for note in read_notes(path) if note["note"] == "visit")
    for reason, thrown in {
        **{"sw_thermal": True, "sw_power_cap+hw_slowdown": True},
        **{"sw_power_cap": False, "": False},
    }.items():
        slowed = [
            {
                **each,
                "times_ms": [
                    ms * factor for ms, factor in zip(each["times_ms"], (2, 5, 2), strict=True)
                ],
                "throttle": ["", reason, ""],
            }
            for each in visit["rounds"]
        ]
        both = {**visit, "rounds": [*visit["rounds"], *slowed]}
        table = pairs_table(shard, [contest], QUICKLY, [both], {})
        assert set(table["rounds"]) == {2 * len(slowed)}
        assert set(table["thrown"]) == {len(slowed) if thrown else 0}, reason
        for name in ("gain", "gain_low", "gain_high", "improvement", "time_ms"):
            assert list(table[name]) == list(plain[name]) or not thrown
        alone = pairs_table(shard, [contest], QUICKLY, [{**visit, "rounds": slowed}], {})
        assert alone["gain"].isna().all() == alone["improvement"].isna().all() == thrown
        assert set(alone["reason"].str.contains("held the card back")) == {thrown}
        assert (alone["time_ms"] > 0).all()
        write_table(tmp_path / "pairs.parquet", alone, pairs_schema(shard.spec))


def entrants(*roles):
    """Entrants of one configuration each."""
    return [{"configuration": {"x": 1}, "roles": [role]} for role in roles]


@pytest.mark.parametrize(
    ("contests", "said"),
    [
        (None, "contests"),
        ([{"problem": {}, "entrants": entrants("winner")}], "roles"),
        ([{"problem": {}, "entrants": entrants("best", "near")}], "twice"),
    ],
)
def test_bad_contests_are_one_line(tmp_path, contests, said):
    path = tmp_path / "contests.json"
    asked = {"study": "a", "workload": "b", "gpu": "c"}
    path.write_text(json.dumps(asked if contests is None else {**asked, "contests": contests}))
    with pytest.raises(UserError, match=said):
        read_contests(path)


LIBRARIES = read_yaml(ROOT / "tests/measuring/data/hosts.yaml")["libraries"]


def test_libraries_run_in_the_same_rounds(make_shard, stencil_copy, tmp_path):
    """And not before nvcc has left the host alone."""
    change_sessions(stencil_copy, LIBRARIES)
    compiling = []

    class Compiling(HostParts):
        def wait(self):
            ended = time.monotonic() + (0 if compiling else 1)
            while time.monotonic() < ended and not (tmp_path / "journal").stat().st_size > 500:
                time.sleep(0.01)
            compiling.append(len(read_notes(tmp_path / "journal")))

    shard = dataclasses.replace(make_shard([PROBLEM]), parts=Compiling())
    contest = contest_of(shard, "right", "idle", "raising")
    assert len(run(shard, contest, tmp_path / "journal")) == 3
    assert compiling[0] == 0
    table = peers_table(shard, [contest], QUICKLY, read_notes(tmp_path / "journal"))
    found = table.set_index("peer")
    assert dict(found["status"]) == {"right": "ok", "idle": "wrong", "raising": "failed"}
    assert found.loc["raising", "reason"] == "ValueError: no such library"
    right = found.loc["right"]
    assert right["version"] == "made up 1.2"
    assert right["rounds"] >= LEAST_ROUNDS
    pairs = run(shard, contest, tmp_path / "journal")
    best = pairs[pairs["roles"] == "best+usual"].iloc[0]
    assert right["speedup"] == pytest.approx(np.median(right["times_ms"] / best["times_ms"]))
    assert right["speedup_low"] <= right["speedup"] <= right["speedup_high"]
    schema = peers_schema(shard.spec)
    write_table(tmp_path / "peers.parquet", table, schema)
    assert read_table(tmp_path / "peers.parquet", schema).equals(table)


@pytest.mark.parametrize("below_us", [0, 1e9])
def test_where_a_library_cannot_be_captured_events_time_all(
    make_shard, stencil_copy, tmp_path, below_us
):
    change_sessions(stencil_copy, LIBRARIES)
    shard = make_shard([PROBLEM], method=QUICK.model_copy(update={"graph_below_us": below_us}))
    contest = contest_of(shard, "waiting")
    pairs = run(shard, contest, tmp_path / "journal")
    notes = read_notes(tmp_path / "journal")
    peers = peers_table(shard, [contest], QUICKLY, notes)
    noted = [note["note"] for note in notes if note["note"] != "seconds"]
    assert noted == (["unreplayed", "visit"] if below_us else ["visit"])
    assert [*pairs["status"], *peers["status"]] == ["ok"] * 4
    assert {*pairs["timer"], *peers["timer"]} == {"events"}
