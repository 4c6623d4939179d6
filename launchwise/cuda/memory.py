"""Memory of the current CUDA context, and the copies, streams and events that work on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pycuda.driver as cuda

from launchwise.cuda.parameters import TensorMapRefused, encode_tensor_map
from launchwise.measuring.measure import LaunchFailed, OutOfMemory
from launchwise.workloads.device import Buffer


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
