"""The journal of a shard: one JSON line per measurement, written before the next one begins.

The first line carries the fingerprint of what was measured. A journal with another fingerprint is
put aside and a new one begins; of two lines with the same key the first counts, unless the second
is a later attempt. Each line ends with a checksum: one that was cut short by a kill or a full disk,
or damaged later, is dropped. Lines with the key ``note`` are no rows: they say which rows are in
doubt and where the time went. One of the kind :data:`WITHDRAWN` takes the rows before it back that
have its ``names``.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import re
import socket
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from launchwise.base.errors import UserError
from launchwise.base.literals import visible
from launchwise.base.storage import write_bytes, write_text

log = logging.getLogger("launchwise")

CHECK = "crc32"  # Last key of a line: checksum of the rest of the line
NOTE = "note"  # Key of entries that are not rows; its value is the kind of entry
WITHDRAWN = "withdrawn"  # Kind of the note that takes a row back
FINGERPRINT = re.compile(r"[\w.-]{1,128}", re.ASCII)  # Stands in names of files
HOLDER = 200  # Most letters of the name of who writes a journal
SYNC_EVERY = 64  # Rows per fsync: a killed process loses no row, a crashed machine at most these


@dataclass
class Journal:
    """A journal open for writing: one writer at a time. Raises UserError when another process
    writes this journal (unless patient), the disk is full or the file system knows no locks."""

    path: Path  # the JSON-lines file; its folder is made when it is opened
    fingerprint: str  # hash of everything that must be the same for old rows to count
    key_columns: list[str]  # columns that name a row
    # Whether to wait while another process writes this journal: a job that a dead workflow left
    # behind on a cluster, say, which will soon have measured the remaining rows.
    patient: bool = False
    # Other fingerprints whose rows count as well: of states that measured the same.
    earlier: Collection[str] = ()

    def __post_init__(self) -> None:
        self._lock = FileLock(f"{self.path}.lock")
        self._file: FileIO | None = None
        self._rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.notes: list[dict[str, Any]] = []

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Rows that count, in the order in which they came."""
        return list(self._rows.values())

    def __enter__(self) -> Journal:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._acquire()
        except NotImplementedError as error:
            message = "cannot be locked: the file system does not support flock"
            raise UserError(self.path, "", message) from error
        except OSError as error:
            raise UserError(self.path, "", f"cannot be written: {error.strerror}") from error
        try:
            self._open()
        except OSError as error:
            self._close()
            raise UserError(self.path, "", f"cannot be written: {error.strerror}") from error
        except BaseException:
            self._close()
            raise
        return self

    def _acquire(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            message = f"is being written by {_read_holder(self.path)}"
            if not self.patient:
                raise UserError(self.path, "", message) from None
            log.warning("%s %s; waiting for it to end", self.path, message)
            self._lock.acquire()

    def _open(self) -> None:
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        write_text(f"{self.path}.holder", holder)
        header, entries = _read(self.path)
        found = "unreadable" if header is None else str(header["fingerprint"])
        if found not in (self.fingerprint, *self.earlier):
            entries = []
            if self.path.exists() and self.path.stat().st_size:
                os.replace(self.path, _unused(f"{self.path}.{found}"))
        self._rows = counted_rows(entries, self.key_columns)
        self.notes = [entry for entry in entries if NOTE in entry]
        # What can be read is written anew, so that a torn line never sits between whole ones.
        lines = [{"fingerprint": self.fingerprint}, *self.rows, *self.notes]
        write_bytes(self.path, b"".join(_line(entry) for entry in lines))
        self._file = FileIO(self.path, "a")

    def __exit__(self, *error: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            with self._file, contextlib.suppress(OSError):
                os.fsync(self._file.fileno())
            self._file = None
        Path(f"{self.path}.holder").unlink(missing_ok=True)
        self._lock.release()

    def __contains__(self, row: dict[str, Any]) -> bool:
        return self._key(row) in self._rows

    def append(self, row: dict[str, Any]) -> None:
        """Write one row; of two with one key, the one of the later attempt counts, or the first.
        Raises UserError when the disk is full: nothing before is lost."""
        if _counts_more(row, self._rows.get(self._key(row))):
            self._write(row)
            self._rows[self._key(row)] = row

    def note(self, kind: str, **facts: Any) -> None:
        """Write an entry that is not a row, such as drift or seconds. Raises UserError when the
        disk is full: nothing before is lost."""
        entry = {NOTE: kind, **facts}
        self._write(entry)
        self.notes.append(entry)

    def withdraw(self, row: dict[str, Any]) -> None:
        """Take a row back, as if it had not been measured. Raises UserError when the disk is full:
        the row stands."""
        names = {name: row[name] for name in self.key_columns}
        self._write({NOTE: WITHDRAWN, "names": names})
        self._rows.pop(self._key(row), None)

    def _write(self, entry: dict[str, Any]) -> None:
        if self._file is None:
            raise ValueError("the journal is not open")
        line = _line(entry)
        end = os.fstat(self._file.fileno()).st_size
        try:
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            if len(self._rows) % SYNC_EVERY == 0:
                os.fsync(self._file.fileno())
        except OSError as error:
            # Part of the line may stand there: it must not run into the next one.
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise UserError(self.path, "", f"cannot be written: {error.strerror}") from error

    def _key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.key_columns)


def _counts_more(row: dict[str, Any], known: dict[str, Any] | None) -> bool:
    """Whether a row counts instead of one with its key: that of a later attempt, or the first."""
    return known is None or int(row.get("attempt", 1)) > int(known.get("attempt", 1))


def _line(entry: dict[str, Any]) -> bytes:
    text = _dense(entry)
    return f'{text[:-1]},"{CHECK}":{zlib.crc32(text.encode())}}}\n'.encode()


def _dense(entry: dict[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"), allow_nan=False)


def _unused(name: str) -> str:
    """``name``, or with the first number behind it that no file has yet."""
    names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(2)))
    return next(each for each in names if not os.path.exists(each))


def _read_holder(path: Path) -> str:
    try:
        return visible(_text(Path(f"{path}.holder"))[:HOLDER])
    except OSError:
        return "another process"


def _text(path: Path) -> str:
    """Text of a file. Raises FileNotFoundError where there is none; a pipe would never end."""
    if not path.is_file():
        raise FileNotFoundError(path)
    return path.read_text(encoding="utf-8", errors="replace")


def read_journal(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Header and rows of a journal as they were written, damaged lines and notes left out. (None,
    []) when there is none."""
    header, entries = _read(path)
    return header, [entry for entry in entries if NOTE not in entry]


def counted_rows(
    entries: Iterable[dict[str, Any]], key_columns: Collection[str]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows that count, by their keys: of those with one key, the first one of the latest attempt.
    Notes, and rows that lack a column of the key, are left out."""
    counted: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in entries:
        key = tuple(row.get(name) for name in key_columns)
        is_row = NOTE not in row and all(isinstance(value, (str, int, float)) for value in key)
        if is_row and _counts_more(row, counted.get(key)):
            counted[key] = row
    return counted


def read_notes(path: Path) -> list[dict[str, Any]]:
    """Entries of a journal that are not rows."""
    return [entry for entry in _read(path)[1] if NOTE in entry]


def _read(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    lines = _text(path).splitlines() if path.is_file() else []
    entries = list(_whole_lines(lines))
    if not entries or not FINGERPRINT.fullmatch(str(entries[0][0].get("fingerprint", ""))):
        return None, []
    (header, checked), *rest = entries
    # Journals of the first version have no checksums at all.
    return header, _standing(entry for entry, has_check in rest if has_check or not checked)


def _standing(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries without the rows that were withdrawn, and without the notes that say so."""
    known = list(entries)
    withdrawn = [entry["names"] for entry in known if entry.get(NOTE) == WITHDRAWN]
    if not withdrawn:
        return known
    found, gone = list[dict[str, Any]](), set[str]()
    for entry in reversed(known):
        is_withdrawal = entry.get(NOTE) == WITHDRAWN
        named = entry["names"] if is_withdrawal else entry
        values = json.dumps([named.get(name) for name in withdrawn[-1]])
        if is_withdrawal:
            gone.add(values)
        elif NOTE in entry or values not in gone:
            found.append(entry)
    return found[::-1]


def _whole_lines(lines: Iterable[str]) -> Iterable[tuple[dict[str, Any], bool]]:
    """Entries with whether they have a checksum; those with a wrong one are left out."""
    for line in lines:
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                continue
            check = entry.pop(CHECK, None)
            whole = check is None or check == zlib.crc32(_dense(entry).encode())
            if whole and _is_known(entry):
                yield entry, check is not None
        except (ValueError, RecursionError):
            continue


REAL = (int, float)
ROUND = {"times_ms": [REAL], "clocks_mhz": [REAL], "throttle": [str]}
NOTES: Mapping[str, Any] = {
    WITHDRAWN: {"names": dict},
    "control": {
        **{"problem": dict, "card": str, "time_ms": REAL, "ratio": REAL},
        "rows": [[(str, *REAL)]],
    },
    "energies": {"problem": dict},
    "energy": {"names": dict},
    "explored": {"problem": dict, "budget": int},
    "killed": {"names": dict},
    "lost": {"problem": dict, "configuration": dict, "status": str, "reason": str},
    "seconds": {"total": REAL, "spent": {...: REAL}},
    "unreplayed": {"problem": dict},
    "visit": {
        **{"problem": dict, "configurations": [dict], "card": str, "rounds": [ROUND]},
        "found": [{"status": str, "reason": str}],
    },
}
"""Kind of a note to what it holds at least: a mapping of keys (``...``: every key), a list of one
kind of values, or types."""


def _is_known(entry: Mapping[str, Any]) -> bool:
    """Whether an entry is one that a journal writes: other people's files are journals, too."""
    kind = entry.get(NOTE, "")
    kinds = {"attempt": int} | NOTES.get(kind, {}) if isinstance(kind, str) else None
    return kinds is not None and _fits({"attempt": 1, **entry}, kinds)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a kind as in :data:`NOTES`."""
    if isinstance(kind, dict):
        keys = value if isinstance(value, dict) and ... in kind else kind
        return isinstance(value, dict) and all(
            _fits(value.get(name), kind.get(name, kind.get(...))) for name in keys
        )
    if isinstance(kind, list):
        return isinstance(value, list) and all(_fits(each, kind[0]) for each in value)
    return isinstance(value, kind) and not isinstance(value, bool)
