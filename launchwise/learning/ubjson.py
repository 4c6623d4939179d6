"""Reads Universal Binary JSON, as XGBoost writes its models, without XGBoost.

See https://ubjson.org: big-endian numbers, a marker before each value, arrays of one type.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_CONSTANTS = {"Z": None, "T": True, "F": False}
DEEPEST = 20
"""Containers within containers of a model; a file with more is none."""


def read_ubjson(content: bytes) -> Any:
    """Value that the bytes hold; arrays of one type of number as NumPy arrays.

    Raises
    ------
    ValueError
        When they hold none.
    """
    try:
        value, end = _Reader(content).value(0, 0)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"no UBJSON: {error!r}") from error
    if end != len(content):
        raise ValueError("no UBJSON: something follows it")
    return value


class _Reader:
    """Every method takes the place to read at, and returns the value and the place behind it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._containers: dict[str, Callable[[int, int], tuple[Any, int]]] = {
            "{": self._mapping,
            "[": self._list,
        }

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        marker = self._marker(at)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker], at + 1
        if marker == "S":
            return self._text(at + 1)
        if marker in self._containers:
            if depth > DEEPEST:
                raise ValueError("no UBJSON of a model: too deep")
            return self._containers[marker](at + 1, depth + 1)
        return self._number(marker, at + 1)

    def _marker(self, at: int) -> str:
        return chr(self._content[at])

    def _number(self, marker: str, at: int) -> tuple[Any, int]:
        kind = np.dtype(_NUMBERS[marker])
        end = at + kind.itemsize
        if end > len(self._content):
            raise IndexError("it ends too early")
        return np.frombuffer(self._content, kind, 1, at)[0].item(), end

    def _length(self, at: int) -> tuple[int, int]:
        length, end = self._number(self._marker(at), at + 1)
        if not 0 <= int(length) <= len(self._content) - end:
            raise IndexError("it ends too early")
        return int(length), end

    def _text(self, at: int) -> tuple[str, int]:
        length, start = self._length(at)
        return self._content[start : start + length].decode(), start + length

    def _mapping(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found = {}
        while self._marker(at) != "}":
            name, at = self._text(at)
            found[name], at = self.value(at, depth)
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[Any, int]:
        if self._marker(at) == "$":
            kind = np.dtype(_NUMBERS[self._marker(at + 1)])
            if self._marker(at + 2) != "#":
                raise ValueError("no UBJSON: an array of one type without its length")
            count, start = self._length(at + 3)
            end = start + count * kind.itemsize
            if end > len(self._content):
                raise IndexError("it ends too early")
            values = np.frombuffer(self._content, kind, count, start)
            return values.astype(kind.newbyteorder("=")), end
        found: list[Any] = []
        if self._marker(at) == "#":
            count, at = self._length(at + 1)
            for _ in range(count):
                value, at = self.value(at, depth)
                found.append(value)
            return found, at
        while self._marker(at) != "]":
            value, at = self.value(at, depth)
            found.append(value)
        return found, at + 1
