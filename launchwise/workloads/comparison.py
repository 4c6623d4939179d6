"""Whether a launch wrote what it should: outputs, element by element, and memory that must stay.

A sweep compares the outputs of every configuration, so this runs piece by piece: no second copy of
a large output is made on the host, and the device compares most of them. Of memory that must stay,
inputs and the zones around arrays, a device is asked for digests, which read every byte once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from launchwise.base.arrays import real_numbers
from launchwise.workloads.builds import DIGEST_SOURCE, Build
from launchwise.workloads.device import Allocations, Buffer, Device, Launch

SPAN = 1 << 16  # Elements compared at a time: their differences stay in a core's cache


@dataclass(frozen=True)
class Difference:
    """The largest difference of two arrays."""

    size: float  # its absolute value; NaN where a NaN stands against something else
    # Where it is, in the flat arrays; of several, the first. 0 where there is no difference.
    index: int = 0

    def exceeds(self, other: Difference) -> bool:
        """Whether it is larger than ``other``; NaN is larger than everything else."""
        return not (self.size <= other.size or math.isnan(other.size))


NO_DIFFERENCE = Difference(0.0)


class Expected:
    """Expected content of an output.

    ``values``: array of any shape, in the widest type of its kind. Masked elements of a masked
        array do not matter.
    """

    def __init__(self, values: np.ndarray) -> None:
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        plain = np.asarray(np.ma.getdata(values))
        self.shape = plain.shape
        self.parts = 2 if plain.dtype.kind == "c" else 1
        """Numbers per element: a complex one has two."""
        self.flat = real_numbers(plain)
        """The numbers, flat: float64, or integers."""
        if self.flat.dtype.kind == "f":
            self.flat = self.flat.astype(np.float64, copy=False)
        self.kept: np.ndarray | None = None
        """Places of the numbers that matter; None where all do."""
        if mask is not None and mask.any():
            self.kept = np.flatnonzero(~np.repeat(mask.reshape(-1), self.parts))
        self.scale = largest_magnitude(self.flat if self.kept is None else self.flat[self.kept])
        """The largest finite magnitude."""

    def difference(self, begin: int, found: np.ndarray) -> Difference:
        """Largest difference of ``found`` from the expected numbers that begin at ``begin``.

        ``found``: elements of the output's type, flat.
        Returns difference whose index counts numbers from the start of the output.
        """
        numbers = real_numbers(found)
        end = begin + numbers.size
        if self.kept is None:
            part = largest_difference(numbers, self.flat[begin:end])
            return replace(part, index=begin + part.index)
        places = self.kept[np.searchsorted(self.kept, begin) : np.searchsorted(self.kept, end)]
        part = largest_difference(numbers[places - begin], self.flat[places])
        return replace(part, index=int(places[part.index]) if places.size else begin)

    def element(self, index: int) -> Any:
        """The expected value of an element."""
        numbers = self.flat[index * self.parts : (index + 1) * self.parts]
        return complex(*numbers) if self.parts == 2 else numbers[0]

    def relative(self, difference: Difference) -> float:
        """A difference divided by :attr:`scale`, unless that is 0."""
        return difference.size / (self.scale or 1.0)


def largest_difference(found: np.ndarray, expected: np.ndarray) -> Difference:
    """Largest difference of two flat arrays of one length. Equal infinities are no difference, nor
    are two NaN. Integers that differ differ by one at least, however large they are."""
    worst = NO_DIFFERENCE
    for start in range(0, found.size, SPAN):
        span = slice(start, start + SPAN)
        worst = _worse(found[span], expected[span], start, worst)
    return worst


def largest(differences: Iterable[Difference]) -> Difference:
    """The largest of several differences, the first where several are."""
    found = NO_DIFFERENCE
    for each in differences:
        if each.exceeds(found):
            found = each
    return found


def largest_magnitude(values: np.ndarray) -> float:
    """Largest absolute value of an array, infinities and NaN left out; 0 where there is none."""
    finite = np.abs(np.asarray(values[np.isfinite(values)], np.float64))
    return float(finite.max()) if finite.size else 0.0


def _worse(found: np.ndarray, expected: np.ndarray, begin: int, worst: Difference) -> Difference:
    """The largest difference of a span that begins at ``begin``, if it exceeds ``worst``."""
    if found.dtype.kind == expected.dtype.kind == "f":
        with np.errstate(all="ignore"):
            away = found - expected
        size = max(float(away.max()), -float(away.min()))
        # Infinities and NaN fail here: what they stand against decides.
        if math.isfinite(size):
            if not Difference(size).exceeds(worst):
                return worst
            return Difference(size, begin + int(np.abs(away).argmax()))
    return largest([worst, _carefully(found, expected, begin)])


def _carefully(found: np.ndarray, expected: np.ndarray, begin: int) -> Difference:
    differ = found != expected
    if found.dtype.kind == "f" and expected.dtype.kind == "f":
        differ &= ~(np.isnan(found) & np.isnan(expected))
    if not differ.any():
        return NO_DIFFERENCE
    with np.errstate(all="ignore"):
        away = np.abs(np.asarray(found, np.float64) - np.asarray(expected, np.float64))
    if found.dtype.kind in "iu" and expected.dtype.kind in "iu":
        # float64 does not tell large integers apart.
        away = np.maximum(away, 1.0)
    away[~differ] = 0.0
    # NaN is the largest for argmax and max alike.
    return Difference(float(away.max()), begin + int(away.argmax()))


KERNEL = "digest_regions"
DIGEST_BUILD = Build.of(DIGEST_SOURCE, {})
THREADS = 256
BLOCKS_PER_SM = 4

GUARD_BYTES = 4096
"""Guard zone before and behind an array; a multiple of every alignment that CUDA asks for."""

GUARD_BYTE = 0x81
"""Byte of the guard zones of the first array; each further array has one of its own, so that a copy
from beyond one array to beyond another shows."""


@dataclass(frozen=True)
class Zone:
    """The guard zones of an array and where it lies in the memory between them."""

    before: Buffer
    array: Buffer
    behind: Buffer
    byte: int


def guarded(device: Device, memory: Allocations, nbytes: int, number: int) -> Zone:
    """Allocate array ``number`` between two guard zones; OutOfMemory as any allocation."""
    whole = memory.take(nbytes + 2 * GUARD_BYTES)
    zone = Zone(
        device.part(whole, 0, GUARD_BYTES),
        device.part(whole, GUARD_BYTES, nbytes),
        device.part(whole, GUARD_BYTES + nbytes, GUARD_BYTES),
        GUARD_BYTE + number % 100,
    )
    for guard in (zone.before, zone.behind):
        device.fill_bytes(guard, zone.byte)
    return zone


class Untouched:
    """Watches inputs and guard zones of a session.

    ``memory``: where a little memory of the device is taken from.
    ``inputs``: name to buffer and content of every array that must stay as it is.
    ``zones``: name to the zones around it, of every array; none where the device guards its
        buffers.
    """

    def __init__(
        self,
        device: Device,
        memory: Allocations,
        inputs: Mapping[str, tuple[Buffer, np.ndarray]],
        zones: Mapping[str, Zone],
    ) -> None:
        self._device = device
        self._inputs = {name: each for name, each in inputs.items() if each[1].nbytes}
        self._zones = dict(zones)
        self._regions = [
            *(buffer for buffer, _ in self._inputs.values()),
            *(guard for zone in self._zones.values() for guard in (zone.before, zone.behind)),
        ]
        self._before: np.ndarray | None = None
        if self._zones:
            table = np.array(
                [(_address(each), each.nbytes) for each in self._regions], dtype=np.uint64
            )
            self._table = memory.upload(table)
            self._answers = memory.take(8 * len(self._regions))

    def note(self) -> None:
        """Remember what there is; called once the inputs are there."""
        if self._zones:
            self._before = self._digests()

    def complaint(self) -> str:
        """What a launch changed, in words; '' if nothing. Puts it back."""
        if not self._zones:
            changed = list(self._inputs)
            where: list[str] = []
        else:
            differs = np.flatnonzero(self._digests() != self._before)
            count = len(self._inputs)
            changed = [name for place, name in enumerate(self._inputs) if place in differs]
            zones = {(place - count) // 2 for place in differs.tolist() if place >= count}
            where = [name for place, name in enumerate(self._zones) if place in zones]
        said = [text for name in changed if (text := self._of_input(name))]
        said += [self._of_zone(name) for name in where]
        return "; ".join(said)

    def _of_input(self, name: str) -> str:
        buffer, content = self._inputs[name]
        there = np.empty(content.nbytes, np.uint8)
        self._device.download(buffer, there)
        wanted = content.reshape(-1).view(np.uint8)
        different = np.flatnonzero(there != wanted)
        if not different.size:
            return ""
        index = int(different[0]) // content.itemsize
        place = ", ".join(map(str, np.unravel_index(index, content.shape)))
        value = there.view(content.dtype)[index]
        self._device.upload(buffer, content)
        return f"the input {name}[{place}] is overwritten: {content.flat[index]} became {value}"

    def _of_zone(self, name: str) -> str:
        zone = self._zones[name]
        said = ""
        for end, guard in (("start", zone.before), ("end", zone.behind)):
            there = np.empty(GUARD_BYTES, np.uint8)
            self._device.download(guard, there)
            written = np.flatnonzero(there != zone.byte)
            if written.size and not said:
                last, first = int(written[-1]), int(written[0])
                byte = last - GUARD_BYTES if end == "start" else zone.array.nbytes + first
                said = f"writes byte {byte}, beyond the {end} of {name} ({zone.array.nbytes} B)"
            self._device.fill_bytes(guard, zone.byte)
        return said

    def _digests(self) -> np.ndarray:
        device, count = self._device, len(self._regions)
        blocks = BLOCKS_PER_SM * device.sms, count, 1
        device.fill_bytes(self._answers, 0)
        given = self._table, self._answers
        device.launch(Launch(DIGEST_BUILD, KERNEL, blocks, (THREADS, 1, 1), given))
        digests = np.empty(count, np.uint64)
        device.download(self._answers, digests)
        return digests


def _address(buffer: Buffer) -> int:
    allocation: Any = buffer.allocation  # type: ignore[attr-defined]
    return int(allocation.ctypes.data) if isinstance(allocation, np.ndarray) else int(allocation)
