"""Shared by the benchmarks of a GPU's ceilings: kernels, temporary memory, timing.

Nothing here asks for CUDA itself: devices and loaded modules are given.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.workloads.device import Buffer

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice

Benchmark = Callable[[], float]  # Measures one ceiling, in the unit of its name

RUNS = 15
WARM_UP = 3  # Warm-up runs, which are not counted: clocks rise, caches fill
PAIRS = 9  # Pairs of runs, with all steps and with half of them; the first pair is a warm-up


class Unmeasured(Exception):
    """A benchmark ran without a usable result."""


class Kernels:
    """Kernels of the benchmarks in a loaded module."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def ready(self, name: str, blocks: int, threads: int, *arguments: Any) -> Callable[..., None]:
        """Function that queues one launch, on the default stream or on a given one.

        ``arguments``: buffers, and NumPy numbers of the kernel's types.
        """
        kernel = self._module.get_function(name)
        kinds = ["P" if hasattr(each, "allocation") else each.dtype.char for each in arguments]
        kernel.prepare("".join(kinds))
        plain = [getattr(each, "allocation", each) for each in arguments]

        def queue(stream: Any = None) -> None:
            kernel.prepared_async_call((blocks, 1, 1), (threads, 1, 1), stream, *plain)

        return queue


@contextmanager
def lent(device: CudaDevice, nbytes: int) -> Iterator[Buffer]:
    """Device memory, released at the end of the block."""
    buffer = device.allocate(nbytes)
    try:
        yield buffer
    finally:
        device.release(buffer)


def fill(device: CudaDevice, buffer: Buffer) -> None:
    """Fill a buffer (a multiple of 4 bytes) with random uint32 words below 2^31. Not with zeros:
    memory systems may treat them better than real data."""
    words = noise()
    for start in range(0, buffer.nbytes, words.nbytes):
        piece = words[: (buffer.nbytes - start) // 4]
        device.upload(device.part(buffer, start, piece.nbytes), piece)


def noise() -> np.ndarray:
    """Random words below 2^31: uint32, shape (1048576,), 4 MiB."""
    return np.random.default_rng(1).integers(0, 2**31, 1 << 20, dtype=np.uint32)


def in_a_row_ms(
    device: CudaDevice, runs: Sequence[Callable[[], None]], stream: Any = None
) -> list[float]:
    """Time of each of ``runs``, ms; all are queued on ``stream`` before the host waits."""
    marks = []
    for run in runs:
        begin = device.event(stream)
        run()
        marks.append((begin, device.event(stream)))
    device.synchronize()
    return [device.elapsed_ms(begin, end) for begin, end in marks]


def median_ms(device: CudaDevice, run: Callable[[], None], stream: Any = None) -> float:
    """Median time of :data:`RUNS` runs after the warm-up, ms."""
    return statistics.median(in_a_row_ms(device, [run] * RUNS, stream)[WARM_UP:])


def chain_ns(device: CudaDevice, chain: Callable[[int], Callable[[], None]], steps: int) -> float:
    """Time per step of ``chain(steps)``, without launch overhead, ns."""
    times = in_a_row_ms(device, [chain(steps), chain(steps // 2)] * PAIRS)
    return step_ns(times[2::2], times[3::2], steps)


def step_ns(full_ms: Sequence[float], half_ms: Sequence[float], steps: int) -> float:
    """Time per step, ns: (time of ``steps`` - time of half) / half of ``steps``.

    Constant costs of a run cancel.

    ``full_ms``, ``half_ms``: milliseconds of runs of ``steps`` and ``steps // 2`` steps, in pairs.
    """
    longer = [full - half for full, half in zip(full_ms, half_ms, strict=True)]
    return statistics.median(longer) / (steps - steps // 2) * 1e6
