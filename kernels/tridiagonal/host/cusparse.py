"""cuSPARSE's tridiagonal solver without pivoting, to compare with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from launchwise.cuda.shared_objects import address, loaded
from launchwise.workloads.workload import Allocations, LibraryRun

from .launches import Arrays

LIBRARIES = ("libcusparse.so.12", "libcusparse.so.13", "libcusparse.so")


class Cusparse(LibraryRun):
    """gtsv2_nopivot of one system, gtsv2StridedBatch of several: natural order, one type.

    cuSPARSE overwrites its right-hand side with the solution; the right-hand side is copied there
    before each run that is timed alone.

    ``memory``: takes cuSPARSE's buffer.
    ``x``: where the solution goes: device memory of the size of d.
    ``buffer_bytes``: memory that it asks for besides the system.
    Raises OSError without cuSPARSE; RuntimeError when cuSPARSE refuses.
    """

    def __init__(
        self, memory: Allocations, system: Arrays, x: Any, n: int, batch: int, itemsize: int
    ) -> None:
        self._library = loaded("cuSPARSE", LIBRARIES)
        self._handle = ctypes.c_void_p()
        self._ask("cusparseCreate", ctypes.byref(self._handle))
        number = ctypes.c_int()
        self._ask("cusparseGetVersion", self._handle, ctypes.byref(number))
        major, rest = divmod(number.value, 1000)
        self.version = f"cuSPARSE {major}.{rest // 100}.{rest % 100}"
        self._d, self._x, self._nbytes = system.d, x, n * batch * itemsize
        letter = "S" if itemsize == 4 else "D"
        pointers = [ctypes.c_void_p(address(each)) for each in (*system.each[:3], x)]
        if batch == 1:
            self._name = f"cusparse{letter}gtsv2_nopivot"
            self._arguments = [ctypes.c_int(n), ctypes.c_int(1), *pointers, ctypes.c_int(n)]
            self._place_of_x = 5
        else:
            self._name = f"cusparse{letter}gtsv2StridedBatch"
            self._arguments = [ctypes.c_int(n), *pointers, ctypes.c_int(batch), ctypes.c_int(n)]
            self._place_of_x = 4
        size = ctypes.c_size_t()
        name = f"{self._name}_bufferSizeExt"
        self._ask(name, self._handle, *self._arguments, ctypes.byref(size))
        self.buffer_bytes = size.value
        self._buffer = ctypes.c_void_p(address(memory.take(max(1, size.value))))

    def _ask(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._library, name)(*arguments):
            raise RuntimeError(f"{name} returned {status}")

    def packed(self, x: Any) -> Callable[[], int]:
        """A call that solves the system in place for the right-hand side at ``x``. It queues the
        work on the default stream, with everything packed before, and returns cuSPARSE's status."""
        arguments = list(self._arguments)
        arguments[self._place_of_x] = ctypes.c_void_p(address(x))
        call = getattr(self._library, self._name)
        return partial(call, self._handle, *arguments, self._buffer)

    def restore(self) -> None:
        import pycuda.driver as cuda

        cuda.memcpy_dtod_async(address(self._x), address(self._d), self._nbytes)

    def queue(self, stream: Any) -> None:
        handle = ctypes.c_void_p(0 if stream is None else stream.handle)
        self._ask("cusparseSetStream", self._handle, handle)
        self._ask(self._name, self._handle, *self._arguments, self._buffer)

    def close(self) -> None:
        self._library.cusparseDestroy(self._handle)
