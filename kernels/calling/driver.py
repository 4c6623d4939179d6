"""The CUDA driver by ctypes: contexts, memory, kernels and prepared launches.

PyCUDA packs the arguments of a launch anew every time, needs a stream object of its own and a
context on a stack of its own; a launch here is one call with everything packed before.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_int, c_size_t, c_uint, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from launchwise.base.errors import UserError
from launchwise.cuda.parameters import TensorMapRefused, encode_tensor_map
from launchwise.cuda.shared_objects import loaded
from launchwise.measuring.bundle import Bundle
from launchwise.workloads.device import Buffer, Device, Launch, LaunchFailed, OutOfMemory

from .graph import ChainGraph, KernelNode

LIBRARIES = ("libcuda.so.1", "libcuda.so")

OUT_OF_MEMORY = 2
NOT_FOR_THIS_DEVICE = (209, 222, 200)
"""No binary for the device, PTX of another version, invalid image."""

DEVICE_ORDINAL = 9  # attribute of a pointer: where it lies

SMS, MAJOR, MINOR, SHARED_PER_BLOCK = 16, 75, 76, 97
"""Attributes of a device; the last one is what a kernel may opt in to."""

MOST_DYNAMIC_SHARED = 8  # attribute of a function
STATIC_LIMIT = 48 * 1024  # dynamic shared memory of a block that needs no opting in, bytes

# Handles and addresses have 64 bits: without these, ctypes would pass 32.
_PARAMETERS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuStreamSynchronize": (c_void_p,),
    "cuMemAlloc_v2": (POINTER(c_void_p), c_size_t),
    "cuMemFree_v2": (c_void_p,),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemcpyHtoDAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_void_p, c_size_t, c_void_p),
    "cuModuleLoadData": (POINTER(c_void_p), c_void_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, ctypes.c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuPointerGetAttribute": (c_void_p, c_int, c_void_p),
    "cuGetErrorName": (c_int, POINTER(ctypes.c_char_p)),
}


class CudaError(RuntimeError):
    """The driver refused something; also for what went wrong before on the same device."""


class TooLittleMemory(MemoryError):
    """A call needs more memory than the device has free."""


@dataclass
class Argument:
    """An array of the caller among the arguments of prepared launches: each run has its address.
    ``number`` is its place among the addresses that a run is given."""

    number: int
    nbytes: int


class Driver:
    """Calls of the driver by name, which raise :class:`CudaError`."""

    def __init__(self) -> None:
        try:
            self.library = loaded(LIBRARIES[0], LIBRARIES)
        except OSError as error:
            raise UserError("CUDA", "", f"no driver: {error}") from error
        self._calls = {name: self.library[name] for name in _PARAMETERS}
        for name, call in self._calls.items():
            call.argtypes = _PARAMETERS[name]
        self("cuInit", 0)

    def __call__(self, name: str, *arguments: Any) -> None:
        if code := self._calls[name](*arguments):
            raise self.error(name, code)

    def code(self, name: str, *arguments: Any) -> int:
        """Call and return what the driver says; 0 is success."""
        return int(self._calls[name](*arguments))

    def error(self, name: str, code: int) -> CudaError:
        text = ctypes.c_char_p()
        self._calls["cuGetErrorName"](code, byref(text))
        return CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({code})")


@functools.cache
def driver() -> Driver:
    """The driver of this process. Raises UserError without a driver, or without a GPU."""
    try:
        return Driver()
    except CudaError as error:
        raise UserError("CUDA", "", f"no usable device: {error}") from error


def located(pointer: int) -> int:
    """Number of the device where an address lies; ValueError when it is on none."""
    found = c_int(-1)
    if driver().code("cuPointerGetAttribute", byref(found), DEVICE_ORDINAL, pointer):
        raise ValueError(f"address {pointer:#x} is not on a device")
    return found.value


class Memory:
    def __init__(self, allocation: int, nbytes: int) -> None:
        self.allocation = allocation
        self.nbytes = nbytes


class Card:
    """A GPU in its primary context, as CuPy and PyTorch use it: queues launches prepared once.

    Any thread may use it. ``shared_limit``: shared memory that a block may have, bytes.

    ``number``: as the process counts its visible devices.
    """

    def __init__(self, number: int) -> None:
        self.name = f"device {number}"
        self.driver = driver()
        device = c_int()
        self.driver("cuDeviceGet", byref(device), number)
        self._device = device.value
        self.sms = self._attribute(SMS)
        self.shared_limit = self._attribute(SHARED_PER_BLOCK)
        self.arch = f"sm_{self._attribute(MAJOR)}{self._attribute(MINOR)}"
        self.context = c_void_p()
        self.driver("cuDevicePrimaryCtxRetain", byref(self.context), self._device)
        self._bundle: Bundle | None = None
        self._modules: dict[str, c_void_p] = {}
        self._functions: dict[str, c_void_p] = {}
        self._permitted: dict[str, int] = {}

    def _attribute(self, attribute: int) -> int:
        found = c_int()
        self.driver("cuDeviceGetAttribute", byref(found), attribute, self._device)
        return found.value

    def take_kernels(self, path: Path) -> None:
        self._bundle = Bundle(path)

    @contextmanager
    def current(self) -> Iterator[None]:
        """For a block whose calls need the card's context; the thread's own comes back after it."""
        self.driver("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            self.driver("cuCtxPopCurrent_v2", byref(c_void_p()))

    def allocate(self, nbytes: int) -> Memory:
        """Device memory; OutOfMemory when it cannot be had."""
        pointer = c_void_p()
        with self.current():
            code = self.driver.code("cuMemAlloc_v2", byref(pointer), nbytes)
        if code == OUT_OF_MEMORY:
            raise OutOfMemory(f"{nbytes} bytes cannot be allocated on {self.name}")
        if code:
            raise self.driver.error("cuMemAlloc", code)
        return Memory(pointer.value or 0, nbytes)

    def release(self, buffer: Buffer) -> None:
        """Give memory back, which no queued work uses any more."""
        with self.current():
            self.driver("cuMemFree_v2", buffer.allocation)  # type: ignore[attr-defined]

    def part(self, buffer: Buffer, offset: int, nbytes: int) -> Memory:
        return Memory(buffer.allocation + offset, nbytes)  # type: ignore[attr-defined]

    def free_memory(self) -> int:
        free, total = c_size_t(), c_size_t()
        with self.current():
            self.driver("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    def write(self, buffer: Buffer, values: np.ndarray, stream: int) -> None:
        """Queue a copy of an array to ``buffer``; the driver copies small ones aside first."""
        to: int = buffer.allocation  # type: ignore[attr-defined]
        with self.current():
            self.driver("cuMemcpyHtoDAsync_v2", to, values.ctypes.data, values.nbytes, stream)

    def read(self, buffer: Buffer, values: np.ndarray, stream: int) -> None:
        origin: int = buffer.allocation  # type: ignore[attr-defined]
        with self.current():
            self.driver("cuMemcpyDtoHAsync_v2", values.ctypes.data, origin, values.nbytes, stream)
            self.driver("cuStreamSynchronize", stream)

    def tensor_map(
        self, buffer: Buffer, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
    ) -> np.ndarray:
        """As :meth:`launchwise.workloads.device.Device.tensor_map`; LaunchFailed when refused."""
        pointer: int = buffer.allocation  # type: ignore[attr-defined]
        try:
            with self.current():
                return encode_tensor_map(pointer, dtype, shape, pitch, box)
        except TensorMapRefused as error:
            raise LaunchFailed(str(error), fatal=False) from error

    def settle(self) -> None:
        with self.current():
            self.driver("cuCtxSynchronize")

    def wait(self, stream: int) -> None:
        with self.current():
            self.driver("cuStreamSynchronize", stream)

    def prepared(self, launches: Sequence[Launch], stream: int) -> PreparedLaunches:
        """Launches for one thread at a time, on a stream given by its handle."""
        with self.current():
            functions = [self._function(launch) for launch in launches]
        return PreparedLaunches(self, launches, functions, stream)

    def _function(self, launch: Launch) -> c_void_p:
        symbol = launch.build.symbol(launch.kernel)
        if symbol not in self._functions:
            assert self._bundle is not None  # take_kernels was called
            kernel = self._bundle.kernel(launch.build, launch.kernel)
            function = c_void_p()
            module = self._module(kernel.cubin)
            self.driver("cuModuleGetFunction", byref(function), module, kernel.symbol.encode())
            self._functions[symbol] = function
        if launch.shared_bytes > max(STATIC_LIMIT, self._permitted.get(symbol, 0)):
            wanted = MOST_DYNAMIC_SHARED, launch.shared_bytes
            self.driver("cuFuncSetAttribute", self._functions[symbol], *wanted)
            self._permitted[symbol] = launch.shared_bytes
        return self._functions[symbol]

    def _module(self, cubin: str) -> c_void_p:
        if cubin not in self._modules:
            assert self._bundle is not None
            module = c_void_p()
            code = self.driver.code("cuModuleLoadData", byref(module), self._bundle.cubin(cubin))
            if code in NOT_FOR_THIS_DEVICE:
                raise UserError(self._bundle.path, self.arch, "holds no kernel for this device")
            if code:
                raise self.driver.error("cuModuleLoadData", code)
            self._modules[cubin] = module
        return self._modules[cubin]


class PreparedLaunches:
    """Launches in order on a stream: everything but the caller's addresses is packed here.
    Arguments of kernels stay at fixed places: an address of the caller's is written to its place,
    and the driver copies all of them when a kernel is launched. Where the addresses are those of
    the time before, a graph queues all kernels by one call, which is faster even for one kernel."""

    def __init__(
        self, card: Card, launches: Sequence[Launch], functions: Sequence[c_void_p], stream: int
    ) -> None:
        given = [each.number for launch in launches for each in _given(launch)]
        self._places = tuple(c_void_p() for _ in range(1 + max(given, default=-1)))
        self._kept: list[Any] = []
        handle = c_void_p(stream)
        packed = [self._packed(launch) for launch in launches]
        self._calls = [
            (
                function,
                *(c_uint(size) for size in (*launch.grid, *launch.block)),
                c_uint(launch.shared_bytes),
                handle,
                arguments,
                None,
            )
            for launch, function, arguments in zip(launches, functions, packed, strict=True)
        ]
        # Without declared types ctypes passes what is packed already as it is.
        library = card.driver.library
        self._launch = library["cuLaunchKernel"]
        self._push = library["cuCtxPushCurrent_v2"]
        self._pop = library["cuCtxPopCurrent_v2"]
        self._context = card.context
        self._popped = c_void_p()
        self._pop_to = byref(self._popped)
        self._error = card.driver.error
        nodes = [
            KernelNode(
                function=function.value,
                grid=launch.grid,
                block=launch.block,
                shared_bytes=launch.shared_bytes,
                arguments=ctypes.addressof(arguments),
            )
            for launch, function, arguments in zip(launches, functions, packed, strict=True)
        ]
        self._graph = ChainGraph(library, nodes, stream)
        self._last: tuple[int, ...] | None = None
        self._in_graph: tuple[int, ...] | None = None

    def _packed(self, launch: Launch) -> Any:
        values = [
            self._places[each.number] if isinstance(each, Argument) else _value(each)
            for each in launch.arguments
        ]
        self._kept += values
        return (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))

    def __call__(self, pointers: tuple[int, ...]) -> None:
        """Queue all launches. Raises CudaError when the driver refuses one, also for an error of
        earlier work."""
        if code := self._push(self._context):
            raise self._error("cuCtxPushCurrent", code)
        code = self._graph.queue() if self._known(pointers) else None
        if code is None:
            code = self._launched()
        self._pop(self._pop_to)
        if code:
            raise self._error("cuLaunchKernel", code)

    def _known(self, pointers: tuple[int, ...]) -> bool:
        """Write addresses to their places; whether the graph has, or now takes, the same."""
        again = pointers == self._last
        if not again:
            for place, pointer in zip(self._places, pointers, strict=False):
                place.value = pointer
            self._last = pointers
        if self._graph.possible and again and pointers != self._in_graph:
            self._in_graph = pointers if self._graph.follow() else None
        return self._graph.possible and pointers == self._in_graph

    def _launched(self) -> int:
        launch = self._launch
        for call in self._calls:
            if code := launch(*call):
                return int(code)
        return 0

    def close(self) -> None:
        if code := self._push(self._context):
            raise self._error("cuCtxPushCurrent", code)
        self._graph.close()
        self._pop(self._pop_to)


def _given(launch: Launch) -> list[Argument]:
    return [each for each in launch.arguments if isinstance(each, Argument)]


def _value(argument: Any) -> Any:
    """An argument as the driver reads it: an address of the device, or a NumPy scalar's bytes."""
    if hasattr(argument, "allocation"):
        return c_void_p(argument.allocation)
    return (ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes())


def as_device(card: Card) -> Device:
    """A card for code that takes a device, but only allocates, releases and takes parts."""
    return cast(Device, card)
