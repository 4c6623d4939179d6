"""The ``describe`` stage's process: attributes of the first visible device, measured ceilings.

Ceilings are measured one after the other; those that cannot be measured are skipped.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.places import commit, now
from launchwise.cuda.ceilings_timing import (
    PAIRS,
    Benchmark,
    Kernels,
    Unmeasured,
    copy_bandwidth_gbs,
    latency_benchmarks,
    lent,
    median_ms,
    noise,
    rate_benchmarks,
    step_ns,
)
from launchwise.gpus.profile import Ceilings, GpuProfile
from launchwise.measuring.compile import compile_unit, nvcc_release
from launchwise.measuring.measure import LaunchFailed, OutOfMemory

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice


LAUNCHES = 2000
SYNCHRONIZED = 200
GRAPH_KERNELS = 2000
COPY_BYTES = 1 << 28
PAGEABLE_COPIES = 7
SMALL_COPIES = 1000
STREAMS = 32  # Streams that are created in a row: one for each hardware queue of a card
STREAM_ROUNDS = 9  # Rounds of `STREAMS` streams; the first is a warm-up
SOLVED_ROWS = 1_000_000
HOST_SOLVES = 7  # Systems that the host solves; the first is a warm-up


def host_benchmarks(device: CudaDevice, kernels: Kernels) -> dict[str, Benchmark]:
    """Benchmarks by the name of the ceiling."""
    return {
        "graph_launch_us": partial(graph_launch_us, device, kernels),
        "host_synchronize_us": partial(host_synchronize_us, device, kernels),
        "to_device_gbs": partial(page_locked_gbs, device, device.upload),
        "to_host_gbs": partial(page_locked_gbs, device, device.download),
        "pageable_to_device_gbs": partial(pageable_gbs, device, device.upload),
        "pageable_to_host_gbs": partial(pageable_gbs, device, device.download),
        "copy_overhead_us": partial(copy_overhead_us, device),
        "stream_creation_us": partial(stream_creation_us, device),
        "host_solve_ns": host_solve_ns,
    }


def launch_overhead_us(device: CudaDevice, kernels: Kernels) -> float:
    """Time per launch of an empty kernel in a long sequence of launches, us."""
    return _in_a_long_row_us(device, kernels.ready("nothing", 1, 32), LAUNCHES)


def _in_a_long_row_us(device: CudaDevice, queue: Callable[[], None], count: int) -> float:
    """Time per call of ``queue``, us: the longer of host time and device time."""
    for _ in range(count // 10):
        queue()
    device.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        queue()
    device.synchronize()
    return (time.perf_counter() - begin) / count * 1e6


def _median_s(work: Callable[[], None], runs: int, skipped: int) -> float:
    """Median host time of ``runs`` runs without the first ``skipped``, s."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[skipped:])


def host_synchronize_us(device: CudaDevice, kernels: Kernels) -> float:
    """Time to launch an empty kernel and wait for its end on the host, us."""
    launch = kernels.ready("nothing", 1, 32)

    def wait() -> None:
        launch()
        device.synchronize()

    return _median_s(wait, SYNCHRONIZED, SYNCHRONIZED // 10) * 1e6


def graph_launch_us(device: CudaDevice, kernels: Kernels) -> float:
    """Time per empty kernel in a graph, without the launch of the graph, us."""
    launch, stream = kernels.ready("nothing", 1, 32), device.stream()

    def captured(count: int) -> Any:
        def queue() -> None:
            for _ in range(count):
                launch(stream)

        return device.captured(queue, [stream])

    def replay_ms(graph: Any) -> float:
        begin = time.perf_counter()
        graph.launch()
        device.synchronize()
        return (time.perf_counter() - begin) * 1e3

    full, half = captured(GRAPH_KERNELS), captured(GRAPH_KERNELS // 2)
    try:
        # The first replay uploads a graph, and is not counted.
        times = [replay_ms(graph) for graph in (full, half) * PAIRS]
    finally:
        for graph in (full, half):
            graph.close()
    return step_ns(times[2::2], times[3::2], GRAPH_KERNELS) / 1e3


def page_locked_gbs(device: CudaDevice, move: Callable[..., None]) -> float:
    """Copy rate between the device and page-locked memory, 1e9 B/s."""
    stream, array = device.stream(), device.page_locked(COPY_BYTES)
    _fill(array)
    with lent(device, COPY_BYTES) as buffer:
        time_ms = median_ms(device, lambda: move(buffer, array, stream), stream)
    return COPY_BYTES / time_ms / 1e6


def pageable_gbs(device: CudaDevice, move: Callable[..., None]) -> float:
    """Copy rate between the device and pageable memory, by the host's clock, 1e9 B/s."""
    array = np.empty(COPY_BYTES, np.uint8)
    # Also where the array is only written to: the kernel maps a page at its first access.
    _fill(array)
    with lent(device, COPY_BYTES) as buffer:

        def copy() -> None:
            move(buffer, array)
            device.synchronize()

        return COPY_BYTES / _median_s(copy, PAGEABLE_COPIES, 1) / 1e9


def _fill(array: np.ndarray) -> None:
    pattern = noise().view(np.uint8)
    array.reshape(-1, len(pattern))[:] = pattern


def copy_overhead_us(device: CudaDevice) -> float:
    """Time per copy of 4 bytes to the device in a long sequence of copies, us."""
    stream, word = device.stream(), device.page_locked(4)
    word[:] = 1
    with lent(device, 4) as buffer:
        return _in_a_long_row_us(device, lambda: device.upload(buffer, word, stream), SMALL_COPIES)


def stream_creation_us(device: CudaDevice) -> float:
    """Host time for the driver to create one stream (cuStreamCreate), us; the device is idle. No
    stream is destroyed before the last one exists, so none is a destroyed one used again."""
    device.synchronize()
    kept: list[Any] = []

    def create() -> None:
        kept.extend([device.stream() for _ in range(STREAMS)])

    return _median_s(create, STREAM_ROUNDS, 1) / STREAMS * 1e6


def host_solve_ns() -> float:
    """Time per row of LAPACK's gtsv for a diagonally dominant float64 system, ns. The host solves
    one such system; its four arrays are overwritten."""
    from scipy.linalg import get_lapack_funcs

    (gtsv,) = get_lapack_funcs(("gtsv",), dtype=np.float64)
    rng = np.random.default_rng(3)
    a, c, d = (rng.uniform(-1, 1, SOLVED_ROWS) for _ in range(3))
    b = rng.uniform(2.5, 3.5, SOLVED_ROWS)
    times = []
    for _ in range(HOST_SOLVES):
        system = [each.copy() for each in (a, b, c, d)]  # Solving overwrites it.
        lower, diagonal, upper, right = system
        begin = time.perf_counter()
        gtsv(lower[1:], diagonal, upper[:-1], right, True, True, True, True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:]) / SOLVED_ROWS * 1e9


HERE = Path(__file__).resolve().parent
SOURCES = (HERE / "ceilings_rates.cu", HERE / "ceilings_latencies.cu")

REFUSALS = (LaunchFailed, OutOfMemory, ImportError, AttributeError, Unmeasured)
"""Exceptions that skip one benchmark and leave the others, such as a missing or old library."""


def translation_unit() -> str:
    """Source of all benchmark kernels in one translation unit: starting nvcc takes a second."""
    return "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)


def measured_ceilings(
    device: CudaDevice, module: Any, capability: tuple[int, int], refused: type[Exception]
) -> Ceilings:
    """Measure every ceiling of this GPU. Only copy bandwidth and launch overhead must succeed.
    ``module``: :func:`translation_unit`, loaded on the device. ``refused``: the driver's errors.
    Raises UserError when the device is lost on the way, as after an illegal address."""
    kernels = Kernels(module)
    copied_gbs = copy_bandwidth_gbs(device, kernels)
    overhead_us = launch_overhead_us(device, kernels)
    # Rates first: they leave the clocks where work has them.
    benchmarks = {
        **rate_benchmarks(device, kernels, capability),
        **latency_benchmarks(device, kernels),
        **host_benchmarks(device, kernels),
    }
    errors = (*REFUSALS, refused)
    return Ceilings(
        copy_bandwidth_gbs=copied_gbs,
        launch_overhead_us=overhead_us,
        **{name: attempted(name, each, device, errors) for name, each in benchmarks.items()},
    )


def attempted(
    name: str, benchmark: Benchmark, device: CudaDevice, errors: tuple[type[Exception], ...]
) -> float | None:
    """Value that ``benchmark`` measured; None, with the reason on stderr, if it failed. Raises
    UserError when the device is lost: nothing could be measured after that."""
    try:
        value = float(benchmark())
        # Whatever it queued and did not wait for fails here, and not in the next one.
        device.synchronize()
        if not (math.isfinite(value) and value > 0):
            raise Unmeasured(f"measured {value}, which is impossible")
        return value
    except errors as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if _lost(device):
            raise UserError("describe", name, f"the device is lost: {reason}") from error
        print(f"{name} was not measured: {reason}", file=sys.stderr, flush=True)
        return None


def _lost(device: CudaDevice) -> bool:
    try:
        device.synchronize()
    except LaunchFailed as error:
        return error.fatal
    except OutOfMemory:
        return False
    return False


def describe(job: dict[str, Any]) -> GpuProfile:
    """Profile of the first visible device (or its slice). ``job``: name, card, driver and slice_sms
    (or None)."""
    import pycuda.driver as cuda

    from launchwise.cuda.device import CudaDevice, attributes_of

    device = CudaDevice(slice_sms=job["slice_sms"])
    attributes = attributes_of(device)
    cubin, _ = compile_unit(translation_unit(), HERE, attributes["arch"])
    module = cuda.module_from_buffer(cubin)
    capability = tuple(attributes["compute_capability"])
    return GpuProfile(
        **attributes,
        name=job["name"],
        card=job["card"],
        driver=job["driver"],
        toolkit=nvcc_release(),
        commit=commit(),
        measured_at=now(),
        ceilings=measured_ceilings(device, module, capability, cuda.Error),
    )


if __name__ == "__main__":
    try:
        profile = describe(json.loads(sys.stdin.read()))
    except UserError as error:
        # Nothing after this line: of a lost context PyCUDA's clean-up would have more to say.
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    print(json.dumps(profile.model_dump(mode="json")), flush=True)
    # The context is still open, which PyCUDA's clean-up takes for a mistake.
    os._exit(0)
