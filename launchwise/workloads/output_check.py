"""What an output holds before a launch, whether it is right after it, and what is said if not.

The device compares where the output is large: then a copy to the host would take longer than most
kernels. The host repeats the first comparison, and every one that finds a mistake. Before a launch
an output holds, element by element, what the reference does not expect: a kernel that leaves out
an element is wrong there, whatever the right value is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from launchwise.base.arrays import is_inexact
from launchwise.cuda_text.types import CPP_TYPES
from launchwise.workloads.builds import COMPARE_HALF_SOURCE, COMPARE_SOURCE, Build
from launchwise.workloads.comparison import Difference, Expected, largest
from launchwise.workloads.device import (
    Allocations,
    Buffer,
    Device,
    Launch,
    LaunchFailed,
    OutOfMemory,
)

BYTE = 0xFF
"""Every byte of an output whose expected values hold no NaN: NaN in all floating-point types."""


def poisoned(expected: np.ndarray) -> np.ndarray:
    """Values that differ from the expected ones as much as their type allows. Floating-point
    numbers get NaN, and 0 where NaN is expected; integers the end of their range that is further
    away; truth values their opposite; structs this for each field."""
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

    ``memory``: where memory of the device is taken from; too little of it makes each fill a copy.
    ``buffer``: the output.
    ``expected``: what its first elements should hold, in its own type.
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

SMALL_BYTES = 2  # Largest integers that often hold by chance what an output is filled with


def wrong_element(
    name: str, output: OutputCheck, poison: Poison | None, number: int, error: float, limit: float
) -> str:
    """Complaint about an output, with its worst element: its place, value and expected value.

    ``number``: place of the worst number, as :class:`.comparison.Expected` counts them.
    ``error``, ``limit``: its error and what is allowed, relative to the largest expected value.
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


KERNEL = "largest_difference"

HOST_BYTES = 1 << 18
"""Largest output that the host compares: its copy takes about as long as a launch and an answer."""

PIECE_BYTES = 64 << 20  # Most bytes of an output that are copied to the host at once

THREADS = 256
BLOCKS_PER_SM = 8

_NUMBERS = {**CPP_TYPES, "bool": "unsigned char", "complex64": "float", "complex128": "double"}
"""NumPy types that the device compares to the C++ types of their numbers: a complex one has two."""


def compare_build(dtype: np.dtype, nbytes: int) -> Build | None:
    """Build that compares outputs of so many bytes; None where the host does it."""
    found = _NUMBERS.get(dtype.name)
    if nbytes <= HOST_BYTES or found is None:
        return None
    if dtype.name in ("float16", "bfloat16"):
        return Build.of(COMPARE_HALF_SOURCE, {"FOUND": found})
    expected = "double" if found in ("float", "double") else found
    return Build.of(COMPARE_SOURCE, {"FOUND": found, "EXPECTED": expected})


class OutputCheck:
    """One output of a session, or one field of an output of structs, and its expected values.

    ``memory``: where memory of the device is taken from; too little of it leaves the work to the
        host.
    ``buffer``: the output.
    ``dtype``: type of its elements.
    ``values``: what they should be, from its first element on; masked ones do not matter.
    ``field``: name of the field that is compared, of an output of structs.
    """

    def __init__(
        self,
        device: Device,
        memory: Allocations,
        buffer: Buffer,
        dtype: np.dtype,
        values: np.ndarray,
        field: str | None = None,
    ) -> None:
        self.expected = Expected(values)
        self._device = device
        self._buffer = buffer
        self._dtype = dtype
        self.field = field
        self._staging = np.empty(0, np.uint8)
        self._twice = True
        count = self.expected.flat.size // self.expected.parts
        self._build = compare_build(dtype, count * dtype.itemsize)
        self._wanted = self.expected.flat
        number = dtype if field is None else dtype[field]
        if not is_inexact(number):
            with np.errstate(invalid="ignore"):
                self._wanted = self.expected.flat.astype(np.uint8 if number.kind == "b" else number)
            if not np.array_equal(self._wanted, self.expected.flat):
                self._build = None
        if field is not None or self.expected.kept is not None:
            self._build = None
        if self._build is not None:
            try:
                self._answer = memory.take(8)
                self._there = memory.upload(self._wanted)
            except OutOfMemory:
                self._build = None

    @property
    def dtype(self) -> np.dtype:
        return self._dtype if self.field is None else self._dtype[self.field]

    def difference(self, limit: float) -> Difference:
        """The largest difference; the index is exact where it exceeds ``limit``, a relative error.
        Raises LaunchFailed when device and host disagree; that is fatal."""
        if self._build is None:
            return self._on_host()
        size = self._on_device(self._build)
        if not self._twice and self.expected.relative(Difference(size)) <= limit:
            return Difference(size)
        checked = self._on_host()
        if not _same(size, checked.size):
            # A kernel may have written what it should not.
            self._device.upload(self._there, self._wanted)
            size = self._on_device(self._build)
            if not _same(size, checked.size):
                message = (
                    f"the largest difference is {size:.6g} on the device, {checked.size:.6g} here"
                )
                raise LaunchFailed(message, fatal=True)
        self._twice = False
        return checked

    def read(self, begin: int, count: int) -> np.ndarray:
        """Some elements of the output, valid until the next call."""
        nbytes = count * self._dtype.itemsize
        if self._staging.nbytes < nbytes:
            self._staging = self._device.page_locked(nbytes)
        into = self._staging[:nbytes].view(self._dtype)
        part = self._device.part(self._buffer, begin * self._dtype.itemsize, nbytes)
        self._device.download(part, into)
        return into

    def _on_device(self, build: Build) -> float:
        count = self.expected.flat.size  # numbers, two per complex element
        blocks = min(BLOCKS_PER_SM * self._device.sms, math.ceil(count / THREADS))
        given = self._buffer, self._there, np.int64(count), self._answer
        self._device.fill_bytes(self._answer, 0)
        self._device.launch(Launch(build, KERNEL, (blocks, 1, 1), (THREADS, 1, 1), given))
        size = np.empty(1, np.float64)
        self._device.download(self._answer, size)
        return float(size[0])

    def _on_host(self) -> Difference:
        parts = []
        count = self.expected.flat.size // self.expected.parts
        piece = max(1, PIECE_BYTES // self._dtype.itemsize)
        for begin in range(0, count, piece):
            found = self.read(begin, min(piece, count - begin))
            if self.field is not None:
                found = found[self.field]
            parts.append(self.expected.difference(begin * self.expected.parts, found))
        return largest(parts)


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
