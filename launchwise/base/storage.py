"""Writes files atomically, reads them within limits, and hashes their content."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.literals import LARGEST, whole

RESULTS = "results"
"""Folder of everything that a run makes, in the folder that it runs in. It may be a link."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Numbers of errors of a disk, or a quota, without space."""


def own_place(path: str | Path) -> Path:
    """A place for an output: a link that stands there is removed, its target stays as it is. Raises
    UserError when a folder on the way to it is a link that leads out of the folder that the process
    runs in, unless the path says so itself (absolute, or with ``..``), or out of ``results/``."""
    target = Path(path)
    top = _results_above(target)
    try:
        if top is not None and not target.parent.resolve().is_relative_to(top.resolve()):
            message = f"leads out of {top}/ by a link: remove the link, or link {top} as a whole"
            raise UserError(target, "", message)
        way = (top or target).parent.resolve()
        if not ({os.sep, ".."} & {*target.parts} or way.is_relative_to(Path.cwd())):
            raise UserError(target, "", f"leads to {way} by a link: remove it, or name that folder")
        if target.is_symlink():
            target.unlink()
    except (OSError, RuntimeError) as error:
        raise UserError(target, "", f"cannot be written: {error}") from error
    return target


def _results_above(path: Path) -> Path | None:
    """The folder of results that a path lies in; None elsewhere."""
    above = [each for each in path.parents if each.name == RESULTS]
    if not path.is_absolute():
        return above[-1] if above else None
    # A folder elsewhere may have that name, too.
    return next((each for each in above if (each.parent / ".snakemake").is_dir()), None)


def new_folder(path: str | Path) -> Path:
    """An empty folder in the place of whatever was there. Raises UserError: see
    :func:`own_place`."""
    folder = own_place(path)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Scratch path beside ``path``, moved to ``path`` when the block succeeds.

    The scratch file is flushed to disk before the move and removed after a failure, so that a
    reader (or a rerun after a full disk) sees the old file or the new one and never a part. A link
    in the place of ``path`` is replaced. Raises UserError when the disk is full, or the folder
    cannot be written or lies elsewhere (:func:`own_place`).
    """
    target = own_place(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
    except OSError as error:
        raise UserError(target, "", f"cannot be written: {error.strerror}") from error
    scratch = Path(name)
    try:
        yield scratch
        with open(scratch, "rb+") as written:
            os.fsync(written.fileno())
        # mkstemp makes private files; results are meant to be read by the whole group.
        umask = os.umask(0)
        os.umask(umask)
        scratch.chmod(0o666 & ~umask)
        _move(scratch, target)
    except OSError as error:
        raise UserError(target, "", f"cannot be written: {error.strerror or error}") from error
    finally:
        scratch.unlink(missing_ok=True)


def _move(scratch: Path, target: Path) -> None:
    size = scratch.stat().st_size
    try:
        os.replace(scratch, target)
    except FileNotFoundError:
        # NFS repeats a request whose answer got lost: the second finds nothing left to rename.
        if not target.is_file() or target.stat().st_size != size:
            raise
    if scratch.exists():
        raise OSError(errno.EIO, "the file system did not rename it")


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``path`` atomically."""
    with whole_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_bytes(path: str | Path, content: bytes) -> None:
    with whole_file(path) as scratch:
        scratch.write_bytes(content)


def write_json(path: str | Path, value: Any, indent: int | None = 2) -> None:
    """Write ``value`` as JSON with sorted keys (NaN refused: JSON has none), indented or, without
    ``indent``, as short as it can be."""
    apart = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, sort_keys=True, allow_nan=False, separators=apart)
    write_text(path, f"{text}\n")


MOST_BYTES = 256 << 20  # Longest file that is read as a whole, bytes

MOST_VALUES = 10_000_000
"""Most values of a JSON file: an empty list takes three bytes of it and sixty of the memory."""


def insist_on_regular(path: str | Path, opened: int | None = None) -> None:
    """Insist that what exists at a path is no device, pipe or socket, which may have no end. A
    missing file and a folder are left to what reads it. ``opened``: its descriptor, if it is open.
    Raises UserError when it is one."""
    try:
        mode = os.stat(path if opened is None else opened).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(path, "", "is no regular file, but a device, pipe or socket")


def first_bytes(path: str | Path, most: int) -> bytes:
    """The first ``most`` bytes of a file, or all of a shorter one. Raises UserError when it cannot
    be read, or is no regular file."""
    try:
        # At once: a pipe, too, before anything is written to it.
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            insist_on_regular(path, file.fileno())
            return file.read(most)
    except OSError as error:
        raise UserError(path, "", f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(path, "", f"cannot be read: {error}") from error


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Content of a file. Raises UserError when it cannot be read, or is longer than ``most``
    bytes."""
    content = first_bytes(path, most + 1)
    if len(content) > most:
        raise UserError(path, "", f"is longer than {most:,} bytes")
    return content


def read_text(path: str | Path, most: int = MOST_BYTES) -> str:
    """Content of a UTF-8 file (see :func:`read_bytes`). Raises UserError when it cannot be read, is
    too long or no UTF-8."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(path, "", f"is not UTF-8 text: {error.reason}") from error


FAR = re.compile(r"[\s:,\[-](?:\d{19}|[\d.]+e[+-]?\d{3})", re.I)  # May be too large a number


def read_json(path: str | Path) -> Any:
    """Read a JSON file. Raises UserError when it is missing, too long or no JSON, gives a key
    twice, or holds NaN, an infinity or an integer beyond 64 bits."""
    text = read_text(path)
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise UserError(path, "", f"holds more than {MOST_VALUES:,} values")
    # Calls per number take a third of the time.
    integer, real = (_integer, _real) if FAR.search(f" {text}") else (None, None)
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_int=integer,
            parse_float=real,
        )
    except RecursionError as error:
        raise UserError(path, "", "is not JSON: nested too deep") from error
    except ValueError as error:
        raise UserError(path, "", f"is not JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Which of the two counts differs from reader to reader.
        raise given_twice(pairs)
    return found


def given_twice(pairs: Iterable[tuple[str, Any]]) -> ValueError:
    """Error for an object of JSON that gives a key twice."""
    ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
    return ValueError(f"{name!r} is given twice")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _integer(text: str) -> int:
    # Fewer digits than those of the largest one.
    number = int(text) if len(text) < 19 else whole(text)
    if number is None or abs(number) > LARGEST:
        raise ValueError(f"{text[:20]}... is no integer up to {LARGEST}")
    return number


def _real(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is larger than any number")
    return number


def read_json_object(path: str | Path, *keys: str) -> dict[str, Any]:
    """Read a JSON file that holds an object with these keys. Raises UserError when it cannot be
    read, is no object, or lacks a key."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise UserError(path, "", "must be an object of JSON")
    if lacking := [key for key in keys if key not in found]:
        raise UserError(path, lacking[0], "is missing")
    return found


SEAL = "content_digest"  # Key of a sealed file's own digest


def write_sealed_json(path: str | Path, value: dict[str, Any], indent: int | None = 2) -> None:
    """Write an object with the digest of its content, so that a change is noticed; ``indent`` as
    of :func:`write_json`."""
    # As it is read again: numbers as keys are texts in JSON.
    content = json.loads(json.dumps(value, allow_nan=False))
    write_json(path, {**content, SEAL: digest(content)}, indent)


def read_sealed_json(path: str | Path, *keys: str) -> dict[str, Any]:
    """Read what :func:`write_sealed_json` wrote, without its digest. Raises UserError when it
    cannot be read, is no object, lacks a key, or is not as it was written."""
    found = read_json_object(path, *keys)
    if found.pop(SEAL, None) != digest(found):
        raise UserError(path, SEAL, "is not that of the content: the file was changed or is old")
    return found


def why_not_written(folder: Path, nbytes: int = 1 << 20) -> OSError | None:
    """What the system says to a new file of ``nbytes`` in a folder; None where it takes it."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(nbytes))
            file.flush()
    except OSError as error:
        return error
    return None


def user_cache() -> Path:
    """Folder of what every project of this user may keep and lose."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "launchwise")


def digest(value: Any) -> str:
    """SHA-256 (hex, 16 characters) of a JSON-able value, independent of the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_files(paths: Iterable[Path]) -> str:
    """SHA-256 (hex, 16 characters) of the names and contents of ``paths``, in order of path."""
    return digest_in_order(sorted(paths))


def digest_in_order(paths: Iterable[Path]) -> str:
    """:func:`digest_files`, in the order in which they are given."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


MOST_CSV_BYTES = 16 << 20  # Longest CSV file of a project, bytes

Record = dict[str, str]  # Column to the text of a field, without spaces around it
Records = tuple[list[str], list[tuple[int, Record]]]
"""Columns of a table in CSV, and its rows that are not blank, each with the number of its line."""


def read_records(path: str | Path, columns: Collection[str] = ()) -> Records:
    """Rows of a CSV file (:func:`records_in`). Raises UserError when it cannot be read, too."""
    return records_in(path, read_text(path, MOST_CSV_BYTES), columns)


def records_in(
    path: str | Path, text: str, columns: Collection[str] = (), delimiter: str = ","
) -> Records:
    """Rows of a text in CSV, which the file ``path`` holds. ``columns``: those that it must have,
    in any order. Raises UserError when it is no CSV, has other columns, or a row has more or fewer
    fields than the first line."""
    handle = io.StringIO(text.lstrip("\ufeff"), newline="")
    reader = csv.reader(handle, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        lines = [(reader.line_num, [one.strip() for one in fields]) for fields in reader]
    except csv.Error as error:
        raise UserError(path, f"line {reader.line_num}", f"is not CSV: {error}") from error
    # Spreadsheets leave lines of nothing but delimiters.
    (_, found), *rows = [line for line in lines if any(line[1])] or [(0, list[str]())]
    if columns and sorted(found) != sorted(columns):
        got = ", ".join(found) or "none"
        raise UserError(path, "", f"must have the columns {', '.join(columns)} (got {got})")
    for number, fields in rows:
        if len(fields) != len(found):
            message = f"has {len(fields)} fields, the first line has {len(found)} columns"
            raise UserError(path, f"line {number}", message)
    return found, [(number, dict(zip(found, fields, strict=True))) for number, fields in rows]
