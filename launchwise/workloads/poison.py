"""What an output holds before a launch: element by element, not what the reference expects.

So a kernel that leaves out an element is wrong there, whatever the right value is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from launchwise.workloads.device import Allocations, Buffer, Device, OutOfMemory
from launchwise.workloads.element_types import is_inexact

BYTE = 0xFF
"""Every byte of an output whose expected values hold no NaN: NaN in all floating-point types."""


def poisoned(expected: np.ndarray) -> np.ndarray:
    """Values that differ from the expected ones as much as their type allows.

    Floating-point numbers get NaN, and 0 where NaN is expected; integers the end of their range
    that is further away; truth values their opposite; structs this for each field.
    """
    dtype = expected.dtype
    if dtype.names is not None:
        made = np.empty(expected.shape, dtype)
        made.view(np.uint8)[...] = BYTE
        for name in dtype.names:
            made[name] = poisoned(expected[name])
        return made
    if dtype.kind == "b":
        return ~expected
    if is_inexact(dtype):
        made = np.empty(expected.shape, dtype)
        made.view(np.uint8)[...] = BYTE
        made[np.isnan(expected)] = 0
        return made
    limits = np.iinfo(dtype)
    middle = dtype.type(limits.min + (limits.max - limits.min) // 2)
    # In the type itself: the largest uint64 is no Python integer that NumPy takes unasked.
    return np.where(expected > middle, dtype.type(limits.min), dtype.type(limits.max))


class Poison:
    """Fills an output before each verified launch.

    Parameters
    ----------
    memory
        Where memory of the device is taken from; too little of it makes each fill a copy.
    buffer
        The output.
    expected
        What its first elements should hold, in its own type.
    """

    def __init__(
        self, device: Device, memory: Allocations, buffer: Buffer, expected: np.ndarray
    ) -> None:
        self._device = device
        self._buffer = buffer
        self._kept: Buffer | None = None
        self.values: np.ndarray | None = None
        """What is filled in; None where every byte is :data:`BYTE`."""
        flat = np.ascontiguousarray(expected).reshape(-1)
        if is_inexact(flat.dtype) and not np.isnan(flat).any():
            return
        self.values = poisoned(flat)
        try:
            self._kept = memory.upload(self.values)
        except OutOfMemory:
            self._kept = None

    def fill(self) -> None:
        """Fill the output."""
        self._device.fill_bytes(self._buffer, BYTE)
        if self._kept is not None:
            self._device.copy(self._kept, self._device.part(self._buffer, 0, self._kept.nbytes))
        elif self.values is not None:
            self._device.upload(self._buffer, self.values)

    def was_left(self, index: int, value: Any) -> bool:
        """Whether an element still holds what was filled in."""
        if self.values is not None:
            return bool(self.values[index].tobytes() == np.asarray(value).tobytes())
        return set(np.asarray(value).tobytes()) == {BYTE}
