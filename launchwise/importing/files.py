"""Opens files of others: plain or gzip, complete or cut off."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError

GZIP = b"\x1f\x8b"


def read_text(path: str | Path) -> str:
    """Text of a file, unpacked where it is gzip by its first bytes, whatever its name.

    Raises
    ------
    UserError
        When it is missing, is no gzip after all, or is no UTF-8.
    """
    try:
        content = Path(path).read_bytes()
        if content.startswith(GZIP):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(path, "", f"is not UTF-8 text: {error.reason}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(path, "", f"is not a complete gzip file: {error}") from error
    except OSError as error:
        raise UserError(path, "", f"cannot be read: {error.strerror or error}") from error


class Repeated(dict[str, Any]):
    """An object of JSON in which a key stands more than once; the last counts."""

    count: int
    """Entries that others of the same key replace."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    found = Repeated(plain)
    found.count = len(pairs) - len(plain)
    return found


def parse_json(text: str, path: str | Path) -> tuple[Any, bool]:
    """Content of a JSON text, and whether it was cut off.

    A run that was killed leaves an object without its last entry or its closing brackets: what
    stands before the last complete entry is read. A text that is damaged further up is not.

    Raises
    ------
    UserError
        When it is no JSON even so; with the line of the damage.
    """
    try:
        return json.loads(text, object_pairs_hook=_object), False
    except RecursionError as error:
        raise UserError(path, "", "is not JSON: nested too deep") from error
    except ValueError as error:
        problem = error
    repaired = _closed(text, path)
    if repaired is not None:
        try:
            return json.loads(repaired, object_pairs_hook=_object), True
        except (ValueError, RecursionError):
            pass
    raise UserError(path, "", f"is not JSON: {problem}")


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[{}\[\]]', re.DOTALL)
"""A text (also one that the end of the file cuts) or a bracket."""

ENTRY_DEPTH = 2
"""Brackets that are open around an entry: the file's object, and the object or list of entries."""


LONGEST_CUT = 2
"""Longest rest of a file that was cut off, in lengths of its longest entry: more is damage."""


def _closed(text: str, path: str | Path) -> str | None:
    """``text`` up to its last complete entry, with the brackets that are open there closed.

    None where no bracket is open at the end: the text has another fault.

    Raises
    ------
    UserError
        When more follows than an entry that was cut off: then a bracket is missing further up.
    """
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
        line = text.count("\n", 0, last[0]) + 1
        raise UserError(f"{path}:{line}", "", "is damaged: an entry that begins here has no end")
    return text[: last[0]] + last[1]
