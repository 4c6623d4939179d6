"""Measures the latencies of dependent loads, dependent arithmetic and barriers on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.cuda.ceilings_timing import Benchmark, Kernels, chain_ns, lent

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice

LINE_BYTES = 128

DRAM_FACTOR = 4
"""Size of the pointer chase through device memory divided by L2: no line survives in L2."""

L2_PART = 4
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


def benchmarks(device: CudaDevice, kernels: Kernels) -> dict[str, Benchmark]:
    """Benchmarks by the name of the ceiling."""
    l2_bytes = min(device.l2_bytes // L2_PART, L2_MOST_BYTES)
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
