"""A device that is made up, for the benchmarks of ceilings.

It has one clock: it does what it is told at once, and its clock goes on by what that takes. What
benchmarks then find must be what the device was made with.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from launchwise.measuring.measure import LaunchFailed

LAUNCH_US = 3.0
PER_GRAPH_NODE_US = 1.25
COPY_US = 2.0
STREAM_US = 6.0
TO_DEVICE_GBS, TO_HOST_GBS, PAGEABLE_SHARE = 50.0, 40.0, 0.25
SOLVE_NS = 15.0

RATES_MS = 1.0  # Every kernel that measures a rate

STEP_NS = {
    "chase_l1": 20.0,
    "chase_shared": 15.0,
    "chain_float32": 2.0,
    "chain_float64": 4.0,
    "divide_float32": 25.0,
    "divide_float64": 70.0,
    "wait_for_block": 11.0,
}

L2_NS, DRAM_NS = 140.0, 450.0


class DriverError(Exception):
    """What PyCUDA would raise."""


@dataclasses.dataclass
class Memory:
    """A buffer or a part of one."""

    allocation: int
    nbytes: int


class MadeUpDevice:
    """See the top. Launches are recorded: name, grid, block."""

    sms = 4
    l2_bytes = 4_000_000
    device = SimpleNamespace(total_memory=lambda: 1 << 27)

    def __init__(self) -> None:
        self.clock_ms = 0.0
        self.held: list[Memory] = []
        self.launched: dict[str, tuple[int, int]] = {}
        self.capturing: list[float] | None = None
        self.lost = False
        self.broken: dict[str, Exception] = {}

    def spend_us(self, time_us: float) -> None:
        """Let time pass."""
        self.clock_ms += time_us / 1e3

    def get_function(self, name: str) -> Any:
        """As a module's."""
        if name in self.broken:
            raise self.broken[name]

        def call(grid: tuple[int, ...], block: tuple[int, ...], stream: Any, *given: Any) -> None:
            self.launched[name] = grid[0], block[0]
            if self.capturing is not None:
                self.capturing.append(PER_GRAPH_NODE_US)
                return
            self.spend_us(LAUNCH_US + self.takes_us(name, given))

        return SimpleNamespace(prepare=lambda kinds: None, prepared_async_call=call)

    def takes_us(self, name: str, given: tuple[Any, ...]) -> float:
        """Of a kernel, without its launch."""
        if name == "nothing":
            return 0.0
        if name == "chase_l2":
            footprint = max(each.nbytes for each in self.held)
            return given[-1] * (DRAM_NS if footprint > self.l2_bytes else L2_NS) / 1e3
        if name in STEP_NS:
            return given[-1] * STEP_NS[name] / 1e3
        return RATES_MS * 1e3 - LAUNCH_US

    def allocate(self, nbytes: int) -> Memory:
        """As a device's."""
        self.held.append(Memory(1 << 40, nbytes))
        return self.held[-1]

    def release(self, buffer: Memory) -> None:
        """As a device's."""
        self.held.remove(buffer)

    def part(self, buffer: Memory, offset: int, nbytes: int) -> Memory:
        """As a device's."""
        assert offset + nbytes <= buffer.nbytes
        return Memory(buffer.allocation + offset, nbytes)

    def fill_bytes(self, buffer: Memory, value: int) -> None:
        """As a device's."""

    def upload(self, buffer: Memory, array: np.ndarray, stream: Any = None) -> None:
        """As a device's."""
        self.copy(buffer, array, stream, TO_DEVICE_GBS)

    def download(self, buffer: Memory, array: np.ndarray, stream: Any = None) -> None:
        """As a device's."""
        self.copy(buffer, array, stream, TO_HOST_GBS)

    def copy(self, buffer: Memory, array: np.ndarray, stream: Any, gbs: float) -> None:
        """What page-locked memory does, where there is a stream."""
        assert array.nbytes <= buffer.nbytes
        self.spend_us(COPY_US if array.nbytes < 100 else 0.0)
        self.spend_us(array.nbytes / gbs / 1e3 / (1 if stream else PAGEABLE_SHARE))

    def page_locked(self, nbytes: int) -> np.ndarray:
        """As a device's."""
        return np.empty(nbytes, np.uint8)

    def stream(self) -> str:
        """As a device's; creation takes time."""
        self.spend_us(STREAM_US)
        return "a stream"

    def event(self, stream: Any = None) -> float:
        """As a device's."""
        return self.clock_ms

    def elapsed_ms(self, begin: float, end: float) -> float:
        """As a device's."""
        return end - begin

    def synchronize(self) -> None:
        """As a device's."""
        if self.lost:
            raise LaunchFailed("an illegal memory access", fatal=True)

    def captured(self, queue: Callable[[], None], streams: Iterable[Any]) -> Any:
        """As a device's."""
        self.capturing = kernels = []
        queue()
        self.capturing = None

        def launch() -> None:
            self.spend_us(10.0 + sum(kernels))

        return SimpleNamespace(launch=launch, close=lambda: None)
