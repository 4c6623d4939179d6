"""Measures the rates of a GPU: copies, reads from L2, multiply-adds, tensor cores."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from launchwise.cuda.ceilings_timing import Benchmark, Kernels, fill, lent, median_ms

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice

THREADS = 256
WARPS = THREADS // 32

COPY_BYTES = 1 << 32

L2_PART = 3  # The benchmark reads at most a third of L2: each half may cache the lines of the other

L2_BLOCKS_PER_SM = 8
L2_READS = 2048  # Reads of 16 bytes per thread

FLOP_BLOCKS_PER_SM = 32
CHAINS = 8
STEPS = 1024  # Chains per thread and steps per chain, as in ceilings_rates.cu

MULTIPLY_ADDS_PER_STEP = {"tf32": 16 * 8 * 8, "float16": 16 * 8 * 16, "bfloat16": 16 * 8 * 16}
"""Multiply-adds per step of a chain, per warp."""

FIRST_CAPABILITY = {"tf32": (8, 0), "float16": (7, 5), "bfloat16": (8, 0)}
"""Type to the first compute capability on which ceilings_rates.cu can multiply matrices."""


def benchmarks(
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
    return 1 << int(math.log2(l2_bytes // L2_PART))


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
        return 2 * CHAINS * STEPS * THREADS * blocks / median_ms(device, run) / 1e6


def tensor_gflops(device: CudaDevice, kernels: Kernels, kind: str) -> float:
    """FLOP rate of a kernel of matrix products on tensor cores, 1e9 FLOP/s."""
    blocks = FLOP_BLOCKS_PER_SM * device.sms
    with lent(device, 8) as target:
        run = kernels.ready(f"multiply_matrices_{kind}", blocks, THREADS, target)
        operations = 2 * MULTIPLY_ADDS_PER_STEP[kind] * CHAINS * STEPS * WARPS * blocks
        return operations / median_ms(device, run) / 1e6
