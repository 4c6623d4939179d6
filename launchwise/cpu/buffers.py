"""Memory of the CPU device."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from launchwise.workloads.device import Buffer

GUARD_BYTES = 1 << 14
"""Guard zone before and behind a buffer."""

GUARD = np.tile(np.array([0x5B, 0x5A, 0xFF, 0xFF], np.uint8), GUARD_BYTES // 4)
"""Content of a guard zone: NaN in float32 and float64, but not the poison of shared memory."""


class CpuBuffer:
    """Memory of the CPU, its own or at an address; ``allocation`` as the CUDA device's buffers."""

    def __init__(self, nbytes: int, address: int | None = None) -> None:
        self.nbytes = nbytes
        self._guards: tuple[np.ndarray, ...] = ()
        self.allocation: Any = address
        if address is None:
            # Neither zeros nor poison: nothing may rely on what fresh memory holds.
            memory = np.full(nbytes + 2 * GUARD_BYTES, 0x5A, np.uint8)
            self.allocation = memory[GUARD_BYTES : GUARD_BYTES + nbytes]
            self._guards = memory[:GUARD_BYTES], memory[GUARD_BYTES + nbytes :]
            for guard in self._guards:
                guard[:] = GUARD

    def overrun(self) -> str:
        """What a launch wrote into a guard zone, in words; '' if nothing. Mends the zone."""
        for end, guard in zip(("start", "end"), self._guards, strict=False):
            (written,) = np.nonzero(guard != GUARD)
            if written.size:
                guard[:] = GUARD
                byte = written[-1] - GUARD_BYTES if end == "start" else self.nbytes + written[0]
                return f"writes byte {byte}, beyond the {end} of a buffer of {self.nbytes} B"
        return ""


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
