"""What makes a time believable: the control, the card's state, repeats, a second attempt."""

import dataclasses
import json
import time
from pathlib import Path

import pytest
from mistakes import planted

from launchwise.experiment.method import Method, Repeats
from launchwise.gpus.machine import Fastest
from launchwise.measuring.journal import Journal, read_journal, read_notes
from launchwise.measuring.repeats import rows_to_table
from launchwise.measuring.shard import Claims
from launchwise.measuring.sweep import measure_shard
from launchwise.measuring.tasks import CONTROL_SHARE, remaining, second_attempts
from launchwise.measuring.telemetry import Sample, Telemetry
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space
from launchwise.workloads.spec import load_spec
from tests.measuring.conftest import WATTS, quick, steady
from tests.support.samples import profile
from tests.support.slow_cases import first_of
from tests.support.stencil import change_sessions

pytestmark = pytest.mark.usefixtures("forked_starts")

PROBLEM = [{"n": 20, "dtype": "float32", "order": 2}]
STAGED = Path(__file__).resolve().parents[1] / "support" / "staged_child.py"
STEADY = Method(
    repeats=Repeats(minimum=3, maximum=3, budget_ms=1e6),
    slow_factor=1e9,
    timeout_s=20.0,
    graph_below_us=0,
    energy_ms=0,
    control_s=1e-6,
    drift=0.02,
)
"""The control after every row: a staged device has the times that a test gives it."""


def run(shard, path, telemetry=None):
    """Rows that count, and notes."""
    with Journal(path, "print", shard.spec.key_columns) as journal:
        measure_shard(shard, journal, telemetry)
        assert not remaining(shard, journal)
        assert not second_attempts(shard, journal)
        return list(journal.rows), list(journal.notes)


def test_a_steady_card_is_measured_once(make_shard, tmp_path):
    shard = make_shard(PROBLEM, script=STAGED, method=STEADY, slower_from=10**9)
    rows, notes = run(shard, tmp_path / "j")
    assert {row["attempt"] for row in rows} == {1}
    ratios = [note["ratio"] for note in notes if note["note"] == "control"]
    assert len(ratios) >= len(rows) - 2
    assert set(ratios) == {1.0}


def test_a_shard_that_shares_begins_with_a_control_that_leaves_room(make_shard, tmp_path):
    # The heaviest problem is taken first, but it would fill too much of the card meanwhile.
    problems = [{**PROBLEM[0], "n": n} for n in (40, 24, 20)]
    one = make_shard(problems, script=STAGED, method=STEADY, slower_from=10**9)
    spec = one.spec
    memory = int(spec.value(spec.work.footprint_bytes, problems[1]) / CONTROL_SHARE)
    facts = {**one.gpu_facts, "gpu_memory_bytes": memory}
    claims = Claims(tmp_path / "claims", "1", 2, problems)
    shard = dataclasses.replace(one, gpu_facts=facts).sharing(claims, [])
    rows, notes = run(shard, tmp_path / "j")
    assert {row["n"] for row in rows} == {40, 24, 20}
    controls = [note for note in notes if note["note"] == "control"]
    assert {note["problem"]["n"] for note in controls} == {24}
    assert len(controls) >= len(rows) - 4


def test_rows_around_a_drift_are_measured_again_and_no_others(make_shard, tmp_path):
    # From some launch on everything takes 5 % longer, as on a card that grew warm.
    shard = make_shard(PROBLEM, script=STAGED, method=STEADY, slower_from=60)
    began = time.monotonic()
    rows, notes = run(shard, tmp_path / "j")
    took = time.monotonic() - began
    again = [row for row in rows if row["attempt"] == 2]
    first = [row for row in rows if row["attempt"] == 1]
    assert again
    assert first
    # Before the drift 1 ms, after it 1.05: no row of the slow time is left from the first attempt,
    # but for the very one in which it began.
    assert sum(row["time_ms"] == pytest.approx(1.05) for row in first) <= 1
    assert {row["status"] for row in rows} == {"ok"}
    ratios = [note["ratio"] for note in notes if note["note"] == "control"]
    assert max(ratios) == pytest.approx(1.05)
    # Nothing is measured a third time, and one process does it all.
    written = read_journal(tmp_path / "j")[1]
    assert len(written) == len(rows) + len(again)
    (seconds,) = (note for note in notes if note["note"] == "seconds")
    assert 0 < sum(seconds["spent"].values()) <= seconds["total"] <= took


def test_rows_whose_repeats_are_far_apart_are_measured_again_once(make_shard, tmp_path):
    method = STEADY.model_copy(update={"control_s": 0.0})
    shard = make_shard(PROBLEM, script=STAGED, method=method, disturbed_until=60)
    rows, _ = run(shard, tmp_path / "j")
    written = read_journal(tmp_path / "j")[1]
    disturbed = [row for row in written if row["time_ms"] == pytest.approx(1.3)]
    assert disturbed, "no row was disturbed"
    assert {row["attempt"] for row in disturbed} == {1}
    assert sum(row["attempt"] == 2 for row in rows) == len(disturbed)
    assert {row["time_ms"] for row in rows} == {1.0}
    # A card that is disturbed for ever is not measured for ever.
    shard = make_shard(PROBLEM, script=STAGED, method=method, disturbed_until=10**9)
    rows, _ = run(shard, tmp_path / "k")
    assert {row["attempt"] for row in rows} == {2}
    assert {row["time_ms"] for row in rows} == {1.3}


def test_what_is_not_verified_is_measured_again_like_others_and_becomes_a_table(
    make_shard, stencil_copy, tmp_path
):
    source = "    source: column.cu\n"
    planted(stencil_copy, "spec.yaml", source, f"{source}    verified: false\n")
    shard = make_shard(PROBLEM, script=STAGED, method=STEADY, slower_from=60)
    rows, notes = run(shard, tmp_path / "j")
    status = {row["variant"]: row["status"] for row in rows}
    assert status == {"linear": "ok", "block3d": "ok", "column": "unverified"}
    again = {row["variant"] for row in rows if row["attempt"] == 2}
    assert again == {"block3d", "column"}
    table = rows_to_table(rows, notes, shard.spec)
    schema = measurement_schema(shard.spec)
    write_table(tmp_path / "sweep.parquet", table, schema)
    found = read_table(tmp_path / "sweep.parquet", schema)
    assert found["time_ms"].notna().all()
    assert found["bandwidth_gbs"].notna().all()


def throttled(make_shard, folder, first, later):
    """Rows that count, and all that were written, of a card whose state changes after three."""

    def source():
        # However long a busy machine takes for them.
        clock, mask = first if len(read_journal(folder / "j")[1]) < 3 else later
        return Sample(time.monotonic(), clock, 3200, 40, 400, throttle=mask)

    shard = make_shard(PROBLEM, script=STAGED, method=STEADY, pause_s=0.02)
    with Telemetry(source, 0.01) as telemetry:
        rows, _ = run(shard, folder / "j", telemetry)
    return rows, read_journal(folder / "j")[1]


COOL, HOT, CAPPED = (1980, 0), (1500, 0x20), (900, 0x4)


def test_rows_measured_on_a_throttled_card_are_measured_again_once(make_shard, tmp_path):
    rows, written = throttled(make_shard, tmp_path, HOT, COOL)
    hot_rows = [row for row in written if row["throttle"] == "sw_thermal"]
    assert hot_rows, "the staged card was never measured while it was hot"
    assert {row["attempt"] for row in hot_rows} == {1}
    assert sum(row["attempt"] == 2 for row in rows) == len(hot_rows)
    assert all(row["throttle"] == "" for row in rows)
    assert {row["sm_clock_mhz"] for row in rows} <= {1980.0}


def test_a_card_that_stays_throttled_is_flagged_and_not_measured_for_ever(make_shard, tmp_path):
    rows, written = throttled(make_shard, tmp_path, COOL, CAPPED)
    held_back = [row for row in rows if row["throttle"] == "sw_power_cap"]
    assert len(held_back) >= len(rows) - 4
    assert {row["attempt"] for row in held_back} == {2}
    assert len(written) == len(rows) + len(held_back)


def test_a_card_that_never_was_faster_is_measured_once(make_shard, tmp_path):
    rows, _ = throttled(make_shard, tmp_path, CAPPED, CAPPED)
    assert {row["throttle"] for row in rows} == {"sw_power_cap"}
    assert {row["attempt"] for row in rows} == {1}


TWICE = """
import dataclasses


def change(session):
    launch = session.launch
    session.launch = lambda chosen: dataclasses.replace(launch(chosen), solves=2)
"""


def test_energy_is_measured_for_the_best_and_the_control(make_shard, stencil_copy, tmp_path):
    change_sessions(stencil_copy, TWICE)
    method = STEADY.model_copy(update={"energy_ms": 200.0})
    shard = make_shard(PROBLEM, script=STAGED, method=method, pause_s=0.001)
    with Telemetry(steady, 0.005) as telemetry:
        _rows, notes = run(shard, tmp_path / "j", telemetry)
    energies = [note for note in notes if note["note"] == "energy"]
    assert 1 <= len(energies) <= 4
    # A staged launch of 1 ms really takes 1 ms on the clock, at 350 W; it solves the problem twice.
    for note in energies:
        assert note["energy_j"] == pytest.approx(WATTS * 0.5e-3, rel=0.5)
        assert note["sustained_ms"] == pytest.approx(0.5, rel=0.5)


def test_what_a_gpu_cannot_exceed():
    rates = {"copy_bandwidth_gbs": 4000.0, "float32_gflops": 60e3}
    rates |= {"tf32_gflops": 300e3, "float16_gflops": 600e3, "bfloat16_gflops": 500e3}
    known = profile("big")
    known = known.model_copy(update={"ceilings": known.ceilings.model_copy(update=rates)})
    fastest = Fastest.of(known)
    assert fastest.least_us(4e9, 0) == pytest.approx(1000)
    assert fastest.least_us(4e9, 6e15) == pytest.approx(10e6)


def test_an_explorer_whose_time_is_over_goes_on_when_it_is_given_more(make_shard, tmp_path):
    def shard(minutes, seconds, budget=None):
        method = quick(kind="random", minutes=minutes, budget=budget)
        return dataclasses.replace(make_shard(PROBLEM, method=method), problem_seconds=seconds)

    # However short the time: there is an answer.
    rows, _ = run(shard(1, 1e-9), tmp_path / "j")
    assert [row["variant"] for row in rows] == ["linear"]
    again, _ = run(shard(1, 1e-9), tmp_path / "j")
    assert again == rows
    more, _ = run(shard(2, 1e-9), tmp_path / "j")
    assert more[0] == rows[0]
    assert len(more) == 2
    # Rows without a limit of time.
    budget, _ = run(shard(None, None, 5), tmp_path / "j")
    assert len(budget) == 5
    assert len(run(shard(3, 1e-9, 5), tmp_path / "j")[0]) == 5


def test_a_search_that_ended_early_goes_on_when_less_is_to_be_left(make_shard, tmp_path):
    def shard(percent):
        method = quick(kind="transfer", budget=14, stop_below_percent=percent)
        return make_shard(PROBLEM, method=method)

    # Nothing may take a hundredth of the time.
    rows, _ = run(shard(99), tmp_path / "j")
    assert len(rows) == 5
    for same in (99, 99.5):
        again, _ = run(shard(same), tmp_path / "j")
        assert again == rows
    every, _ = run(shard(None), tmp_path / "j")
    assert every[:5] == rows
    assert len(every) == 14
    assert run(shard(99), tmp_path / "j")[0] == every


def test_a_search_starts_from_the_problems_that_were_measured_before_it(make_shard, tmp_path):
    method = quick(kind="transfer", budget=6)
    problems = [{**PROBLEM[0], "n": n} for n in (20, 24, 28)]
    shard = make_shard(problems, method=method)
    with Journal(tmp_path / "j", "print", shard.spec.key_columns) as journal:
        alone = remaining(shard, journal)
        assert [task["problem"] for task in alone] == problems[:1]
        assert alone[0]["explore"]["prior"] == []
        measure_shard(make_shard(problems[:2], method=method), journal)
        (last,) = remaining(shard, journal)
        measure_shard(shard, journal)
    assert last["problem"] == problems[2]
    known = last["explore"]["prior"]
    tunables = shard.spec.tunable_columns
    for found, problem in zip(known, problems[1::-1], strict=True):
        rows = [row for row in journal.rows if row["n"] == problem["n"]]
        assert len(rows) == 6
        assert found == ({}, [([row[name] for name in tunables], row["time_ms"]) for row in rows])
    # Each began when the one before it had ended, in one process.
    assert [row["n"] for row in journal.rows] == [20] * 6 + [24] * 6 + [28] * 6
    assert sum(note["note"] == "seconds" for note in journal.notes) == 2


@pytest.mark.parametrize("kind", first_of(["transfer", "random"]))
def test_an_explorer_measures_its_budget_and_goes_on_after_a_stop(
    make_shard, stencil_copy, tmp_path, kind
):
    guess = {**space.baseline(load_spec(stencil_copy)), "variant": "column", "tz": 2}
    shards = [make_shard(PROBLEM, method=quick(kind=kind, budget=budget)) for budget in (6, 9)]
    for shard in shards:
        object.__setattr__(shard, "guesses", lambda problem: [guess])
    rows, _ = run(shards[0], tmp_path / "j")
    assert len(rows) == 6
    assert rows[0]["variant"] == "linear"
    assert {name: rows[1][name] for name in guess} == guess
    more, _ = run(shards[1], tmp_path / "j")
    assert more[:6] == rows
    assert len(more) == 9
    # A space smaller than the budget comes to an end, and stays there.
    whole = make_shard(PROBLEM, method=quick(kind=kind, budget=1000))
    everything, _ = run(whole, tmp_path / "j")
    exhaustive, _ = run(make_shard(PROBLEM), tmp_path / "k")
    assert {json.dumps([row[name] for name in whole.spec.key_columns]) for row in everything} == {
        json.dumps([row[name] for name in whole.spec.key_columns]) for row in exhaustive
    }
    again, _ = run(whole, tmp_path / "j")
    assert again == everything
    assert [note["budget"] for note in read_notes(tmp_path / "j") if note["note"] == "explored"]
