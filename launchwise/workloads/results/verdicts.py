"""What is said of a result that is wrong, and of a reference that verifies nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from launchwise.workloads.device import Allocations, Buffer, Device, OutOfMemory
from launchwise.workloads.element_types import is_inexact
from launchwise.workloads.results.output_check import OutputCheck

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


NEVER_WRITTEN = "is never written"
"""What is said of an element that holds what outputs are filled with."""

SMALL_BYTES = 2
"""Largest integers that often hold by chance what an output is filled with."""


def wrong_element(
    name: str, output: OutputCheck, poison: Poison | None, number: int, error: float, limit: float
) -> str:
    """Complaint about an output, with its worst element: its place, value and expected value.

    Parameters
    ----------
    number
        Place of the worst number, as :class:`.comparison.Expected` counts them.
    error, limit
        Its error and what is allowed, relative to the largest expected value.
    """
    index = number // output.expected.parts
    place = ", ".join(map(str, np.unravel_index(index, output.expected.shape or (1,))))
    whole = output.read(index, 1)[0]
    found = whole if output.field is None else whole[output.field]
    where = f"{name}[{place}]" + (f".{output.field}" if output.field else "")
    expected = output.expected.element(index)
    if poison is not None and poison.was_left(index, whole):
        # A small type has few values: a kernel may as well have written this one.
        small = output.dtype.itemsize <= SMALL_BYTES
        wrongly = f" or is wrongly {shown(found)}" if small else ""
        if is_inexact(output.dtype):
            # A sum with NaN, which it was filled with, is NaN.
            wrongly = " or only added to" if np.isnan(found) else ""
        return f"{where} {NEVER_WRITTEN}{wrongly}, expected {shown(expected)}"
    said = f"{where} is {shown(found)}, expected {shown(expected)}"
    if not is_inexact(output.dtype) and not limit:
        return said
    if not math.isfinite(error):
        return said
    return f"{said}: off by {error:.3g} of the largest value (allowed {limit:.3g})"


def shown(value: Any) -> str:
    """A number for people: integers with all their digits, truth values as 0 and 1."""
    plain = np.asarray(value)
    if plain.dtype.kind == "b":
        return str(int(plain[()]))
    if plain.dtype.kind in "iu":
        return str(plain[()])
    if plain.dtype.kind == "c":
        return f"{complex(plain):.6g}"
    return f"{float(plain):.6g}"


def nan_in(values: np.ndarray) -> str | None:
    """Place of the first NaN among expected values that are compared; None where there is none."""
    data: Any = np.ma.getdata(values)
    mask: Any = np.ma.getmaskarray(values)
    fields = data.dtype.names
    parts: list[Any] = [(data, mask)]
    if fields is not None:
        parts = [(data[each], mask[each]) for each in fields]
    for part, hidden in parts:
        if is_inexact(part.dtype):
            bad = np.flatnonzero(np.isnan(part) & ~hidden)
            if bad.size:
                return ", ".join(map(str, np.unravel_index(int(bad[0]), part.shape or (1,))))
    return None


def unchanged(expected: Mapping[str, np.ndarray], before: Mapping[str, np.ndarray]) -> bool:
    """Whether arrays that are read and written are expected to hold what they held before."""
    return all(
        np.array_equal(
            np.ma.getdata(values).reshape(-1).astype(before[name].dtype),
            before[name].reshape(-1)[: np.size(values)],
        )
        for name, values in expected.items()
    )
