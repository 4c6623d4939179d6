"""A device that runs kernels' own sources on the CPU.

It lets everything around a GPU run for real where there is none: builds, launches, verification,
the measuring process, journals. Its times are a CPU's and mean nothing.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from launchwise.cpu.library import Compiler
from launchwise.cpu.loaded import GUARDS, CpuBuffer, CpuPart, Library, Request, memory_of, stacks
from launchwise.cpu.other_functions import CFunctions, TritonFunctions
from launchwise.cpu.toolchain import private_folder
from launchwise.workloads.builds import Build
from launchwise.workloads.device import Buffer, Launch, LaunchFailed, OutOfMemory

Order = Literal["forward", "backward", "shuffled"]

ORDERS: tuple[Order, ...] = ("forward", "backward", "shuffled")
"""Orders in which the threads and blocks of successive launches run."""

POISON = {"forward": 0xFF, "backward": 0x7B, "shuffled": 0xFF}
"""Byte that shared memory holds before a block writes it: NaN and -1, or large numbers."""

# Largest block and grid, and shared memory per block of an H100, bytes.
MOST_THREADS = 1024
MOST_BLOCK = (1024, 1024, 64)
MOST_GRID = (2**31 - 1, 65535, 65535)
MOST_SHARED = 232448

_one_launch = threading.Lock()
"""Compiled kernels keep the state of a launch in variables of their own."""


class CpuGraph:
    def __init__(self, queue: Callable[[], None]) -> None:
        self.launch = queue

    def close(self) -> None:
        """There is nothing to give back."""


class CpuDevice:
    """See :class:`launchwise.workloads.device.Device`. A launch whose threads do wrong raises
    LaunchFailed and leaves the device usable. ``headers``: what its spec lists under ``headers``.
    ``memory_bytes``: allocations beyond this fail as a card's do. ``cache``: where compiled kernels
    are kept; without it, in the system's temporary folder. ``orders``: orders of threads and
    blocks, which the launches of a kernel take in turn: a missing barrier gives a wrong result in
    one of them. ``watched``: an update that a GPU loses fails, since threads run one after the
    other here; kernels take some times as long."""

    sms = 2
    guards_buffers = True

    def __init__(
        self,
        folder: Path,
        headers: list[str],
        memory_bytes: int = 1 << 30,
        cache: Path | None = None,
        orders: tuple[Order, ...] = ORDERS,
        watched: bool = False,
    ) -> None:
        self.free_bytes = memory_bytes
        self.orders = orders
        kept = cache or private_folder("kernels")
        self._compiler = Compiler(folder, headers, kept, watched)
        self._functions = CFunctions(folder, kept)
        self._triton = TritonFunctions(folder)
        self._libraries: dict[str, Library] = {}
        self._launches: dict[str, int] = {}
        self._calls = 0
        self._round: int | None = None
        self._buffers: weakref.WeakSet[CpuBuffer] = weakref.WeakSet()
        self.launched: set[str] = set()
        """Keys of the builds that kernels were taken from."""

    def prepare(self, *builds: Build) -> None:
        """Compile builds at the same time, unless they are kept, for launches here or elsewhere.
        Raises CannotCompile for the first that g++ or this device refuses; all others are
        compiled."""
        others = [build for build in builds if not (build.offloads or build.is_triton)]
        self._compiler.prepare(others)
        for build in builds:
            if build.offloads:
                self._functions.library(build)
            elif build.is_triton:
                self._triton.prepare(build)

    def begin_round(self, number: int) -> None:
        """Run all launches from now on in one order: the first one in round 0, the next in 1. Each
        launch of a run that is repeated so meets every order, however many there are in a run."""
        self._round = number

    def allocate(self, nbytes: int) -> CpuBuffer:
        """Take from the device's memory; OutOfMemory when too little is left."""
        if nbytes > self.free_bytes:
            raise OutOfMemory(f"{nbytes} B asked, {self.free_bytes} B free")
        self.free_bytes -= nbytes
        buffer = CpuBuffer(nbytes)
        self._buffers.add(buffer)
        return buffer

    def release(self, buffer: Buffer) -> None:
        self.free_bytes += buffer.nbytes

    def fill_bytes(self, buffer: Buffer, value: int) -> None:
        memory_of(buffer, buffer.nbytes)[:] = value

    def part(self, buffer: Buffer, offset: int, nbytes: int) -> CpuPart:
        return CpuPart(buffer, offset, nbytes)

    def tensor_map(
        self, buffer: Buffer, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
    ) -> np.ndarray:
        """A CPU has no copy engine: LaunchFailed."""
        raise LaunchFailed("the CPU device has no copy engine for tensor maps")

    def page_locked(self, nbytes: int) -> np.ndarray:
        return np.full(nbytes, 0x5A, np.uint8)

    def stream(self) -> str:
        """Everything is done at once, on every stream."""
        return "stream"

    def event(self, stream: Any = None) -> float:
        return time.perf_counter()

    def wait(self, event: float) -> None:
        """Everything is done when it is queued."""

    def elapsed_ms(self, begin: float, end: float) -> float:
        return 1e3 * (end - begin)

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def upload(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        content = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        memory_of(buffer, content.size)[:] = content

    def download(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        array.reshape(-1).view(np.uint8)[:] = memory_of(buffer, array.nbytes)

    def copy(self, source: Buffer, target: Buffer) -> None:
        memory_of(target, target.nbytes)[:] = memory_of(source, target.nbytes)

    def launch(self, launch: Launch, stream: Any = None) -> None:
        """Run every thread of the launch, one at a time. Raises LaunchFailed for a build that does
        not compile, arguments that do not fit the kernel's parameters, a barrier in divergent code,
        an access to memory that does not exist, or a write to the guard zone of a buffer."""
        self.launched.add(launch.build.key)
        if launch.build.offloads or launch.build.is_triton:
            functions = self._functions if launch.build.offloads else self._triton
            # Sums keep a NaN and change numbers; what is read there shows as a NaN.
            self._calls += 1
            _, overrun = self._guarded(functions.call(launch), GUARDS[self._calls % 2])
            if overrun:
                raise LaunchFailed(f"{launch.kernel}: {overrun}")
            return
        kernel = self._library(launch.build).kernel(launch)
        _check_shape(launch)
        try:
            values = kernel.values(launch.arguments)
        except LaunchFailed as unfit:
            raise LaunchFailed(f"{launch.kernel}: {unfit}") from None
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        number = self._launches[kernel.name] = self._launches.get(kernel.name, -1) + 1
        turn = number if self._round is None else self._round
        order = self.orders[turn % len(self.orders)]
        reason = ctypes.create_string_buffer(1024)
        request = Request(
            tuple(launch.grid),
            tuple(launch.block),
            launch.shared_bytes,
            2 + number if order == "shuffled" else ("forward", "backward").index(order),
            POISON[order],
            stacks(kernel.library),
            ctypes.addressof(reason),
            ctypes.sizeof(reason),
        )
        with _one_launch:
            run = partial(kernel.run, pointers, ctypes.byref(request))
            failed, overrun = self._guarded(run, GUARDS[order == "backward"])
        if failed or overrun:
            told = reason.value.decode(errors="replace") if failed else overrun
            said = self._library(launch.build).placed(told)
            said = self._compiler.as_user_knows(launch.build, said)
            raise LaunchFailed(f"{launch.kernel}: {said}; threads ran {order}")

    def _guarded(self, call: Callable[[], Any], content: np.ndarray) -> tuple[Any, str]:
        """What a call returns, and what it wrote beside a buffer, where ``content`` lay."""
        buffers = list(self._buffers)
        for buffer in buffers:
            buffer.guard(content)
        returned = call()
        overruns = [said for buffer in buffers if (said := buffer.overrun())]
        return returned, next(iter(overruns), "")

    def parameter_bytes(self, launch: Launch) -> list[int] | None:
        return [size for size, _ in self._library(launch.build).kernel(launch).parameters]

    def constant(self, build: Build, name: str) -> Buffer:
        """A ``__constant__`` or ``__device__`` variable of a build, as a buffer. Raises
        LaunchFailed if the build has no variable of this name, or several."""
        return self._library(build).variable(name)

    def captured(self, queue: Callable[[], None], streams: Iterable[Any]) -> CpuGraph:
        """It can be done again, whenever that is."""
        return CpuGraph(queue)

    def _library(self, build: Build) -> Library:
        if build.key not in self._libraries:
            self._libraries[build.key] = Library(build, self._compiler.library(build))
        return self._libraries[build.key]


def _check_shape(launch: Launch) -> None:
    for what, sizes, most in (
        ("block", launch.block, MOST_BLOCK),
        ("grid", launch.grid, MOST_GRID),
    ):
        if any(not 1 <= size <= limit for size, limit in zip(sizes, most, strict=True)):
            raise LaunchFailed(
                f"{launch.kernel}: {what} {sizes}, each must be at least 1, allowed up to {most}"
            )
    if math.prod(launch.block) > MOST_THREADS:
        message = f"{launch.kernel}: block {launch.block} has more than {MOST_THREADS} threads"
        raise LaunchFailed(message)
    if not 0 <= launch.shared_bytes <= MOST_SHARED:
        message = f"{launch.shared_bytes} B of shared memory, allowed up to {MOST_SHARED}"
        raise LaunchFailed(f"{launch.kernel}: {message}")
