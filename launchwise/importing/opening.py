"""Opens files of others: plain or packed, complete or cut off, within limits of memory."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import lzma
import re
import resource
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import first_bytes, given_twice

KNOWN = (
    "a Kernel Tuner cache or list of results, T4, KTT's JSON, Triton's *.autotune.json, "
    "CSV with a mapping of its columns; each also packed by gzip, bzip2, xz or zip"
)
"""Formats that an import reads."""


def no_format(path: str | Path, what: str = "") -> UserError:
    """Error for a file that is of no format of :data:`KNOWN`; ``what`` says what it is instead."""
    told = f": {what}" if what else ""
    return UserError(path, "", f"is of no known format{told} (allowed: {KNOWN})")


Packed = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile

UNPACKERS: dict[bytes, tuple[str, Callable[[io.BytesIO], Packed]]] = {
    b"\x1f\x8b": ("gzip", lambda packed: gzip.GzipFile(fileobj=packed)),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
}
"""First bytes of a packed file to the packer and what opens it."""

OTHERS: dict[bytes, str] = {
    b"PAR1": "a Parquet file; write its rows as CSV and name the columns (--columns)",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3": "a database of SQLite",
    b"\x93NUMPY": "an array of NumPy",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first",
    b"7z\xbc\xaf": "packed by 7-Zip; unpack it first",
    b"\x7fELF": "a binary",
    b"\x80\x04": "a pickle, which could run code",
    b"\x80\x05": "a pickle, which could run code",
    b"%PDF": "a PDF file",
    b"\x89PNG": "a picture",
}
"""First bytes of other files to what they are."""

ZIP = b"PK\x03\x04"

EMPTY_ZIP = b"PK\x05\x06"

MEGABYTE = 10**6

MOST_BYTES = 128 * MEGABYTE  # Most bytes that are unpacked from a file, unless `--max-mb` says more

PART_BYTES = 1_000  # What each part of a packed file counts as: empty ones take time, too

MEMORY = 8  # Most memory that reading a file takes, in units of the most bytes that are unpacked

BYTES_PER_VALUE = 16
"""Share of these bytes for each value: an empty one takes less in a file and more in memory."""

RAISE = ": raise the limit by --max-mb"

MOST_MEMBERS = 1_000  # Most files in a zip

_UNPACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of a zip's members that are unpacked no further than asked for."""


def too_long(path: str | Path, most: int) -> UserError:
    """Error for a file that holds more than ``most`` bytes."""
    return UserError(path, "", f"holds more than {most // MEGABYTE} MB, unpacked{RAISE}")


def read_members(path: str | Path, most: int = MOST_BYTES) -> list[tuple[str, bytes]]:
    """Name and content of each file in a zip, or the one file itself with an empty name, each
    unpacked by its first bytes, whatever its name. Raises UserError when it is missing, is packed
    in a way that cannot be read, is cut off, or unpacks to more than ``most`` bytes in all."""
    content = first_bytes(path, most + 1)
    if len(content) > most:
        raise too_long(path, most)
    if not content.startswith((ZIP, EMPTY_ZIP)):
        return [("", _unpacked(content, path, most, most)[0])]
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            return _members(packed, path, most)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise UserError(path, "", f"is not a complete zip file: {error}") from error
    except RuntimeError as error:
        raise UserError(path, "", f"is a zip that cannot be unpacked: {error}") from error


def _members(packed: zipfile.ZipFile, path: str | Path, most: int) -> list[tuple[str, bytes]]:
    listed = [
        member
        for member in packed.infolist()
        if not member.is_dir() and not member.filename.startswith(("__MACOSX/", "."))
    ]
    if len(listed) > MOST_MEMBERS:
        raise UserError(path, "", f"is a zip of more than {MOST_MEMBERS} files: unpack it first")
    found, left = [], most
    for member in listed:
        if member.compress_type not in _UNPACKED:
            raise NotImplementedError(f"{member.filename} is neither stored nor deflated")
        with packed.open(member) as file:
            content, left = _unpacked(file.read(left + 1), path, most, left)
        found.append((member.filename, content))
    return found


def _unpacked(content: bytes, path: str | Path, most: int, left: int) -> tuple[bytes, int]:
    """Content of a packed file, or the bytes of another, and what remains of the bytes that are
    ``left`` of ``most``. Raises UserError when it holds more, or is cut off."""
    for first, (packer, opened) in UNPACKERS.items():
        if len(content) <= left and content.startswith(first):
            left -= PART_BYTES * content.count(first)
            try:
                with opened(io.BytesIO(content)) as packed:
                    content = packed.read(max(0, left + 1))
            except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise UserError(path, "", f"is not a complete {packer} file: {error}") from error
    if len(content) > left:
        raise too_long(path, most)
    return content, left - len(content)


def as_text(content: bytes, path: str | Path, most: int = MOST_BYTES) -> str:
    """Text of a file's bytes. Raises UserError when it is no text, or holds more values than one of
    ``most`` bytes has."""
    for first, what in OTHERS.items():
        if content.startswith(first):
            raise no_format(path, what)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if not wide and b"\0" in content:
        raise no_format(path, "a binary")
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(path, "", f"is not UTF-8 text: {error.reason}") from error
    if sum(map(text.count, ",;|\t\n[{")) > most // BYTES_PER_VALUE:
        raise UserError(path, "", f"holds more than {most // BYTES_PER_VALUE:,} values{RAISE}")
    return text


def read_text(path: str | Path, most: int = MOST_BYTES) -> str:
    """Text of a file (see :func:`as_text`). Raises UserError when it is missing, a zip, cut off,
    too long, or no text."""
    (name, content), *more = read_members(path, most) or [("", b"")]
    if name or more:
        raise UserError(path, "", "is a zip: unpack it first")
    return as_text(content, path, most)


class Repeated(dict[str, Any]):
    """Entries of JSON, each an object, of which a key stands more than once; the last counts."""

    count: int  # Entries that others of the same key replace


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    # A run that is resumed may write an entry again. Of other values none is the one that is meant.
    if not all(isinstance(value, dict) for _, value in pairs):
        raise given_twice(pairs)
    found = Repeated(plain)
    found.count = len(pairs) - len(plain)
    return found


def loaded(text: str) -> Any:
    """Content of a JSON text that is complete. Raises ValueError when it is no JSON. Raises
    RecursionError when it is nested too deep."""
    found = json.loads(text, object_pairs_hook=_object)
    if _SURROGATE.search(text):
        # Half of a pair is no text that a file could hold: this raises a ValueError.
        json.dumps(found, ensure_ascii=False).encode()
    return found


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # Escape of half a character


def parse_json(text: str, path: str | Path) -> tuple[Any, bool]:
    """Content of a JSON text, and whether it was cut off. A run that was killed leaves an object
    without its last entry or its closing brackets: what stands before the last complete entry is
    read. A text that is damaged further up is not. Raises UserError when it is no JSON even so;
    with the line of the damage."""
    try:
        return loaded(text), False
    except RecursionError as error:
        raise UserError(path, "", "is not JSON: nested too deep") from error
    except ValueError as error:
        problem = error
    repaired = _closed(text, path)
    if repaired is not None:
        try:
            return loaded(repaired), True
        except (ValueError, RecursionError):
            pass
    raise UserError(path, "", f"is not JSON: {problem}")


_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL)
"""A text (also one that the end of the file cuts) or a bracket. Nothing is tried twice: a
regular expression would keep state for each letter otherwise."""

ENTRY_DEPTH = 2
"""Brackets that are open around an entry: the file's object, and the object or list of entries."""

LONGEST_CUT = 2
"""Longest rest of a file that was cut off, in lengths of its longest entry: more is damage."""


def _closed(text: str, path: str | Path) -> str | None:
    """``text`` up to its last complete entry, with the brackets that are open there closed. None
    where no bracket is open at the end: the text has another fault. Raises UserError when more
    follows than an entry that was cut off: then a bracket is missing further up."""
    opened: list[str] = []
    last: tuple[int, str] | None = None
    longest = 0
    for token in _TOKEN.finditer(text):
        letter = token[0]
        if letter in "{[":
            opened.append("}" if letter == "{" else "]")
        elif letter in "}]" and (not opened or opened.pop() != letter):
            return None
        # What ends deeper is a part of an entry, which may be cut off further on.
        if letter in "{}[]" and len(opened) <= ENTRY_DEPTH:
            if len(opened) < ENTRY_DEPTH:
                # The list of entries begins further on.
                longest = 0
            elif last is not None and letter in "}]":
                longest = max(longest, token.end() - last[0])
            last = (token.end(), "".join(reversed(opened)))
    if not opened or last is None:
        return None
    if longest and len(text) - last[0] > LONGEST_CUT * longest:
        begin = len(text) - len(text[last[0] :].lstrip(", \t\r\n"))
        line = text.count("\n", 0, begin) + 1
        raise UserError(f"{path}:{line}", "", "is damaged: an entry that begins here has no end")
    return text[: last[0]] + last[1]


@contextmanager
def memory_limit(where: str | Path, nbytes: int) -> Iterator[None]:
    """Limit of the memory that a block takes beside what the process has, where the system tells
    that. Raises UserError when the block, which reads the file ``where``, takes more than
    ``nbytes``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        most = resource.RLIM_INFINITY - nbytes
    most += nbytes
    # A lower limit is not ours.
    is_ours = most > 0 and (soft == resource.RLIM_INFINITY or most < soft)
    try:
        if is_ours:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        yield
    except MemoryError as error:
        if not is_ours:
            raise
        message = f"takes more than {nbytes // 10**6} MB of memory to read{RAISE}"
        raise UserError(where, "", message) from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
