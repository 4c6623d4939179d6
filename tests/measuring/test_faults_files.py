"""Full disks, damaged or foreign journals, two writers, a jumping clock: no row lost or changed."""

import os
import pickle
import resource
import socket
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from supervising import (
    FINGERPRINT,
    ending,
    finished,
    has_ended,
    pids,
    row_lines,
    rows_of,
    supervise,
    sweep,
    until,
)
from sweep_script import finished_stage, last_words, stage

from launchwise.measuring.journal import Journal

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


def test_a_disk_that_became_read_only_costs_no_row(faulty, small_disk):
    shard, path = faulty(), small_disk / "j"
    ballast = leave(3, small_disk)
    assert ending(shard, path)[0] == 1
    ballast.unlink()
    kept = row_lines(path)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert ending(shard, path) == (1, f"{path}: cannot be written: Read-only file system")
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert row_lines(path) == kept
    assert ending(shard, path) == (0, "")
    assert all_ok(finished(shard, path, kept))


def test_a_file_that_may_not_grow_costs_the_row_in_hand_and_no_other(faulty, tmp_path):
    shard, path = faulty(), tmp_path / "j"
    # Kernels are compiled first: their files must not meet the limit.
    assert ending(shard, tmp_path / "other") == (0, "")
    limit = len((tmp_path / "other").read_bytes()) // 2

    def first():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    assert ending(shard, path, first) == (1, f"{path}: cannot be written: File too large")
    kept = row_lines(path)
    assert len(kept) > 5
    assert path.read_bytes().endswith(b"}\n")
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


def leave_notes_out(path):
    """Make rows the last lines of a journal."""
    header = path.read_bytes().split(b"\n", 1)[0]
    path.write_bytes(b"".join(line + b"\n" for line in [header, *row_lines(path)]))


def test_whatever_happens_to_the_tail_of_a_journal_every_row_is_whole_or_gone(faulty, tmp_path):
    shard, path = faulty(), tmp_path / "j"
    sweep(shard, path)
    leave_notes_out(path)
    content, lines, rows = path.read_bytes(), row_lines(path), rows_of(path)
    columns = shard.spec.key_columns

    @settings(max_examples=120)
    @given(st.data())
    def check(data):
        hurt = data.draw(st.integers(1, 3), "lines of the tail")
        tail = bytearray(b"".join(line + b"\n" for line in lines[-hurt:]))
        spots = st.tuples(
            st.integers(0, len(tail) - 1),
            st.sampled_from(b'0123456789"{}[]:,-+eEntf\n\0 ') | st.integers(0, 255),
        )
        for spot, byte in data.draw(st.lists(spots, max_size=4), "bytes"):
            tail[spot] = byte
        cut = data.draw(st.integers(0, len(tail)), "cut")
        more = data.draw(st.binary(max_size=20), "more")
        path.write_bytes(content[: -len(tail)] + bytes(tail[:cut]) + more)
        with Journal(path, FINGERPRINT, columns) as journal:
            assert journal.rows[: len(rows) - hurt] == rows[:-hurt]
            assert all(row in rows[-hurt:] for row in journal.rows[len(rows) - hurt :])
            for row in rows:
                journal.append(row)
        assert sorted(row_lines(path)) == sorted(lines)

    check()


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
