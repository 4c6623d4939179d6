"""What the benchmarks of a GPU's ceilings share: kernels, memory for a while, times of runs.

Nothing here asks for CUDA itself: devices and loaded modules are given.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.workloads.workload import Buffer

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice

Benchmark = Callable[[], float]
"""Measures one ceiling, in the unit of its name."""

RUNS = 15
WARM_UP = 3
"""So many of the runs come first and do not count: clocks rise, caches fill."""

PAIRS = 9
"""Runs of a chain of steps, each with one of half as many; the first pair does not count."""


class Unmeasured(Exception):
    """A benchmark ran and gave nothing to go by."""


class Kernels:
    """The benchmarks' kernels, of a module that is loaded."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def ready(self, name: str, blocks: int, threads: int, *arguments: Any) -> Callable[..., None]:
        """What queues one launch, on the default stream or the one it is given.

        Parameters
        ----------
        arguments
            Buffers, and NumPy numbers of the kernel's types.
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
    """Device memory that is given back, whatever happens."""
    buffer = device.allocate(nbytes)
    try:
        yield buffer
    finally:
        device.release(buffer)


def fill(device: CudaDevice, buffer: Buffer) -> None:
    """Fill with noise, the highest bit of whose words of 4 bytes is zero; a multiple of 4 bytes.

    Not with zeros: memory systems may treat them better than real data.
    """
    words = noise()
    for start in range(0, buffer.nbytes, words.nbytes):
        piece = words[: (buffer.nbytes - start) // 4]
        device.upload(device.part(buffer, start, piece.nbytes), piece)


def noise() -> np.ndarray:
    """4 MiB, uint32, below 2^31."""
    return np.random.default_rng(1).integers(0, 2**31, 1 << 20, dtype=np.uint32)


def in_a_row_ms(
    device: CudaDevice, runs: Sequence[Callable[[], None]], stream: Any = None
) -> list[float]:
    """Milliseconds of each of ``runs``, all queued on ``stream`` before the first is waited for."""
    marks = []
    for run in runs:
        begin = device.event(stream)
        run()
        marks.append((begin, device.event(stream)))
    device.synchronize()
    return [device.elapsed_ms(begin, end) for begin, end in marks]


def median_ms(device: CudaDevice, run: Callable[[], None], stream: Any = None) -> float:
    """Milliseconds of one of many runs."""
    return statistics.median(in_a_row_ms(device, [run] * RUNS, stream)[WARM_UP:])


def chain_ns(device: CudaDevice, chain: Callable[[int], Callable[[], None]], steps: int) -> float:
    """Nanoseconds of a step of ``chain(steps)``, without what a launch costs."""
    times = in_a_row_ms(device, [chain(steps), chain(steps // 2)] * PAIRS)
    return step_ns(times[2::2], times[3::2], steps)


def step_ns(full_ms: Sequence[float], half_ms: Sequence[float], steps: int) -> float:
    """Nanoseconds of a step: what ``steps`` take longer than half of them.

    Whatever a run costs besides its steps is in both and falls out.

    Parameters
    ----------
    full_ms, half_ms
        Milliseconds of runs of ``steps`` and ``steps // 2`` steps, in pairs.
    """
    longer = [full - half for full, half in zip(full_ms, half_ms, strict=True)]
    return statistics.median(longer) / (steps - steps // 2) * 1e6
