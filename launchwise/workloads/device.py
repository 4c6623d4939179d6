"""A GPU as host code sees it, and the work that host code hands to it.

Memory, copies, launches, sequences of them, runs of the host, streams, and what may fail.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from launchwise.workloads.builds import Build


@dataclass(frozen=True)
class Restore:
    """An array that a launch changes, and the copy that it is put back from before a launch."""

    kept: Any
    array: Any


@dataclass(frozen=True)
class Launch:
    """A kernel with everything that it is launched with.

    ``arguments`` are NumPy scalars and :class:`Buffer` objects, in the order of the kernel's
    parameters; ``shared_bytes`` is dynamic shared memory. ``solves`` says how often one launch
    solves the problem, such as twice for two time steps: its time counts for each. ``restores``
    are put back before each timed launch, outside of the timed region.
    """

    build: Build
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    shared_bytes: int = 0
    solves: int = 1
    restores: tuple[Restore, ...] = ()
    main: ClassVar[int] = 0

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Itself, as the one launch of a :class:`LaunchSequence`."""
        return (self,)


@dataclass(frozen=True)
class LaunchSequence:
    """Launches that run one after the other, timed together. ``main`` is the index of the main one;
    ``restores`` as those of a :class:`Launch`, for all."""

    launches: tuple[Launch, ...]
    main: int = 0
    restores: tuple[Restore, ...] = ()
    solves: ClassVar[int] = 1


class HostRun(ABC):
    """Work that the host drives: copies, kernels on several streams, arithmetic of its own. It is
    timed by the host's clock, from its call to its return."""

    launches: tuple[Launch, ...]
    """Kernels that it uses."""

    main: int = 0
    """The main kernel: its resources stand for the run."""

    solves: ClassVar[int] = 1
    restores: tuple[Restore, ...] = ()

    @abstractmethod
    def run(self) -> None:
        """Run once and wait for the end."""


class LibraryRun(ABC):
    """Work of somebody else's library on the device, to compare with. Its methods may raise
    anything; the comparison then goes on without it."""

    version: str
    """Name and version of the library."""

    launches: tuple[Launch, ...] = ()
    """None of the workload's own kernels."""

    solves: ClassVar[int] = 1
    restores: ClassVar[tuple[Restore, ...]] = ()

    def restore(self) -> None:
        """Queue what makes good again what a run overwrites; not timed."""
        return

    @property
    def overwrites(self) -> bool:
        """Whether a run overwrites what the next one reads."""
        return type(self).restore is not LibraryRun.restore

    @abstractmethod
    def queue(self, stream: Any) -> None:
        """Queue the work once on ``stream`` (None: the default stream) without waiting."""

    def deliver(self) -> None:
        """Queue what brings the result to where the session's check looks; not timed."""
        return


Runnable = Launch | LaunchSequence | HostRun  # Work of a configuration that solves its problem once


class LaunchFailed(Exception):
    """A launch failed; ``fatal`` if the device's context is lost."""

    def __init__(self, reason: str, fatal: bool = False) -> None:
        super().__init__(reason)
        self.fatal = fatal


class OutOfMemory(Exception):
    """The device does not have enough free memory."""


class Buffer(Protocol):
    """Device memory."""

    nbytes: int


class Captured(Protocol):
    """Captured work that can be launched repeatedly, such as a CUDA graph."""

    def launch(self) -> None:
        """Queue all of it, behind what is queued."""

    def close(self) -> None:
        """Release it after it has finished."""


class Device(Protocol):
    """A GPU as workloads see it. What is given no stream is queued in order, and only download
    waits. What is given a stream is queued there, copies too: their arrays must be page-locked and
    live until the stream is done."""

    sms: int

    guards_buffers: bool
    """Whether it finds by itself what a launch writes beyond a buffer."""

    def allocate(self, nbytes: int) -> Buffer:
        """Device memory of ``nbytes``, given back with :meth:`release`."""

    def release(self, buffer: Buffer) -> None:
        """Release memory."""

    def fill_bytes(self, buffer: Buffer, value: int) -> None:
        """Set every byte."""

    def part(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """Some bytes of a buffer, as a buffer; given back with the whole."""

    def upload(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        """Copy a contiguous array to the start of ``buffer``."""

    def download(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        """Fill a contiguous ``array`` from ``buffer``, after everything that is queued before."""

    def copy(self, source: Buffer, target: Buffer) -> None:
        """Queue a copy of the whole ``target`` from the start of ``source``."""

    def launch(self, launch: Launch, stream: Any = None) -> None:
        """Queue a kernel."""

    def parameter_bytes(self, launch: Launch) -> list[int] | None:
        """Sizes of the parameters of a launched kernel, bytes; None where the driver is silent."""

    def constant(self, build: Build, name: str) -> Buffer:
        """The ``__constant__`` array ``name`` of a build, as a buffer."""

    def tensor_map(
        self, buffer: Buffer, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
    ) -> np.ndarray:
        """A map of an array for the copy engine (sm_90): uint8, shape (128,); kernels read it from
        device memory.

        ``dtype``: ``float32`` or ``float64``.
        ``shape``: elements along each axis, the slowest first.
        ``pitch``: elements from one row to the next; as bytes a multiple of 16.
        ``box``: elements of a copied box, as ``shape``; at most 256 along each axis.
        Raises LaunchFailed where the device has no such engine, or refuses the map.
        """

    def page_locked(self, nbytes: int) -> np.ndarray:
        """Host memory that the device copies from and to without a detour: uint8, (nbytes,)."""

    def stream(self) -> Any:
        """A new stream."""

    def captured(self, queue: Callable[[], None], streams: Iterable[Any]) -> Captured:
        """Capture what ``queue`` puts on ``streams`` as a CUDA graph, without running it."""

    def event(self, stream: Any = None) -> Any:
        """An event after all work queued so far."""

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """Time between two events, ms; waits for the later one."""

    def wait(self, event: Any) -> None:
        """Wait for an event."""

    def synchronize(self) -> None:
        """Wait for all streams."""


class Allocations:
    """Buffers of a device that are released together, at the latest when a ``with`` block ends."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._buffers: list[Buffer] = []

    def __enter__(self) -> Allocations:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def take(self, nbytes: int) -> Buffer:
        """Allocate a buffer; raises what :meth:`Device.allocate` raises."""
        self._buffers.append(self._device.allocate(nbytes))
        return self._buffers[-1]

    def upload(self, array: np.ndarray) -> Buffer:
        """Allocate a buffer and copy a contiguous ``array`` to it."""
        buffer = self.take(array.nbytes)
        self._device.upload(buffer, array)
        return buffer

    def release(self) -> None:
        """Release all buffers."""
        for buffer in self._buffers:
            self._device.release(buffer)
        self._buffers.clear()


class Closeable(Protocol):
    """Holds device memory, streams or graphs until it is closed."""

    def close(self) -> None:
        """Release everything; may be called again, and before its constructor has ended."""


@contextmanager
def closed_on_error(owner: Closeable) -> Iterator[None]:
    """Close ``owner`` when the block fails: for constructors that allocate step by step."""
    try:
        yield
    except BaseException:
        owner.close()
        raise


class FunctionRun(HostRun):
    """A call of a function in C, which returns when the device has finished.

    The host's clock times it: the function queues its work on streams of its own, where events
    of a caller see nothing of it.

    ``launch``: a build whose source ends in ``.c``, the function and its arguments; grid and block
        are the function's own affair.
    ``restores``: put back before each timed call, outside of the timed region.
    """

    def __init__(self, device: Device, launch: Launch, restores: tuple[Restore, ...] = ()) -> None:
        self.launches = (launch,)
        self.restores = restores
        self._device = device

    @classmethod
    def of(
        cls, device: Device, build: Any, function: str, arguments: tuple[Any, ...], **more: Any
    ) -> FunctionRun:
        """A call of ``function`` of a build with ``arguments``, as those of a :class:`Launch`."""
        one = (1, 1, 1)
        return cls(device, Launch(build, function, one, one, arguments), **more)

    def run(self) -> None:
        """Call it once."""
        self._device.launch(self.launches[0])


def called(
    library: ctypes.CDLL, launch: Launch, address: Callable[[Buffer], int]
) -> Callable[[], None]:
    """Function that makes the call of a launch.

    ``address``: of a buffer, in the memory that the function works on.
    Raises LaunchFailed when the library lacks the function, or C has no type for an argument.
    """
    symbol = launch.build.symbol(launch.kernel)
    try:
        function = library[symbol]
    except AttributeError:
        message = f"{launch.build.source} has no function {launch.kernel}"
        raise LaunchFailed(message) from None
    function.restype = None
    arguments = [_c_value(each, launch.kernel, address) for each in launch.arguments]

    def call() -> None:
        function(*arguments)

    return call


def _c_value(argument: Any, function: str, address: Callable[[Buffer], int]) -> Any:
    if hasattr(argument, "nbytes") and not isinstance(argument, np.generic):
        return ctypes.c_void_p(address(argument))
    try:
        kind = np.ctypeslib.as_ctypes_type(argument.dtype)
    except NotImplementedError:
        message = f"{function}: C has no type for an argument of type {argument.dtype}"
        raise LaunchFailed(message) from None
    return kind.from_buffer_copy(argument.tobytes())
