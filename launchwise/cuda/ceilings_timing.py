"""Rates and latencies of a GPU as its kernels show them, and how they are timed.

Nothing here asks for CUDA itself: devices and loaded modules are given.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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
        """Function that queues one launch, on the default stream or on a given one. ``arguments``:
        buffers, and NumPy numbers of the kernel's types."""
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
    """Time per step, ns: (time of ``steps`` - time of half) / half of ``steps``. Constant costs of
    a run cancel. ``full_ms``, ``half_ms``: milliseconds of runs of ``steps`` and ``steps // 2``
    steps, in pairs."""
    longer = [full - half for full, half in zip(full_ms, half_ms, strict=True)]
    return statistics.median(longer) / (steps - steps // 2) * 1e6


THREADS = 256
WARPS = THREADS // 32

COPY_BYTES = 1 << 32

# The benchmark reads at most a third of L2: each half may cache the lines of the other.
L2_PART_READ = 3

L2_BLOCKS_PER_SM = 8
L2_READS = 2048  # Reads of 16 bytes per thread

FLOP_BLOCKS_PER_SM = 32
CHAINS_PER_THREAD = 8
STEPS = 1024  # Chains per thread and steps per chain, as in ceilings_rates.cu

MULTIPLY_ADDS_PER_STEP = {"tf32": 16 * 8 * 8, "float16": 16 * 8 * 16, "bfloat16": 16 * 8 * 16}
"""Multiply-adds per step of a chain, per warp."""

FIRST_CAPABILITY = {"tf32": (8, 0), "float16": (7, 5), "bfloat16": (8, 0)}
"""Type to the first compute capability on which ceilings_rates.cu can multiply matrices."""


def rate_benchmarks(
    device: CudaDevice, kernels: Kernels, capability: tuple[int, int]
) -> dict[str, Benchmark]:
    """Benchmarks of a GPU of ``capability``, by the name of the ceiling."""
    found: dict[str, Benchmark] = {
        f"{name}_gflops": partial(flop_gflops, device, kernels, name)
        for name in ("float32", "float64")
    }
    for name, since in FIRST_CAPABILITY.items():
        if capability >= since:
            found[f"{name}_gflops"] = partial(tensor_gflops, device, kernels, name)
    return {**found, "l2_bandwidth_gbs": partial(l2_bandwidth_gbs, device, kernels)}


def copy_bandwidth_gbs(device: CudaDevice, kernels: Kernels) -> float:
    """Copy bandwidth of the device, bytes read + written, 1e9 B/s."""
    size = min(COPY_BYTES, device.device.total_memory() // 8 // (1 << 20) * (1 << 20))
    with lent(device, size) as source, lent(device, size) as target:
        fill(device, source)
        # Each block copies four words of 16 bytes per thread; the size is a multiple of that.
        blocks = size // (64 * THREADS)
        words = np.int64(size // 16)
        copy = kernels.ready("copy_words", blocks, THREADS, target, source, words)
        return 2 * size / median_ms(device, copy) / 1e6


def l2_bytes_read(l2_bytes: int) -> int:
    """Bytes of L2 that the bandwidth benchmark reads: a power of two."""
    return 1 << int(math.log2(l2_bytes // L2_PART_READ))


def l2_bandwidth_gbs(device: CudaDevice, kernels: Kernels) -> float:
    """Read bandwidth of L2 for all SMs, without hits in L1, 1e9 B/s."""
    blocks = L2_BLOCKS_PER_SM * device.sms
    size = l2_bytes_read(device.l2_bytes)
    with lent(device, size) as words, lent(device, 16) as target:
        fill(device, words)
        counts = np.uint32(size // 16), np.uint32(L2_READS)
        read = kernels.ready("read_words", blocks, THREADS, target, words, *counts)
        return 16 * L2_READS * THREADS * blocks / median_ms(device, read) / 1e6


def flop_gflops(device: CudaDevice, kernels: Kernels, precision: str) -> float:
    """FLOP rate of a kernel of multiply-adds (2 FLOP each), 1e9 FLOP/s."""
    blocks = FLOP_BLOCKS_PER_SM * device.sms
    with lent(device, 8) as target:
        factor = np.dtype(precision).type(0.5)
        run = kernels.ready(f"multiply_add_{precision}", blocks, THREADS, target, factor)
        return 2 * CHAINS_PER_THREAD * STEPS * THREADS * blocks / median_ms(device, run) / 1e6


def tensor_gflops(device: CudaDevice, kernels: Kernels, kind: str) -> float:
    """FLOP rate of a kernel of matrix products on tensor cores, 1e9 FLOP/s."""
    blocks = FLOP_BLOCKS_PER_SM * device.sms
    with lent(device, 8) as target:
        run = kernels.ready(f"multiply_matrices_{kind}", blocks, THREADS, target)
        operations = 2 * MULTIPLY_ADDS_PER_STEP[kind] * CHAINS_PER_THREAD * STEPS * WARPS * blocks
        return operations / median_ms(device, run) / 1e6


LINE_BYTES = 128

DRAM_FACTOR = 4
"""Size of the pointer chase through device memory divided by L2: no line survives in L2."""

L2_PART_CHASED = 4
L2_MOST_BYTES = 1 << 22  # Most bytes of the pointer chase through L2: far more than an L1 holds

L1_BYTES = 1 << 14

DRAM_STEPS = 1 << 14
L2_STEPS = 1 << 15  # Number of lines in `L2_MOST_BYTES`: the warm-up run reads each line once

L1_STEPS = SHARED_STEPS = BARRIER_STEPS = 1 << 16
BARRIER_THREADS = 256

CHAINS = {
    "float32_latency_ns": ("chain_float32", np.float32(0.5), 1 << 18),
    "float64_latency_ns": ("chain_float64", np.float64(0.5), 1 << 17),
    "float32_division_ns": ("divide_float32", np.float32(1.5), 1 << 15),
    "float64_division_ns": ("divide_float64", np.float64(1.5), 1 << 14),
}
"""Kernel, factor and steps. Division by 1.5 keeps the quotient near 1, on the usual code path."""


def latency_benchmarks(device: CudaDevice, kernels: Kernels) -> dict[str, Benchmark]:
    """Benchmarks by the name of the ceiling."""
    l2_bytes = min(device.l2_bytes // L2_PART_CHASED, L2_MOST_BYTES)
    ways = {
        "dram": ("chase_l2", DRAM_FACTOR * device.l2_bytes, DRAM_STEPS),
        "l2": ("chase_l2", l2_bytes, L2_STEPS),
        "l1": ("chase_l1", L1_BYTES, L1_STEPS),
    }
    found: dict[str, Benchmark] = {
        f"{name}_latency_ns": partial(load_ns, device, kernels, *way) for name, way in ways.items()
    }
    found |= {name: partial(chained_ns, device, kernels, *how) for name, how in CHAINS.items()}
    found["shared_latency_ns"] = partial(shared_ns, device, kernels)
    found["barrier_ns"] = partial(barrier_ns, device, kernels)
    return found


def load_ns(device: CudaDevice, kernels: Kernels, kernel: str, size: int, steps: int) -> float:
    """Latency of dependent loads over ``size`` bytes, ns."""
    lines = size // LINE_BYTES
    with lent(device, lines * LINE_BYTES) as memory, lent(device, 8) as place:
        base = int(memory.allocation)  # type: ignore[attr-defined]
        device.upload(memory, links(base, lines, np.random.default_rng(2)))
        device.upload(place, np.array([base], np.uint64))
        _empty_l2(device)

        def chase(count: int) -> Callable[[], None]:
            return kernels.ready(kernel, 1, 1, place, np.int64(count))

        return chain_ns(device, chase, steps)


def _empty_l2(device: CudaDevice) -> None:
    """Evict the lines that the copy from the host left in L2."""
    with lent(device, 2 * device.l2_bytes) as other:
        device.fill_bytes(other, 0)
        device.synchronize()


def links(base: int, lines: int, rng: np.random.Generator) -> np.ndarray:
    """Content of a pointer chase at address ``base``: each line holds the address of the next. The
    order is random, and the chase visits all lines before it repeats one. Returns uint64, shape
    (lines * 16,): 128 bytes a line, all but the first 8 of them zero."""
    words = np.zeros((lines, LINE_BYTES // 8), np.uint64)
    words[:, 0] = base + LINE_BYTES * cycle(lines, rng).astype(np.uint64)
    return words.reshape(-1)


def cycle(count: int, rng: np.random.Generator) -> np.ndarray:
    """Random cycle through ``count`` places, as the successor of each: int64, shape (count,). A
    random permutation would fall into several cycles, and a chase would be caught in a short
    one."""
    order = rng.permutation(count)
    after = np.empty_like(order)
    after[order] = np.roll(order, -1)
    return after


def chained_ns(device: CudaDevice, kernels: Kernels, kernel: str, factor: Any, steps: int) -> float:
    """Latency of a dependent arithmetic operation, ns."""
    with lent(device, 8) as target:

        def chain(count: int) -> Callable[[], None]:
            return kernels.ready(kernel, 1, 1, target, factor, np.int64(count))

        return chain_ns(device, chain, steps)


def shared_ns(device: CudaDevice, kernels: Kernels) -> float:
    """Latency of a dependent load from shared memory, ns."""
    with lent(device, 8) as target:

        def chase(count: int) -> Callable[[], None]:
            return kernels.ready("chase_shared", 1, 1, target, np.int64(count))

        return chain_ns(device, chase, SHARED_STEPS)


def barrier_ns(device: CudaDevice, kernels: Kernels) -> float:
    """Time of one barrier of a block, ns."""

    def wait(count: int) -> Callable[[], None]:
        return kernels.ready("wait_for_block", 1, BARRIER_THREADS, np.int64(count))

    return chain_ns(device, wait, BARRIER_STEPS)
