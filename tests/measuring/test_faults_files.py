"""Full disks, damaged or foreign journals, two writers, a jumping clock: no row lost or changed."""

import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

from supervising import (
    ending,
    finished,
    has_ended,
    pids,
    row_lines,
    supervise,
    until,
)
from sweep_script import finished_stage, last_words, stage

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
