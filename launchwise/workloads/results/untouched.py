"""Memory that a launch must leave alone: inputs, and the zones around arrays.

A device is asked for digests, which read every byte once and take no second copy of an input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.builds import DIGEST_SOURCE, Build
from launchwise.workloads.device import Allocations, Buffer, Device, Launch

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
