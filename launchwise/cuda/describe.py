"""The ``describe`` stage's process: attributes of the first visible device, measured ceilings."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pycuda.driver as cuda

from launchwise.cuda.device import CudaDevice
from launchwise.errors import UserError
from launchwise.gpu import CORES_PER_SM, Ceilings, GpuProfile
from launchwise.measuring.compile import compile_unit, nvcc_release
from launchwise.provenance import commit, now

COPY_BYTES = 1 << 32
COPY_THREADS = 256
COPY_REPEATS = 15
LAUNCHES = 2000
FLOP_THREADS = 256
FLOP_BLOCKS_PER_SM = 32
FLOP_A_THREAD = 2 * 8 * 1024
"""Two a multiply-add; chains and steps as in describe.cu."""


def describe(job: dict[str, Any]) -> GpuProfile:
    """Profile of the first visible device (or its slice).

    Parameters
    ----------
    job
        name, card, driver and slice_sms (or None).
    """
    device = CudaDevice(slice_sms=job["slice_sms"])
    facts = {str(key): value for key, value in device.device.get_attributes().items()}
    capability = device.device.compute_capability()
    clock, bus = facts["MEMORY_CLOCK_RATE"] / 1e3, facts["GLOBAL_MEMORY_BUS_WIDTH"]
    arch = "sm_{}{}".format(*capability)
    source = Path(__file__).with_suffix(".cu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What ptxas says of these two kernels is of no use.
        module = cuda.module_from_buffer(compile_unit(source.read_text(), source.parent, arch))
    return GpuProfile(
        name=job["name"],
        device_name=device.device.name(),
        card=job["card"],
        whole_card_sms=device.whole_card_sms,
        compute_capability=capability,
        arch=arch,
        sms=device.sms,
        cores=device.sms * CORES_PER_SM.get(capability, 128),
        clock_mhz=facts["CLOCK_RATE"] / 1e3,
        memory_clock_mhz=clock,
        memory_bus_bits=bus,
        memory_bytes=device.device.total_memory(),
        # Two transfers a clock.
        memory_bandwidth_gbs=2 * clock * 1e6 * bus / 8 / 1e9,
        l2_bytes=device.l2_bytes,
        shared_per_sm_bytes=facts["MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"],
        shared_per_block_bytes=_shared_per_block(device.device, facts),
        registers_per_sm=facts["MAX_REGISTERS_PER_MULTIPROCESSOR"],
        max_threads_per_sm=facts["MAX_THREADS_PER_MULTIPROCESSOR"],
        max_threads_per_block=facts["MAX_THREADS_PER_BLOCK"],
        driver=job["driver"],
        toolkit=nvcc_release(),
        commit=commit(),
        measured_at=now(),
        ceilings=Ceilings(
            copy_bandwidth_gbs=copy_bandwidth_gbs(device, module.get_function("copy_words")),
            launch_overhead_us=launch_overhead_us(module.get_function("nothing")),
            **{
                f"{name}_gflops": flop_gflops(device, module, name)
                for name in ("float32", "float64")
            },
        ),
    )


def _shared_per_block(device: Any, facts: dict[str, Any]) -> int:
    """The opt-in limit of shared memory a block, where PyCUDA knows to ask for it."""
    for name in ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MAX_SHARED_MEMORY_PER_BLOCK"):
        if facts.get(name):
            return int(facts[name])
    return 48 * 1024


def copy_bandwidth_gbs(device: CudaDevice, copy: Any) -> float:
    """Bytes read and written by a device copy, 1e9 B/s, the median of several runs."""
    size = min(COPY_BYTES, device.device.total_memory() // 8 // (1 << 20) * (1 << 20))
    source, target = device.allocate(size), device.allocate(size)
    # Not zeros: memory systems may treat them better than real data.
    noise = np.random.default_rng(1).integers(0, 2**32, 1 << 20, dtype=np.uint32)
    for start in range(0, size, noise.nbytes):
        cuda.memcpy_htod(int(source.allocation) + start, noise[: (size - start) // 4])
    copy.prepare("PPq")
    # Each block copies four words of 16 bytes a thread; the size is a multiple of that.
    grid = (size // (64 * COPY_THREADS), 1, 1)
    events = [cuda.Event() for _ in range(2 * COPY_REPEATS)]
    for number in range(COPY_REPEATS):
        events[2 * number].record()
        copy.prepared_async_call(
            grid, (COPY_THREADS, 1, 1), None, target.allocation, source.allocation, size // 16
        )
        events[2 * number + 1].record()
    events[-1].synchronize()
    times = [
        events[2 * number + 1].time_since(events[2 * number]) for number in range(COPY_REPEATS)
    ]
    for buffer in (source, target):
        device.release(buffer)
    return 2 * size / (statistics.median(times[3:]) * 1e-3) / 1e9


def flop_gflops(device: CudaDevice, module: Any, precision: str) -> float:
    """Rate of a kernel that does nothing but multiply-adds, two operations each, 1e9 FLOP/s."""
    kernel = module.get_function(f"multiply_add_{precision}")
    kernel.prepare("P" + np.dtype(precision).char)
    target = device.allocate(8)
    blocks = FLOP_BLOCKS_PER_SM * device.sms
    begin, end = cuda.Event(), cuda.Event()
    times = []
    for _ in range(COPY_REPEATS):
        begin.record()
        kernel.prepared_async_call(
            (blocks, 1, 1), (FLOP_THREADS, 1, 1), None, target.allocation, 0.5
        )
        end.record()
        end.synchronize()
        times.append(end.time_since(begin))
    device.release(target)
    operations = FLOP_A_THREAD * FLOP_THREADS * blocks
    return operations / (statistics.median(times[3:]) * 1e-3) / 1e9


def launch_overhead_us(nothing: Any) -> float:
    """Time of one prepared launch of an empty kernel in a long row of them, microseconds."""
    nothing.prepare("")
    for _ in range(LAUNCHES // 10):
        nothing.prepared_async_call((1, 1, 1), (32, 1, 1), None)
    cuda.Context.synchronize()
    begin = time.perf_counter()
    for _ in range(LAUNCHES):
        nothing.prepared_async_call((1, 1, 1), (32, 1, 1), None)
    cuda.Context.synchronize()
    return (time.perf_counter() - begin) / LAUNCHES * 1e6


if __name__ == "__main__":
    try:
        profile = describe(json.loads(sys.stdin.read()))
    except UserError as error:
        sys.exit(str(error))
    print(json.dumps(profile.model_dump(mode="json")), flush=True)
    # The context is still open, which PyCUDA's clean-up takes for a mistake.
    os._exit(0)
