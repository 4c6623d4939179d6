"""Files that are whole or not there, and hashes that name content."""

import json
import os
import stat
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.base.errors import UserError, unknown
from launchwise.base.storage import (
    digest,
    digest_files,
    read_json,
    whole_file,
    write_bytes,
    write_json,
    write_text,
)


def test_a_file_appears_whole_with_its_folders(tmp_path):
    path = tmp_path / "a" / "b" / "c.txt"
    with whole_file(path) as scratch:
        scratch.write_text("half")
        assert not path.exists()
        assert scratch.parent == path.parent
        scratch.write_text("whole")
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == ["c.txt"]


def test_files_have_the_rights_that_the_user_gives_new_files(tmp_path):
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "x", "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_after_a_failure_the_old_file_stays_and_nothing_else(tmp_path, error):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail():
        with whole_file(path) as scratch:
            scratch.write_text("new")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_a_full_disk_leaves_the_old_file_and_is_one_line(small_disk):
    path = small_disk / "x.bin"
    write_bytes(path, b"old")
    with pytest.raises(UserError) as caught:
        write_bytes(path, bytes(1 << 20))
    assert str(caught.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == b"old"
    assert os.listdir(small_disk) == ["x.bin"]


def test_a_disk_that_became_read_only_is_one_line_and_keeps_the_file(small_disk):
    path = small_disk / "table.json"
    write_json(path, {"old": 1})
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(UserError) as caught:
        write_json(path, {"new": 2})
    assert str(caught.value) == f"{path}: cannot be written: Read-only file system"
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert os.listdir(small_disk) == ["table.json"]
    assert read_json(path) == {"old": 1}


RENAME = os.replace


def done_and_repeated(source, target):
    """As NFS does where the answer to the first request got lost."""
    RENAME(source, target)
    RENAME(source, target)


def lost(source, _):
    """A file that is gone, and was not renamed."""
    source.unlink()
    raise FileNotFoundError(2, "No such file or directory")


@pytest.mark.parametrize(
    ("rename", "said"),
    [
        (done_and_repeated, None),
        (lost, "No such file or directory"),
        (lambda _, __: None, "the file system did not rename it"),
    ],
)
def test_a_rename_that_a_network_repeats_or_loses(tmp_path, monkeypatch, rename, said):
    path = tmp_path / "table.json"
    write_json(path, {"old": 1})
    # Staged: no file system of a network is at hand.
    monkeypatch.setattr(os, "replace", rename)
    if said is None:
        write_json(path, {"new": 22})
    else:
        with pytest.raises(UserError) as caught:
            write_json(path, {"new": 22})
        assert str(caught.value) == f"{path}: cannot be written: {said}"
    assert os.listdir(tmp_path) == ["table.json"]
    assert read_json(path) == ({"new": 22} if said is None else {"old": 1})


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    program = (
        "import sys, time\n"
        "from launchwise.base.storage import whole_file\n"
        "with whole_file(sys.argv[1]) as scratch:\n"
        "    scratch.write_text('half')\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "writing\n"
        writer.kill()
    assert path.read_text() == "old"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63 - 1), 2**63 - 1)
    | st.text()
    | st.floats(allow_nan=False).filter(lambda value: abs(value) < 1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_comes_back_as_it_was(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "value.json"
    write_json(path, value)
    assert read_json(path) == value
    assert path.read_text().endswith("\n")


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}])
def test_numbers_that_json_does_not_have_are_refused(tmp_path, value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b'{"a": ', "is not JSON"),
        (b"[" * 100_000, "is not JSON: nested too deep"),
        (b"\xff", "is not UTF-8 text"),
        (b'{"a": 1, "a": 2}', "is not JSON: 'a' is given twice"),
        (b"[NaN]", "is not JSON"),
        (b"[-Infinity]", "is not JSON"),
        (b"1e999", "is not JSON: 1e999 is larger"),
        (b'{"a":-1.5E+999}', "is not JSON: -1.5E+999 is larger"),
        (b"9223372036854775808", "is not JSON: 9223372036854775808... is no integer"),
    ],
)
def test_json_that_cannot_be_read_is_one_line(tmp_path, content, said):
    path = tmp_path / "x.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@given(st.dictionaries(st.text(max_size=5), st.integers(), min_size=2, max_size=6))
def test_a_digest_ignores_the_order_of_keys_and_nothing_else(value):
    assert digest(dict(reversed(list(value.items())))) == digest(value)
    assert digest(json.loads(json.dumps(value))) == digest(value)
    for key in value:
        assert digest({**value, key: value[key] + 1}) != digest(value)
        assert digest({other: value[other] for other in value if other != key}) != digest(value)


def test_a_digest_of_files_follows_names_and_contents_and_not_times(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("1")
    second.write_text("2")
    before = digest_files([first, second])
    assert digest_files([second, first]) == before
    os.utime(first, (time.time() + 100,) * 2)
    assert digest_files([first, second]) == before
    second.write_text("3")
    changed = digest_files([first, second])
    assert changed != before
    second.rename(tmp_path / "c")
    assert digest_files([first, tmp_path / "c"]) not in (before, changed)


def test_an_error_is_one_line_whatever_its_message_holds():
    error = UserError("file.yaml", "a.b", "two\nlines   and\tspaces")
    assert str(error) == "file.yaml: a.b: two lines and spaces"
    assert str(UserError("file.yaml", "", "x")) == "file.yaml: x"


def test_an_unknown_name_comes_with_a_guess_and_what_is_allowed():
    assert unknown("GPU", "h20", ["h200", "a100"]) == (
        "unknown GPU 'h20', did you mean 'h200'? (allowed: a100, h200)"
    )
    assert unknown("model", "zzz", []) == "unknown model 'zzz' (allowed: none)"
