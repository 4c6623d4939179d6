"""Memory of the CPU device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from launchwise.workloads.device import Buffer


class CpuBuffer:
    """Memory of the CPU, its own or at an address; ``allocation`` as the CUDA device's buffers."""

    def __init__(self, nbytes: int, address: int | None = None) -> None:
        self.nbytes = nbytes
        # Neither zeros nor poison: nothing may rely on what fresh memory holds.
        self.allocation: Any = np.full(nbytes, 0x5A, np.uint8) if address is None else address


def memory_of(buffer: Buffer, nbytes: int) -> np.ndarray:
    """The first bytes of a buffer; somebody else's memory is known by its address."""
    memory: Any = buffer.allocation  # type: ignore[attr-defined]
    if isinstance(memory, int):
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(memory))
    return np.asarray(memory[:nbytes])


class CpuPart:
    """Some bytes of a buffer."""

    def __init__(self, whole: Buffer, offset: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.allocation = memory_of(whole, offset + nbytes)[offset:]
