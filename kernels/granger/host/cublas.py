"""cuBLAS's least squares of many small matrices, to compare with."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from launchwise.cuda.shared_objects import address, loaded
from launchwise.workloads.workload import Allocations, LibraryRun

LIBRARIES = ("libcublas.so.13", "libcublas.so.12", "libcublas.so")


class Cublas(LibraryRun):
    """gelsBatched: a QR decomposition of every X and its triangular system, in one call.

    cuBLAS overwrites both sides. They are copied there before each run that is timed alone, and its
    coefficients are copied to their place after it; a kernel of ours reads X where it lies and
    writes coefficients in their place within its time.

    ``memory``: takes two copies of both sides.
    ``x``: float32 or float64, (county, cols, rows), with intercepts.
    ``y``: the explained series in the same type, (county, rows).
    ``coefficients``: where they go: device memory of (county, cols).
    Raises OSError without cuBLAS; RuntimeError when cuBLAS refuses.
    """

    def __init__(
        self, memory: Allocations, x: np.ndarray, y: np.ndarray, coefficients: Any
    ) -> None:
        self._library = loaded("cuBLAS", LIBRARIES)
        self._handle = ctypes.c_void_p()
        self._ask("cublasCreate_v2", ctypes.byref(self._handle))
        number = ctypes.c_int()
        self._ask("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        major, rest = divmod(number.value, 10000)
        self.version = f"cuBLAS {major}.{rest // 100}.{rest % 100}"
        county, self._cols, self._rows = x.shape
        self._itemsize, self._coefficients = x.dtype.itemsize, coefficients
        self._county = county
        self._given = [memory.upload(np.ascontiguousarray(each)) for each in (x, y)]
        self._overwritten = [memory.take(each.nbytes) for each in self._given]
        pointers = [
            memory.upload(address(each) + np.arange(county, dtype=np.uint64) * np.uint64(step))
            for each, step in zip(self._overwritten, (x[0].nbytes, y[0].nbytes), strict=True)
        ]
        self._name = "cublasSgelsBatched" if self._itemsize == 4 else "cublasDgelsBatched"
        rows, cols = ctypes.c_int(self._rows), ctypes.c_int(self._cols)
        left, right = (ctypes.c_void_p(address(each)) for each in pointers)
        self._refused = ctypes.c_int()
        self._arguments = [
            *(ctypes.c_int(0), rows, cols, ctypes.c_int(1)),
            *(left, rows, right, rows, ctypes.byref(self._refused), None, ctypes.c_int(county)),
        ]

    def _ask(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._library, name)(*arguments):
            raise RuntimeError(f"{name} returned {status}")

    def restore(self) -> None:
        import pycuda.driver as cuda

        for given, overwritten in zip(self._given, self._overwritten, strict=True):
            cuda.memcpy_dtod_async(address(overwritten), address(given), given.nbytes)

    def queue(self, stream: Any) -> None:
        handle = ctypes.c_void_p(0 if stream is None else stream.handle)
        self._ask("cublasSetStream_v2", self._handle, handle)
        self._ask(self._name, self._handle, *self._arguments)

    def deliver(self) -> None:
        import pycuda.driver as cuda

        copy = cuda.Memcpy2D()
        copy.set_src_device(address(self._overwritten[1]))
        copy.set_dst_device(address(self._coefficients))
        copy.src_pitch = self._rows * self._itemsize
        copy.width_in_bytes = copy.dst_pitch = self._cols * self._itemsize
        copy.height = self._county
        copy(aligned=False)

    def close(self) -> None:
        self._library.cublasDestroy_v2(self._handle)
