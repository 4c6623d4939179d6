"""Memory, copies, streams and graphs of the current CUDA context, and OpenMP's libraries in it."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycuda.driver as cuda

from launchwise.cuda.parameters import TensorMapRefused, encode_tensor_map
from launchwise.cuda.shared_objects import address
from launchwise.measuring.bundle import Bundle, Kernel
from launchwise.workloads.device import Buffer, Launch, LaunchFailed, OutOfMemory, called


class CudaMemory:
    """The part of :class:`launchwise.workloads.device.Device` that needs no kernel."""

    def allocate(self, nbytes: int) -> CudaBuffer:
        return CudaBuffer(nbytes)

    def release(self, buffer: Buffer) -> None:
        buffer.allocation.free()  # type: ignore[attr-defined]

    def fill_bytes(self, buffer: Buffer, value: int) -> None:
        pointer = buffer.allocation  # type: ignore[attr-defined]
        if buffer.nbytes % 4 == 0 and int(pointer) % 4 == 0:
            cuda.memset_d32_async(pointer, value * 0x01010101, buffer.nbytes // 4)
        else:
            cuda.memset_d8_async(pointer, value, buffer.nbytes)

    def part(self, buffer: Buffer, offset: int, nbytes: int) -> CudaPart:
        return CudaPart(buffer, offset, nbytes)

    def tensor_map(
        self, buffer: Buffer, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
    ) -> np.ndarray:
        pointer = int(buffer.allocation)  # type: ignore[attr-defined]
        try:
            return encode_tensor_map(pointer, dtype, shape, pitch, box)
        except TensorMapRefused as error:
            raise LaunchFailed(str(error), fatal=False) from error

    def upload(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        to = buffer.allocation  # type: ignore[attr-defined]
        if stream is None:
            cuda.memcpy_htod(to, np.ascontiguousarray(array))
        else:
            cuda.memcpy_htod_async(to, array, stream)

    def download(self, buffer: Buffer, array: np.ndarray, stream: Any = None) -> None:
        """See :class:`Device`; raises LaunchFailed for what came before."""
        source = buffer.allocation  # type: ignore[attr-defined]
        try:
            if stream is None:
                cuda.memcpy_dtoh(array, source)
            else:
                cuda.memcpy_dtoh_async(array, source, stream)
        except cuda.Error as error:
            raise failed(error) from error

    def copy(self, source: Buffer, target: Buffer) -> None:
        to, source_of = target.allocation, source.allocation  # type: ignore[attr-defined]
        cuda.memcpy_dtod_async(to, source_of, target.nbytes)

    def page_locked(self, nbytes: int) -> np.ndarray:
        return cuda.pagelocked_empty(nbytes, np.uint8)

    def stream(self) -> Any:
        return cuda.Stream()

    def event(self, stream: Any = None) -> Any:
        return cuda.Event().record(stream)

    def wait(self, event: Any) -> None:
        """See :class:`Device`; raises LaunchFailed for what came before."""
        try:
            event.synchronize()
        except cuda.Error as error:
            raise failed(error) from error

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        """See :class:`Device`; raises LaunchFailed for what came before."""
        self.wait(end)
        try:
            return float(end.time_since(begin))
        except cuda.Error as error:
            raise failed(error) from error

    def synchronize(self) -> None:
        """See :class:`Device`; raises LaunchFailed for what came before."""
        try:
            cuda.Context.synchronize()
        except cuda.Error as error:
            raise failed(error) from error


class CudaPart:
    """Some bytes of a buffer."""

    def __init__(self, whole: Buffer, offset: int, nbytes: int) -> None:
        self.allocation = int(whole.allocation) + offset  # type: ignore[attr-defined]
        self.nbytes = nbytes


class CudaGlobal:
    """A variable of a module, such as a ``__constant__`` array."""

    def __init__(self, allocation: int, nbytes: int) -> None:
        self.allocation = allocation
        self.nbytes = nbytes


class CudaBuffer:
    """Device memory of PyCUDA with its size."""

    def __init__(self, nbytes: int) -> None:
        try:
            self.allocation = cuda.mem_alloc(nbytes)
        except cuda.MemoryError as error:
            raise OutOfMemory(f"{nbytes / 1e9:.2f} GB cannot be allocated: {error}") from error
        self.nbytes = nbytes


def failed(error: cuda.Error) -> LaunchFailed | OutOfMemory:
    """Check whether the context survived; a lost one needs a new process."""
    reason = " ".join(str(error).split())
    if isinstance(error, cuda.MemoryError):
        return OutOfMemory(reason)
    try:
        cuda.Context.synchronize()
    except cuda.Error:
        return LaunchFailed(reason, fatal=True)
    return LaunchFailed(reason, fatal=False)


class CaptureRefused(Exception):
    """The driver refused to capture."""


def ask(result: tuple[Any, ...]) -> Any:
    """Result of a driver call; CaptureRefused if the call failed."""
    if int(result[0]) != 0:
        raise CaptureRefused(result[0].name)
    return result[1] if len(result) > 1 else None


class CapturedGraph:
    """A captured CUDA graph: see :class:`launchwise.workloads.device.Captured`."""

    def __init__(self, driver: Any, executable: Any, stream: Any) -> None:
        self._driver = driver
        self._executable = executable
        self._stream = stream

    def launch(self) -> None:
        """Queue all of it; LaunchFailed when the driver refuses."""
        try:
            ask(self._driver.cuGraphLaunch(self._executable, self._stream))
        except CaptureRefused as error:
            raise LaunchFailed(f"the driver refused a CUDA graph: {error}", fatal=True) from error

    def close(self) -> None:
        """Release it after it has finished."""
        self._driver.cuGraphExecDestroy(self._executable)


class Graphs:
    """Captures launches on a stream of its own in the current context. ``stream``: the stream."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self.stream = cuda.Stream()
        self._events = cuda.Event(), cuda.Event()

    def replay(self, queue: Callable[[Any], None], repeats: int) -> list[float]:
        """Milliseconds of each of ``repeats`` replays of what ``queue`` launches on a stream.
        Raises CaptureRefused when the launches cannot be captured."""
        handle = self._driver.CUstream(self.stream.handle)
        executable = self._captured(queue, handle)
        begin, end = self._events
        times = []
        try:
            # The first replay uploads the graph, and is not counted.
            for number in range(repeats + 1):
                begin.record(self.stream)
                ask(self._driver.cuGraphLaunch(executable, handle))
                end.record(self.stream)
                end.synchronize()
                if number:
                    times.append(end.time_since(begin))
        finally:
            self._driver.cuGraphExecDestroy(executable)
        return times

    def capture(self, queue: Callable[[], None], streams: Sequence[Any]) -> CapturedGraph:
        """Capture what ``queue`` puts on ``streams``, copies included, as one graph. Raises
        CaptureRefused when it cannot be captured."""

        def forked(own: Any) -> None:
            begin = cuda.Event().record(own)
            for stream in streams:
                stream.wait_for_event(begin)
            queue()
            for stream in streams:
                own.wait_for_event(cuda.Event().record(stream))

        handle = self._driver.CUstream(self.stream.handle)
        return CapturedGraph(self._driver, self._captured(forked, handle), handle)

    def _captured(self, queue: Callable[[Any], None], handle: Any) -> Any:
        # Whatever ran on the default stream must be over: a captured stream cannot wait for it.
        cuda.Context.synchronize()
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        ask(self._driver.cuStreamBeginCapture(handle, mode))
        try:
            queue(self.stream)
        except BaseException:
            _, unfinished = self._driver.cuStreamEndCapture(handle)
            if unfinished is not None:  # A capture that broke off leaves no graph.
                self._driver.cuGraphDestroy(unfinished)
            raise
        graph = ask(self._driver.cuStreamEndCapture(handle))
        try:
            return ask(self._driver.cuGraphInstantiate(graph, 0))
        finally:
            self._driver.cuGraphDestroy(graph)


# A region that the device cannot run must fail, not run on the host with pointers of the device.
os.environ.setdefault("OMP_TARGET_OFFLOAD", "MANDATORY")


class Libraries:
    """Libraries of the builds that were called so far. ``whole_card``: whether the device is no
    slice of a card."""

    def __init__(self, whole_card: bool) -> None:
        self._whole_card = whole_card
        self._loaded: dict[str, ctypes.CDLL] = {}

    def call(self, launch: Launch, bundle: Bundle, function: Kernel) -> None:
        """Call a function of a bundle, after everything that is queued, and wait for its end.
        Raises LaunchFailed when it cannot be loaded here, or when its work or what came before
        fails."""
        if not self._whole_card:
            message = "OpenMP runs in the primary context: on the whole card, not on a slice of it"
            raise LaunchFailed(message, fatal=False)
        if function.symbol not in self._loaded:
            self._loaded[function.symbol] = loaded(bundle.cubin(function.cubin), function.cubin)
        call = called(self._loaded[function.symbol], launch, address)
        try:
            cuda.Context.synchronize()
            call()
        except cuda.Error as error:
            raise failed(error) from error


def loaded(content: bytes, name: str) -> ctypes.CDLL:
    """The library with this content. Raises LaunchFailed when it, or LLVM's libraries that it
    needs, cannot be loaded, or these see no GPU."""
    with tempfile.TemporaryDirectory(prefix="launchwise-openmp-") as scratch:
        # It stays in memory; the file is needed no longer than this.
        path = Path(scratch, name)
        path.write_bytes(content)
        try:
            library = ctypes.CDLL(str(path))
        except OSError as error:
            said = str(error).replace(f"{path}: ", "")
            message = f"LLVM's OpenMP libraries cannot be loaded: {said} (LD_LIBRARY_PATH?)"
            raise LaunchFailed(message, fatal=False) from error
    if library.omp_get_num_devices() < 1:
        message = "LLVM's OpenMP libraries see no GPU: libcuda.so must be on the LD_LIBRARY_PATH"
        raise LaunchFailed(f"{message} (a link to libcuda.so.1)", fatal=False)
    return library
