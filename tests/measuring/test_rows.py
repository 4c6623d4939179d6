"""From journal rows and notes to a table of measurements, and rows that a drift puts in doubt."""

from types import SimpleNamespace

import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.experiment.method import Method
from launchwise.measuring.repeats import check_one_way, make_row, rows_to_table
from launchwise.measuring.sweep import seconds_of
from launchwise.measuring.tasks import control_of, drifted_rows, energy_tasks, second_attempts
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space

PROBLEM = {"n": 102, "dtype": "float32", "order": 2}
LABELS = {
    "gpu": "g", "workload": "stencil", "card": "c", "driver": "d", "toolkit": "t",
    "backend": "b", "commit": "x",
}  # fmt: skip
TIMED = {"status": "ok", "time_ms": 0.1, "times_ms": [0.1, 0.11, 0.09], "repeats": 3}


def rows(spec, *found, problem=PROBLEM):
    chosen = space.configurations(spec, problem)[: len(found)]
    return [
        make_row(LABELS, {**problem, **one}, facts)
        for one, facts in zip(chosen, found, strict=True)
    ]


def key(spec, row):
    return [row[name] for name in spec.key_columns]


def test_rates_are_the_problems_work_by_its_time(stencil_spec):
    table = rows_to_table(rows(stencil_spec, TIMED), [], stencil_spec)
    (row,) = table.to_dict("records")
    # 100^3 points: three arrays read and one written, 9 operations a point at radius 1.
    assert row["bandwidth_gbs"] == pytest.approx(100**3 * 16 / 1e-4 / 1e9)
    assert row["flop_rate_gflops"] == pytest.approx(100**3 * 9 / 1e-4 / 1e9)


def test_what_was_not_measured_has_no_time_and_no_rate(stencil_spec):
    found = rows(stencil_spec, TIMED, {"status": "timeout", "reason": "no event"})
    table = rows_to_table(found, [], stencil_spec)
    lost = table[table["status"] == "timeout"]
    assert lost[["time_ms", "bandwidth_gbs", "flop_rate_gflops"]].isna().all(axis=None)


def test_notes_reach_their_rows_and_no_others(stencil_spec, tmp_path):
    found = rows(stencil_spec, TIMED, TIMED, TIMED)
    keys = [key(stencil_spec, row) for row in found]
    names = {name: found[1][name] for name in stencil_spec.key_columns}
    notes = [
        {"note": "control", "ratio": 1.5, "rows": [keys[0]]},
        {"note": "control", "ratio": 1.01, "rows": [keys[0], keys[1]]},
        {"note": "energy", "names": names, "energy_j": 0.02, "sustained_ms": 0.5},
        {"note": "seconds", "total": 2.0, "spent": {"time": 1.0}, "rows": 3},
    ]
    table = rows_to_table(found, notes, stencil_spec)
    by_key = table.set_index(stencil_spec.key_columns)
    # The later control counts: the row may have been measured again.
    assert [by_key.loc[tuple(one), "control_ratio"] for one in keys[:2]] == [1.01, 1.01]
    assert by_key["control_ratio"].isna().sum() == 1
    assert by_key.loc[tuple(keys[1]), "energy_j"] == 0.02
    assert by_key.loc[tuple(keys[1]), "sustained_ms"] == 0.5
    assert by_key["energy_j"].notna().sum() == 1
    # And the schema accepts it, there and back.
    schema = measurement_schema(stencil_spec)
    write_table(tmp_path / "t.parquet", table, schema)
    assert len(read_table(tmp_path / "t.parquet", schema)) == 3


@pytest.mark.parametrize("column", ["driver", "toolkit", "backend"])
def test_rows_of_two_drivers_or_toolkits_are_no_one_sweep(stencil_spec, column):
    table = rows_to_table(rows(stencil_spec, TIMED, TIMED), [], stencil_spec)
    check_one_way(table, "sweep.parquet")
    table.loc[0, column] = "another"
    with pytest.raises(UserError, match="differs between rows of one sweep") as caught:
        check_one_way(table, "sweep.parquet")
    assert caught.value.key == column
    assert "another" in str(caught.value)


def test_seconds_of_every_visit_are_added(stencil_spec):
    visit = {"note": "seconds", "total": 2.0, "spent": {"time": 1.0, "start": 0.5}, "rows": 3}
    other = {"note": "seconds", "total": 1.0, "spent": {"time": 0.25}, "rows": 1}
    note = {"note": "control", "ratio": 1.0, "rows": []}
    assert seconds_of([visit, note, other]) == {"total": 3.0, "time": 1.25, "start": 0.5}


def test_a_row_that_an_older_journal_holds_has_neutral_values(stencil_spec):
    (row,) = rows(stencil_spec, TIMED)
    old = {name: value for name, value in row.items() if name not in ("throttle", "power_w", "l2")}
    (found,) = rows_to_table([old], [], stencil_spec).to_dict("records")
    assert (found["throttle"], found["l2"]) == ("unknown", "")
    assert pd.isna(found["power_w"])


def noted(ratios, card="one"):
    """Notes of a reference kernel; before each, one row was measured."""
    return [
        {"note": "control", "card": card, "ratio": ratio, "rows": [[card, place]]}
        for place, ratio in enumerate(ratios)
    ]


@pytest.mark.parametrize("count", [3, 10])
@pytest.mark.parametrize(
    ("ratio", "doubted"), [(1.25, False), (0.75, False), (1.3, True), (0.7, True)]
)
def test_a_card_that_became_faster_has_drifted_like_a_slower_one(count, ratio, doubted):
    notes = noted([1.0] * (count - 1) + [ratio])
    assert drifted_rows(notes, 0.25) == ({("one", count - 1)} if doubted else set())


def test_ten_times_of_the_reference_kernel_tell_its_noise():
    assert drifted_rows(noted([1.0, 1.1] * 5), 0.02) == set()
    nine = noted([1.0, 1.1] * 4 + [1.0])
    assert drifted_rows(nine, 0.02) == {("one", place) for place in (1, 3, 5, 7)}


@pytest.mark.parametrize(
    ("ratio", "doubted"), [(1.45, True), (1.4, False), (0.65, True), (0.7, False)]
)
def test_of_a_noisy_reference_kernel_times_far_off_the_median_are_in_doubt(ratio, doubted):
    # Up and down by .1: three standard deviations of .1 / .954 are .31, off the median 1.1 or 1.
    noisy = [1.0, 1.1] * 8
    found = drifted_rows(noted([*noisy, ratio]), 0.02)
    assert found == ({("one", len(noisy))} if doubted else set())


def test_every_card_has_a_reference_of_its_own():
    notes = [*noted([1.0] * 12), *noted([1.0, 1.5, 1.0], "two"), {"note": "seconds", "ratio": 9.0}]
    assert drifted_rows(notes, 0.02) == {("two", 1)}


def shard_of(spec, **method):
    """A shard of one problem on a card with room."""
    facts = {"gpu_memory_bytes": 1 << 40}
    fields = {"spec": spec, "problems": [PROBLEM], "labels": LABELS, "gpu_facts": facts}
    return SimpleNamespace(method=Method(**method), **fields)


TRIED = ((0.3, "ok"), (0.2, "ok"), (0.1, "ok"), (0.05, "unverified"), (0.4, "ok"))


def test_energy_is_of_the_best_and_of_the_baseline(stencil_spec):
    times = ({**TIMED, "time_ms": ms, "status": status} for ms, status in TRIED)
    journal = SimpleNamespace(rows=rows(stencil_spec, *times), notes=[])
    (task,) = energy_tasks(shard_of(stencil_spec, energy_ms=200), journal)
    listed = space.configurations(stencil_spec, PROBLEM)
    assert task["configurations"] == [listed[2], listed[0]]
    journal.notes.append({"note": "energies", "problem": PROBLEM})
    assert energy_tasks(shard_of(stencil_spec, energy_ms=200), journal) == []


def test_the_reference_is_the_first_time_of_this_card_if_it_is_right(stencil_spec):
    notes = [
        {"note": "control", "card": card, "problem": PROBLEM, "time_ms": ms}
        for card, ms in (("other", 7.0), ("c", 1.0), ("c", 2.0))
    ]
    shard = shard_of(stencil_spec, control_s=1)
    journal = SimpleNamespace(rows=[], notes=notes)
    found = control_of(shard, journal)
    assert (found["reference_ms"], found["known"]) == (1.0, False)
    journal.rows = rows(stencil_spec, TIMED)
    assert control_of(shard, journal)["known"]
    journal.rows = rows(stencil_spec, {"status": "wrong"})
    assert control_of(shard, journal) is None


@pytest.mark.parametrize(
    ("changed", "again"), read_yaml(ROOT / "tests/measuring/data/disturbed.yaml")
)
def test_disturbed_repeats_of_the_device_are_made_once_more(stencil_spec, changed, again):
    disturbed = {**TIMED, "times_ms": [0.1, 0.1, 0.05], "first_ms": 0.1, "timer": "events"}
    disturbed["attempt"] = 1
    journal = SimpleNamespace(rows=rows(stencil_spec, {**disturbed, **changed}), notes=[])
    assert bool(second_attempts(shard_of(stencil_spec, disturbed=0.1), journal)) == again
