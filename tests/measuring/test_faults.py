"""Whatever a kernel or a measuring process does: one row says it, and every other row is there."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from slow_cases import first_of
from stencil import change_sessions
from supervising import ending, finished, pids, row_lines

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.experiment.method import Method
from launchwise.measuring import listening, process
from launchwise.measuring.journal import Journal, read_journal
from launchwise.measuring.listening import MAX_BARREN_PROCESSES
from launchwise.measuring.sweep import measure_shard

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = {"n": 20, "dtype": "float32", "order": 2}
MARKED = 2
WAITED_FOR = {"asleep": 3.0, "mute": 3.0, "nonsense": 120.0}
"""Seconds of silence that are waited for: much more than a start takes on a busy machine, or more
than a test takes where nothing is to be waited for."""


def run(shard, path):
    """Rows of a whole sweep, checked (see ``supervising.finished``)."""
    assert ending(shard, path) == (0, "")
    return finished(shard, path)


def walked(row):
    """Points that a thread walks in a row; 1 for variants other than ``column``."""
    return int(row["tz"])


def not_ok(rows):
    """Points that a thread walks -> status and reason of what could not be measured."""
    return {walked(row): (row["status"], row["reason"]) for row in rows if row["status"] != "ok"}


def with_kernel(shard, text):
    """The shard with another ``column.cu``."""
    (shard.folder / "column.cu").write_text(text)
    return shard


def test_seven_kernels_misbehave_in_seven_ways(faulty, tmp_path):
    shard = faulty(timeout_s=4.0)
    kernel = (ROOT / "tests" / "gpu" / "faulty_column.cu").read_text()
    shard = with_kernel(shard, kernel)
    rows = run(shard, tmp_path / "j")
    where = "(block 0, 0, 0, thread 0, 0, 0)"
    expected = {
        2: ("failed", f"column: accesses memory at , where no buffer lies {where}"),
        3: ("timeout", "no event for 4 s"),
        4: ("wrong", "output[0, 0, 0] is nan, expected -0.26"),
        5: ("wrong", "the input grid[0, 0, 0] is overwritten: "),
        6: ("wrong", "output[0, 0, 0] is 0.73"),
        7: ("failed", f"column: executes an illegal instruction {where}"),
        8: ("failed", "the measuring process was killed by SIGABRT"),
    }
    found = not_ok(rows)
    assert {number: status for number, (status, _) in found.items()} == {
        number: status for number, (status, _) in expected.items()
    }
    for number, (_, begin) in expected.items():
        assert re.sub("0x[0-9a-f]+", "", found[number][1]).startswith(begin)
    for row in rows:
        assert (row["time_ms"] is None) == (row["times_ms"] == []) == (row["status"] != "ok")
    # One process for each that was lost and one more at most; wrong results cost none.
    assert len(pids(shard)) <= 5


NOT_NOTICING = read_yaml(ROOT / "tests/measuring/data/hosts.yaml")["not noticing"]
"""Host code of a workload that takes what max() gives: NaN is not above its tolerance."""


def test_a_workload_that_does_not_notice_nan_gets_no_time_for_it(faulty, tmp_path):
    shard = faulty()
    kernel = (ROOT / "tests" / "gpu" / "faulty_column.cu").read_text()
    # Without what ends a process.
    for number in (2, 3, 7, 8):
        kernel = kernel.replace(f"case {number}:", f"case 1{number}:")
    shard = with_kernel(shard, kernel)
    change_sessions(shard.folder, NOT_NOTICING)
    rows = run(shard, tmp_path / "j")
    (row,) = [row for row in rows if walked(row) == 4]
    assert (row["status"], row["reason"]) == ("wrong", "the largest error is nan")
    assert row["max_error"] is None
    assert sorted(not_ok(rows)) == [4, 5, 6]
    assert len(pids(shard)) == 1


@pytest.mark.parametrize(
    ("fault", "status", "reason", "processes"), read_yaml(ROOT / "tests/measuring/data/faults.yaml")
)
def test_a_fault_in_a_row_is_that_row(faulty, tmp_path, fault, status, reason, processes):
    shard = faulty(timeout_s=WAITED_FOR.get(fault, 20.0), fault=fault, at="launch")
    rows = run(shard, tmp_path / "j")
    assert list(not_ok(rows)) == [MARKED]
    found, said = not_ok(rows)[MARKED]
    assert found == status
    assert said.startswith(reason)
    assert "\n" not in said
    assert len(pids(shard)) == processes


@pytest.mark.parametrize("fault", ["killed", "half a row, dead", "nonsense, dead", "asleep"])
def test_a_fault_between_two_rows_is_no_row_s_fault(faulty, tmp_path, fault):
    shard = faulty(timeout_s=WAITED_FOR.get(fault, 20.0), fault=fault, at="row")
    rows = run(shard, tmp_path / "j")
    assert not_ok(rows) == {}
    assert len(pids(shard)) == 2


def test_a_process_that_cannot_be_killed_ends_the_sweep_and_its_row_is_known(
    faulty, tmp_path, monkeypatch
):
    # What a driver that hangs does to a kill: nothing.
    monkeypatch.setattr(subprocess.Popen, "kill", lambda self: None)
    for module in (listening, process):
        monkeypatch.setattr(module, "KILLED_S", 0.2)
    shard = faulty(timeout_s=2.0, fault="asleep", at="launch")
    try:
        with Journal(tmp_path / "j", "print", shard.spec.key_columns) as journal:
            with pytest.raises(UserError, match=r"process \d+ does not end, not even killed"):
                measure_shard(shard, journal, None)
            assert not_ok(journal.rows)[MARKED][0] == "timeout"
    finally:
        for pid in pids(shard):
            os.kill(pid, signal.SIGKILL)


def test_a_process_that_dies_again_and_again_is_followed_as_long_as_it_measures(faulty, tmp_path):
    shard = faulty(fault="killed", at="every", every=3)
    rows = run(shard, tmp_path / "j")
    assert not_ok(rows) == {}
    assert len(pids(shard)) >= len(rows) // 3 > MAX_BARREN_PROCESSES


def test_memory_that_a_layout_lacks_costs_its_rows_and_no_others(faulty, tmp_path):
    # Rows of 30 floats: 371 424 B for all arrays, 378 624 B when rows are padded.
    problem = {**PROBLEM, "n": 30}
    shard = faulty(problems=[problem, PROBLEM], device_bytes=375_000)
    rows = run(shard, tmp_path / "j")
    lacking = [row for row in rows if row["status"] != "ok"]
    padded = [row for row in rows if row["n"] == 30 and row["row_padding"]]
    assert lacking == padded != []
    assert {row["status"] for row in lacking} == {"out_of_memory"}
    assert all("87808 B asked" in row["reason"] for row in lacking)
    assert len(pids(shard)) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    first_of(
        [
            ("killed", "the measuring process was killed by SIGKILL"),
            ("python", "ZeroDivisionError: division by zero"),
            ("asleep", "no event for 1 s"),
        ]
    ),
)
def test_a_process_that_never_gets_ready_is_tried_three_times(faulty, tmp_path, fault, reason):
    path = tmp_path / "j"
    run(faulty(), path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    kept = row_lines(path)
    before = len(pids(faulty()))
    shard = faulty(timeout_s=1.0 if fault == "asleep" else 20.0, fault=fault, at="open")
    assert ending(shard, path) == (1, f"sweep: cpu: cannot measure: {reason}")
    assert len(pids(shard)) - before == MAX_BARREN_PROCESSES == 3
    assert row_lines(path) == kept
    # Once the machine is mended, the same command goes on.
    assert not_ok(run(faulty(), path)) == {}
    assert row_lines(path)[: len(kept)] == kept


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("lost", "cuInit failed: no CUDA-capable device is detected"),
        ("memory cells", "cuLaunchKernel failed: uncorrectable ECC error"),
    ],
)
def test_what_is_wrong_with_the_card_costs_no_row(faulty, tmp_path, fault, said):
    path = tmp_path / "j"
    shard = faulty(fault=fault, at="launch")
    code, message = ending(shard, path)
    assert code == 1
    assert message.startswith(f"sweep: cpu: cannot measure: {said}")
    rows = read_journal(path)[1]
    assert rows
    assert MARKED not in map(walked, rows)
    Path(shard.environment["STARTS"] + ".lost").unlink(missing_ok=True)
    # The card is back: nothing was held against the configuration that it was lost with.
    whole = run(faulty(), path)
    assert not_ok(whole) == {}
    assert len(whole) > len(rows)


def test_a_process_that_never_reads_what_to_do_is_given_up(make_shard, tmp_path):
    script = tmp_path / "deaf.py"
    script.write_text("import signal\nsignal.pause()\n")
    # More work than a pipe holds: whoever writes all of it first waits for ever.
    problems = [{**PROBLEM, "n": n} for n in range(20, 80)]
    method = Method.model_validate({"timeout_s": 1.0})
    shard = make_shard(problems, script=script, method=method)
    said = "sweep: cpu: cannot measure: no event for 1 s"
    assert ending(shard, tmp_path / "j") == (1, said)
