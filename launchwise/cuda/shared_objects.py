"""Shared objects of CUDA, found by the linker's names."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


def loaded(title: str, names: Sequence[str]) -> ctypes.CDLL:
    """The first of these libraries that is there. Raises OSError without any; ``title`` names the
    library for people."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"{title} is not there")


def address(buffer: Any) -> int:
    return int(buffer.allocation)
