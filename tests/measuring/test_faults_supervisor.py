"""A supervisor that is stopped or killed, full disks, two writers, a jumping clock: no row lost."""

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from supervising import ending, finished, has_ended, pids, row_lines, rows_of, supervise, until
from sweep_script import finished_stage, last_words, stage

from launchwise.base.scripting import EXIT_RESUMABLE

TERM, INT, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGKILL


@pytest.fixture
def held(faulty, tmp_path):
    """A stage whose marked row is in hand until ``go`` is called, and its measuring process."""
    shard = faulty(fault="waiting", at="launch", once=str(tmp_path / "once"))
    supervisor = stage(shard, tmp_path)
    try:
        wait_for_the_marked_row(supervisor, tmp_path)
        (child,) = pids(shard)
        try:
            yield shard, supervisor, child
        finally:
            if not has_ended(child, 0):
                os.kill(child, KILL)
    finally:
        supervisor.end()


def wait_for_the_marked_row(supervisor, folder):
    """Wait until the supervisor, too, knows that it is in hand."""
    until((folder / "once").exists, "the marked row")
    until(supervisor.is_waiting, "the supervisor to hear of it")


def go(folder):
    """Let the marked row finish."""
    (folder / "starts.go").touch()


def is_marked(row):
    """Whether a row is the one that was in hand."""
    return (row["variant"], row["tz"]) == ("column", 2)


@pytest.mark.parametrize(
    ("signals", "to_all"),
    [([TERM], False), ([INT], False), ([TERM, TERM], False), ([TERM, INT], False), ([TERM], True)],
)
def test_a_request_to_stop_lets_the_row_finish_and_the_next_run_goes_on(
    held, tmp_path, signals, to_all
):
    shard, supervisor, child = held
    for number in signals:
        supervisor.send(number)
        if to_all:  # As Slurm does: every process of a job step gets it.
            os.kill(child, number)
        until(supervisor.has_noticed, "the signal to arrive")
    go(tmp_path)
    assert supervisor.wait() == EXIT_RESUMABLE == 75
    kept = row_lines(tmp_path / "j")
    how = f"signal {int(signals[0])}: {len(kept)} rows are kept"
    assert last_words(tmp_path) == f"W {how}; run the same command again to resume"
    assert is_marked(rows_of(tmp_path / "j")[-1])
    assert has_ended(child, 0)
    assert not (tmp_path / "sweep.parquet").exists()
    again = stage(shard, tmp_path)
    assert again.wait() == 0
    assert {row["status"] for row in finished_stage(shard, tmp_path, kept)} == {"ok"}
    assert len(pids(shard)) == 2


def test_a_request_to_stop_does_not_start_another_process_when_one_died(held, tmp_path):
    shard, supervisor, child = held
    supervisor.send(TERM)
    until(supervisor.has_noticed, "the signal to arrive")
    os.kill(child, signal.SIGSEGV)
    assert supervisor.wait() == EXIT_RESUMABLE
    rows = rows_of(tmp_path / "j")
    assert (rows[-1]["status"], rows[-1]["reason"]) == (
        "failed",
        "the measuring process was killed by SIGSEGV",
    )
    assert len(pids(shard)) == 1


def test_a_request_to_stop_during_a_row_that_never_ends_waits_for_its_timeout_and_no_more(
    faulty, tmp_path
):
    shard = faulty(3.0, fault="asleep", at="launch", once=str(tmp_path / "once"))
    supervisor = stage(shard, tmp_path)
    try:
        wait_for_the_marked_row(supervisor, tmp_path)
        supervisor.send(TERM)
        assert supervisor.wait() == EXIT_RESUMABLE
    finally:
        supervisor.end()
    rows = rows_of(tmp_path / "j")
    assert is_marked(rows[-1])
    assert rows[-1]["status"] == "timeout"
    assert len(pids(shard)) == 1


def test_a_killed_supervisor_takes_its_measuring_process_along(held, tmp_path):
    shard, supervisor, child = held
    supervisor.send(KILL)
    assert supervisor.wait() == -KILL
    kept = row_lines(tmp_path / "j")
    # The row in hand never ends: a process that waited for its end would measure on alone.
    assert has_ended(child, 10)
    assert row_lines(tmp_path / "j") == kept
    # The card is free at once, and so is the journal.
    again = stage(shard, tmp_path)
    assert again.wait() == 0
    assert {row["status"] for row in finished_stage(shard, tmp_path, kept)} == {"ok"}


def test_a_measuring_process_whose_supervisor_died_before_it_was_ready_does_not_measure(
    faulty, tmp_path
):
    shard = faulty(fault="asleep", at="open")
    reader, writer = os.pipe()
    with subprocess.Popen(
        shard.command, stdin=subprocess.PIPE, stdout=writer, env=dict(shard.environment)
    ) as child:
        os.close(writer)
        os.close(reader)  # Nobody reads what it says: so it is with a supervisor that is gone.
        try:
            job = {"folder": str(shard.folder), "tasks": [], **shard.job}
            child.stdin.write(json.dumps(job).encode() + b"\n")
            child.stdin.close()
            assert has_ended(child.pid, 20)
        finally:
            child.kill()


SUPPORT = Path(__file__).resolve().parents[1] / "support"
PAGE = 4096


def leave(pages, disk):
    """A file that fills the small disk but for so many pages."""
    free = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(free.f_bavail * free.f_frsize - pages * PAGE))
    return ballast


def all_ok(rows):
    """Whether every row was measured."""
    return {row["status"] for row in rows} == {"ok"}


def test_a_disk_that_fills_up_costs_the_row_in_hand_and_no_other(faulty, small_disk):
    shard, path = faulty(), small_disk / "j"
    ballast = leave(3, small_disk)
    said = f"{path}: cannot be written: No space left on device"
    assert ending(shard, path) == (1, said)
    kept = row_lines(path)
    assert len(kept) > 5
    assert path.read_bytes().endswith(b"}\n")
    assert all(has_ended(pid, 0) for pid in pids(shard))
    # Without room not even the journal can be opened, and that is said, too.
    assert ending(shard, path) == (1, said)
    assert row_lines(path) == kept
    assert len(pids(shard)) == 1
    ballast.unlink()
    assert ending(shard, path) == (0, "")
    assert all_ok(finished(shard, path, kept))


def test_a_disk_too_full_for_the_table_costs_no_measurement(faulty, small_disk, tmp_path):
    shard, table = faulty(), small_disk / "sweep.parquet"
    ballast = leave(2, small_disk)
    assert stage(shard, tmp_path, table).wait() == 1
    said = last_words(tmp_path)
    assert said.startswith(f"E launchwise: {table}: cannot be written: ")
    assert "No space left on device" in said
    assert os.listdir(small_disk) == ["ballast"]
    kept = row_lines(tmp_path / "j")
    ballast.unlink()
    assert stage(shard, tmp_path, table).wait() == 0
    assert all_ok(finished_stage(shard, tmp_path, kept, table))
    assert row_lines(tmp_path / "j") == kept
    assert len(pids(shard)) == 1


def test_a_second_supervisor_is_told_of_the_first_and_changes_nothing(faulty, tmp_path):
    path = tmp_path / "j"
    shard = faulty(fault="waiting", at="launch", once=str(tmp_path / "once"))
    supervisor = supervise(shard, path)
    try:
        until((tmp_path / "once").exists, "the marked row")
        kept = row_lines(path)
        holder = f"process {supervisor.pid} on {socket.gethostname()}"
        code, said = ending(shard, path)
        assert (code, said) == (1, f"{path}: is being written by {holder}")
        (tmp_path / "starts.go").touch()
        assert supervisor.wait() == 0
    finally:
        supervisor.end()
    assert all_ok(finished(shard, path, kept))
    assert len(pids(shard)) == 1


def test_a_clock_that_jumps_ends_nothing_early_and_lets_nothing_hang(faulty, tmp_path):
    library = tmp_path / "clock.so"
    source = SUPPORT / "jumping_clock.cpp"
    compile_it = ["g++", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(compile_it, check=True)
    shard, path = faulty(3.0, fault="asleep", at="launch"), tmp_path / "j"
    shard.environment["LD_PRELOAD"] = str(library)
    program = (
        "import pathlib, pickle, sys; sys.path.insert(0, sys.argv[1]); import supervising;"
        "supervising.sweep(pickle.load(sys.stdin.buffer), pathlib.Path(sys.argv[2]))"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(SUPPORT), str(path)],
        input=pickle.dumps(shard),
        env=dict(shard.environment),
        check=True,
        timeout=60,
    )
    rows = finished(shard, path)
    bad = [(row["status"], row["reason"], row["tz"]) for row in rows if row["status"] != "ok"]
    assert bad == [("timeout", "no event for 3 s", 2)]
    days = {row["measured_at"][:10] for row in rows}
    assert len(days) > 2, "the clock did not jump"
