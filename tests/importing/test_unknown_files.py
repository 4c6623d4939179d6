"""Files of no known format are told as that, damaged ones as what they are, in one line."""

import gzip
import io
import zipfile

import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.importing.formats import read_sweeps
from launchwise.importing.opening import KNOWN, read_text


def zipped(**members):
    """A zip with these members."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        for name, text in members.items():
            packed.writestr(name, text)
    return target.getvalue()


UNKNOWN = {
    **read_yaml(ROOT / "tests/importing/data/unknown.yaml"),
    "a binary": ("a.bin", b"\x7fELF\x02\x01\x01\x00\x00"),
    "zeros": ("a.json", b"\x00" * 64),
    "Parquet": ("a.parquet", b"PAR1\x15\x04"),
    "an array": ("a.npy", b"\x93NUMPY\x01\x00"),
    "a pickle": ("a.pkl", b"\x80\x04\x95\x00\x00"),
    "a zip of texts": ("a.zip", zipped(**{"a.txt": "x", "b.txt": "y"})),
    "an empty zip": ("a.zip", zipped()),
    "a packed one": ("a.json.gz", gzip.compress(b'{"cache": {"hits": 3}}')),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_what_is_of_no_known_format_is_told_as_that(tmp_path, what):
    name, content = UNKNOWN[what]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError) as caught:
        read_sweeps(path)
    assert caught.value.key == ""
    assert caught.value.message.startswith("is of no known format")
    assert caught.value.message.endswith(f"(allowed: {KNOWN})")


def test_a_text_of_two_bytes_a_character_is_read_and_no_binary(tmp_path):
    for encoding in ("utf-16", "utf-8-sig", "utf-8"):
        (tmp_path / encoding).write_bytes("µ, 1".encode(encoding))
        assert read_text(tmp_path / encoding) == "µ, 1"
    (tmp_path / "binary").write_bytes(b"a\0b")
    with pytest.raises(UserError, match="is of no known format: a binary"):
        read_text(tmp_path / "binary")


REFUSED = {
    **read_yaml(ROOT / "tests/importing/data/damaged.yaml"),
    "zip": ("a.zip", zipped(a="{}")[:-30], "is not a complete zip"),
    "gzip": ("a.gz", gzip.compress(b"x" * 100)[:-9], "is not a complete gzip"),
    "corrupt gzip": ("b.gz", gzip.compress(b"x")[:12] + b"\xff" * 20, "is not a complete gzip"),
    "bzip2": ("a.bz2", b"BZh91AY&SYx", "is not a complete bzip2"),
    "xz": ("a.xz", b"\xfd7zXZ\x00\x00", "is not a complete xz"),
    "bytes": ("a.json", b'{"a": "\xff"}', "is not UTF-8 text"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_damaged_files_are_one_line(tmp_path, what):
    name, content, said = REFUSED[what]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError, match=said):
        read_sweeps(tmp_path / name)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        read_sweeps(tmp_path)
