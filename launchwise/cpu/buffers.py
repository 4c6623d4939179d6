"""Memory of the CPU device."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from launchwise.workloads.device import Buffer

GUARD_BYTES = 1 << 14  # Guard zone before and behind a buffer

GUARDS = tuple(
    np.tile(np.array(content, np.uint8), GUARD_BYTES // 4)
    for content in ([0x5B, 0x5A, 0xFF, 0xFF], [0x3F, 0x40, 0x41, 0x41])
)
"""Contents of a guard zone: NaN, but not the poison of shared memory; numbers that adding changes.

Both of float32 and float64; what is read there shows as NaN, and a sum stored there as a change.
The numbers differ from buffer to buffer, so that a copy from one zone to another shows, too.
"""

_numbers = itertools.count(1)


class CpuBuffer:
    """Memory of the CPU, its own or at an address; ``allocation`` as the CUDA device's buffers."""

    def __init__(self, nbytes: int, address: int | None = None) -> None:
        self.nbytes = nbytes
        self._guards: tuple[np.ndarray, ...] = ()
        self._kind = self._content = GUARDS[0]
        self._mark = next(_numbers) % 250
        self.allocation: Any = address
        self.address = address or 0
        if address is None:
            # Neither zeros nor poison: nothing may rely on what fresh memory holds.
            memory = np.full(nbytes + 2 * GUARD_BYTES, 0x5A, np.uint8)
            self.allocation = memory[GUARD_BYTES : GUARD_BYTES + nbytes]
            # NumPy lets a slice without elements begin where the whole array does.
            self.address = memory.ctypes.data + GUARD_BYTES
            self._guards = memory[:GUARD_BYTES], memory[GUARD_BYTES + nbytes :]
            for guard in self._guards:
                guard[:] = self._content

    def guard(self, content: np.ndarray) -> None:
        """Let the guard zones hold this content, one of :data:`GUARDS`."""
        if content is self._kind:
            return
        self._kind = content
        self._content = content.copy()
        if content is not GUARDS[0]:
            self._content[1::4] = self._mark
        for guard in self._guards:
            guard[:] = self._content

    def overrun(self) -> str:
        """What a launch wrote into a guard zone, in words; '' if nothing. Mends the zone."""
        for end, guard in zip(("start", "end"), self._guards, strict=False):
            (written,) = np.nonzero(guard != self._content)
            if written.size:
                guard[:] = self._content
                byte = written[-1] - GUARD_BYTES if end == "start" else self.nbytes + written[0]
                return f"writes byte {byte}, beyond the {end} of a buffer of {self.nbytes} B"
        return ""


def memory_of(buffer: Buffer, nbytes: int) -> np.ndarray:
    """The first bytes of a buffer; somebody else's memory is known by its address."""
    memory: Any = buffer.allocation  # type: ignore[attr-defined]
    if isinstance(memory, int):
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(memory))
    return np.asarray(memory[:nbytes])


def address_of(buffer: Buffer) -> int:
    """Where a buffer begins; of somebody else's, where its memory does."""
    own: Any = getattr(buffer, "address", None)
    return int(memory_of(buffer, buffer.nbytes).ctypes.data if own is None else own)


class CpuPart:
    """Some bytes of a buffer."""

    def __init__(self, whole: Buffer, offset: int, nbytes: int) -> None:
        self.nbytes = nbytes
        self.allocation = memory_of(whole, offset + nbytes)[offset:]
        self.address = address_of(whole) + offset
