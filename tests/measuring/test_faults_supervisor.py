"""A supervisor that is asked to stop, or killed: no row is lost or doubled, no process left."""

import json
import os
import signal
import subprocess

import pytest
from supervising import has_ended, pids, row_lines, rows_of, until
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
