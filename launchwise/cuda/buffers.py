"""Memory of a CUDA device: allocations, parts of them, variables of modules."""

from __future__ import annotations

import pycuda.driver as cuda

from launchwise.measuring.measure import OutOfMemory
from launchwise.workloads.device import Buffer


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
