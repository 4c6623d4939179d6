"""Measures the ceilings of a GPU, one after the other; skips those that cannot be measured."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.errors import UserError
from launchwise.cuda import ceilings_host, ceilings_latencies, ceilings_rates
from launchwise.cuda.ceilings_timing import Benchmark, Kernels, Unmeasured
from launchwise.gpus.profile import Ceilings
from launchwise.measuring.measure import LaunchFailed, OutOfMemory

if TYPE_CHECKING:
    from launchwise.cuda.device import CudaDevice

HERE = Path(__file__).resolve().parent
SOURCES = (HERE / "ceilings_rates.cu", HERE / "ceilings_latencies.cu")

REFUSALS = (LaunchFailed, OutOfMemory, ImportError, AttributeError, Unmeasured)
"""Exceptions that skip one benchmark and leave the others, such as a missing or old library."""


def translation_unit() -> str:
    """Source of all benchmark kernels in one translation unit: starting nvcc takes a second."""
    return "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)


def measured_ceilings(
    device: CudaDevice,
    module: Any,
    capability: tuple[int, int],
    refused: type[Exception],
) -> Ceilings:
    """Measure every ceiling of this GPU. Only copy bandwidth and launch overhead must succeed.

    ``module``: :func:`translation_unit`, loaded on the device. ``refused``: the driver's errors.
    Raises UserError when the device is lost on the way, as after an illegal address.
    """
    kernels = Kernels(module)
    copy_bandwidth_gbs = ceilings_rates.copy_bandwidth_gbs(device, kernels)
    launch_overhead_us = ceilings_host.launch_overhead_us(device, kernels)
    # Rates first: they leave the clocks where work has them.
    benchmarks = {
        **ceilings_rates.benchmarks(device, kernels, capability),
        **ceilings_latencies.benchmarks(device, kernels),
        **ceilings_host.benchmarks(device, kernels),
    }
    errors = (*REFUSALS, refused)
    return Ceilings(
        copy_bandwidth_gbs=copy_bandwidth_gbs,
        launch_overhead_us=launch_overhead_us,
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
