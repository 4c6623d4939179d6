"""The journal: nothing measured is lost, doubled or changed, whatever happens to the file."""

import json
import os
import resource
import subprocess
import sys
import threading
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.measuring.journal import Journal, counted_rows, read_journal, read_notes

KEYS = ["gpu", "n"]


def row(n, **values):
    """A row with text that is not ASCII and numbers that must come back exactly."""
    return {"gpu": "h200.é", "n": n, "time_ms": 0.1 * n + 1e-9, "times": [n / 3, 1e-300], **values}


def fill(path, rows, fingerprint="f"):
    """Write rows into a journal."""
    with Journal(path, fingerprint, KEYS) as journal:
        for each in rows:
            journal.append(each)


def test_rows_of_an_earlier_state_that_measured_the_same_count(tmp_path):
    path = tmp_path / "j"
    fill(path, [row(1), row(2)], "old")
    with Journal(path, "new", KEYS, earlier=["older", "old"]) as journal:
        assert journal.rows == [row(1), row(2)]
    assert read_journal(path) == ({"fingerprint": "new"}, [row(1), row(2)])
    # The other way round it is put aside: nobody said that the new state is the old one.
    with Journal(path, "old", KEYS) as journal:
        assert journal.rows == []


def test_a_journal_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "new" / "1.jsonl"
    fill(path, [row(1), row(2)])
    with Journal(path, "f", KEYS) as journal:
        assert journal.rows == [row(1), row(2)]
        assert row(2) in journal
        assert {"gpu": "h200.é", "n": 2, "other": 0} in journal
        assert row(3) not in journal
        journal.append(row(3))
        assert row(3) in journal
    header, rows = read_journal(path)
    assert header == {"fingerprint": "f"}
    assert rows == [row(1), row(2), row(3)]


def test_a_row_is_on_disk_before_append_returns(tmp_path, monkeypatch):
    synced = []
    with Journal(tmp_path / "j", "f", KEYS) as journal:
        monkeypatch.setattr(os, "fsync", synced.append)
        for n in range(1, 70):
            journal.append(row(n))
            assert read_journal(tmp_path / "j")[1][-1] == row(n)
        assert len(synced) == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda journal: journal.append(row(3)),
        lambda journal: journal.withdraw(row(1)),
        lambda journal: journal.note("seconds", total=1.5, spent={}),
    ],
)
def test_what_a_full_disk_refused_counts_neither_then_nor_later(tmp_path, write):
    path, limits = tmp_path / "j", resource.getrlimit(resource.RLIMIT_FSIZE)
    with Journal(path, "f", KEYS) as journal:
        journal.append(row(1))
        before = path.read_bytes()
        # Part of a line fits.
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limits[1]))
        try:
            with pytest.raises(UserError, match="cannot be written: File too large"):
                write(journal)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (journal.rows, journal.notes, path.read_bytes()) == ([row(1)], [], before)
        write(journal)
    assert path.read_bytes().startswith(before)
    assert path.read_bytes() != before


def test_of_two_rows_with_one_key_the_first_counts(tmp_path):
    path = tmp_path / "j"
    fill(path, [row(1), row(1, time_ms=9.0), row(2)])
    assert read_journal(path)[1] == [row(1), row(2)]
    fill(tmp_path / "other", [row(2, time_ms=9.0), row(3)])
    with open(path, "ab") as file:  # Two machines wrote the same shard; somebody put both together.
        file.write((tmp_path / "other").read_bytes())
    with Journal(path, "f", KEYS) as journal:
        assert journal.rows == [row(1), row(2), row(3)]
    assert read_journal(path)[1] == [row(1), row(2), row(3)]


def test_a_journal_from_before_there_were_checksums_goes_on(tmp_path):
    path = tmp_path / "j"
    entries = [{"fingerprint": "f"}, row(1), row(2)]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    fill(path, [row(1, time_ms=9.0), row(3)])
    assert read_journal(path)[1] == [row(1), row(2), row(3)]
    assert path.read_text().count("crc32") == 4


def test_a_journal_of_something_else_is_put_aside_and_not_lost(tmp_path):
    path = tmp_path / "j"
    fill(path, [row(1)], "one")
    fill(path, [row(2)], "two")
    fill(path, [row(3)], "one")
    fill(path, [row(4)], "two")
    assert read_journal(path) == ({"fingerprint": "two"}, [row(4)])
    kept = [read_journal(each) for each in sorted(tmp_path.glob("j.one*"))]
    assert kept == [({"fingerprint": "one"}, [row(1)]), ({"fingerprint": "one"}, [row(3)])]
    assert read_journal(tmp_path / "j.two") == ({"fingerprint": "two"}, [row(2)])


ROWS = [row(n) for n in range(8)]


@settings(max_examples=200)
@given(st.data())
def test_whatever_happens_to_the_tail_of_a_journal_every_row_is_whole_or_gone(
    tmp_path_factory, data
):
    path = tmp_path_factory.mktemp("tail") / "j"
    fill(path, ROWS)
    header, *lines = path.read_bytes().splitlines(keepends=True)
    hurt = data.draw(st.integers(1, 3), "lines of the tail")
    tail = bytearray(b"".join(lines[-hurt:]))
    spots = st.tuples(
        st.integers(0, len(tail) - 1),
        st.sampled_from(b'0123456789"{}[]:,-+eEntf\n\0 ') | st.integers(0, 255),
    )
    for spot, byte in data.draw(st.lists(spots, max_size=4), "bytes"):
        tail[spot] = byte
    content = header + b"".join(lines[:-hurt]) + bytes(tail)
    cut = data.draw(st.integers(0, len(tail)) | st.integers(0, len(content)), "bytes cut off")
    more = data.draw(st.binary(max_size=20), "more")
    path.write_bytes(content[: len(content) - cut] + (more if cut <= len(tail) else b""))
    with Journal(path, "f", KEYS) as journal:
        kept = len(ROWS) - hurt if cut <= len(tail) else 0
        assert journal.rows[:kept] == ROWS[:kept]
        assert all(each in ROWS for each in journal.rows)
        for each in ROWS:
            journal.append(each)
    header, rows = read_journal(path)
    assert header == {"fingerprint": "f"}
    assert sorted(rows, key=lambda each: each["n"]) == ROWS


HOLD = """
import sys
from pathlib import Path
from launchwise.measuring.journal import Journal
with Journal(Path(sys.argv[1]), "f", ["gpu", "n"]) as journal:
    journal.append({"gpu": "g", "n": 1})
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path, root):
    """Another process that has the journal open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "j")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def test_a_patient_writer_waits_for_the_first_and_goes_on_from_there(tmp_path, holder, caplog):
    found = []

    def write():
        with Journal(tmp_path / "j", "f", KEYS, patient=True) as journal:
            found.append(list(journal.rows))

    waiting = threading.Thread(target=write)
    with caplog.at_level("WARNING", "launchwise"):
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
        assert found == []
        holder.kill()
        waiting.join(20)
    assert found == [[{"gpu": "g", "n": 1}]]
    assert f"is being written by process {holder.pid}" in caplog.text


def test_the_lock_is_free_again_after_a_failure_inside(tmp_path):
    def fail():
        with Journal(tmp_path / "j", "f", KEYS) as journal:
            journal.append(row(1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    fill(tmp_path / "j", [row(2)])
    assert len(read_journal(tmp_path / "j")[1]) == 2
    assert not (tmp_path / "j.holder").exists()


def test_what_cannot_be_appended_is_refused_before_it_is_written(tmp_path):
    with Journal(tmp_path / "j", "f", KEYS) as journal:
        journal.append(row(1))
        with pytest.raises(ValueError, match="JSON"):
            journal.append(row(2, time_ms=float("nan")))
        journal.append(row(3))
    with pytest.raises(ValueError, match="not open"):
        journal.append(row(4))
    assert read_journal(tmp_path / "j")[1] == [row(1), row(3)]


@pytest.mark.parametrize("place", ["file/j", "file/deeper/j", "folder"])
def test_a_journal_that_cannot_be_made_is_one_line(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "folder.lock").mkdir()
    with pytest.raises(UserError, match="cannot be written: "):
        Journal(tmp_path / place, "f", KEYS).__enter__()


def test_a_later_attempt_replaces_a_row_and_an_equal_one_does_not(tmp_path):
    path = tmp_path / "j"
    with Journal(path, "one", ["gpu", "n"]) as journal:
        journal.append({**row(1), "attempt": 1, "time_ms": 1.0})
        journal.append({**row(2), "attempt": 1, "time_ms": 2.0})
        journal.append({**row(1), "attempt": 2, "time_ms": 3.0})
        journal.append({**row(1), "attempt": 2, "time_ms": 4.0})
        assert [each["time_ms"] for each in journal.rows] == [3.0, 2.0]
        # The file has both attempts; whoever reads it takes those that count.
        written = read_journal(path)[1]
        assert [each["time_ms"] for each in written] == [1.0, 2.0, 3.0]
        assert [*counted_rows(written, ["gpu", "n"]).values()] == journal.rows
    with Journal(path, "one", ["gpu", "n"]) as journal:
        assert [each["time_ms"] for each in journal.rows] == [3.0, 2.0]
    # What is written anew holds each key once.
    assert [each["time_ms"] for each in read_journal(path)[1]] == [3.0, 2.0]


def test_a_withdrawn_row_is_gone_until_it_is_measured_again(tmp_path):
    path = tmp_path / "j"
    with Journal(path, "f", KEYS) as journal:
        for number in (1, 2, 3):
            journal.append(row(number))
        journal.withdraw(row(2))
        assert journal.rows == [row(1), row(3)]
        assert row(2) not in journal
    assert read_journal(path)[1] == [row(1), row(3)]
    with Journal(path, "f", KEYS) as journal:
        journal.append(row(2))
        journal.withdraw(row(1))
        journal.append(row(1))
    for _ in range(2):
        with Journal(path, "f", KEYS) as journal:
            assert journal.rows == [row(3), row(2), row(1)]


def test_a_journal_of_many_withdrawn_rows_is_read_in_time(tmp_path):
    entries = [{"fingerprint": "f"}, *({"gpu": "g", "n": n} for n in range(20_000))]
    entries += [{"note": "withdrawn", "names": each} for each in entries[1:-1]]
    (tmp_path / "j").write_text("".join(f"{json.dumps(each)}\n" for each in entries))
    began = time.process_time()
    assert read_journal(tmp_path / "j")[1] == [{"gpu": "g", "n": 19_999}]
    assert time.process_time() - began < 5


def test_notes_are_kept_apart_from_rows_and_survive(tmp_path):
    path = tmp_path / "j"
    with Journal(path, "one", ["gpu", "n"]) as journal:
        journal.append(row(1))
        journal.note("seconds", total=1.5, spent={})
        journal.append(row(2))
    for _ in range(2):
        with Journal(path, "one", ["gpu", "n"]) as journal:
            assert journal.notes == [{"note": "seconds", "total": 1.5, "spent": {}}]
            assert len(journal.rows) == 2
    assert read_notes(path) == [{"note": "seconds", "total": 1.5, "spent": {}}]
    assert read_journal(path)[1] == [row(1), row(2)]


def sealed(text):
    """A line with its checksum, as anybody can write one."""
    return f'{text[:-1]},"crc32":{zlib.crc32(text.encode())}}}\n'


LINES = read_yaml(ROOT / "tests/measuring/data/journal.yaml")


@pytest.mark.parametrize("line", [*LINES, "[" * 200_000 + "]"])
def test_lines_that_no_journal_writes_cost_themselves_alone(tmp_path, line):
    for n in (1, 2):
        fill(tmp_path / str(n), [row(n)])
    first, second = ((tmp_path / str(n)).read_bytes() for n in (1, 2))
    plain = b'[1, 2]\n3\n"text"\n\xff\xfe\n\n' + line.encode() + b"\n"
    (tmp_path / "j").write_bytes(first + plain + sealed(line).encode() + second)
    with Journal(tmp_path / "j", "f", KEYS) as journal:
        assert (journal.rows, journal.notes) == ([row(1), row(2)], [])


HEADS = [
    sealed(json.dumps({"fingerprint": no}, separators=(",", ":")))
    for no in ("/../../out", "a/b", "", [1], "x" * 300)
]


@pytest.mark.parametrize("content", ["", '#{"fingerprint": "f"}\n', *HEADS])
def test_a_journal_without_a_first_line_of_its_own_is_put_aside(tmp_path, content):
    folder = tmp_path / "results" / "journal"
    folder.mkdir(parents=True)
    (folder / "j").write_text(content)
    fill(folder / "j", [row(1)])
    fill(folder / "j", [row(2)])
    assert read_journal(folder / "j")[1] == [row(1), row(2)]
    aside = {path.name: path.read_text() for path in folder.iterdir() if path.suffix != ".lock"}
    assert aside.keys() == ({"j", "j.unreadable"} if content else {"j"})
    assert aside.get("j.unreadable", "") == content
    assert [path.name for path in tmp_path.rglob("*out*")] == []


def test_who_writes_a_journal_is_told_in_plain_text(tmp_path, holder):
    named = tmp_path / "j.holder"
    named.write_text("\x1b]0;title\x07" + "x" * 10_000)
    with pytest.raises(UserError) as failed, Journal(tmp_path / "j", "f", KEYS):
        pass
    assert "\x1b" not in str(failed.value)
    assert len(str(failed.value)) < 500
    named.unlink()
    os.mkfifo(named)
    with pytest.raises(UserError, match="by another process"), Journal(tmp_path / "j", "f", KEYS):
        pass
