"""How unlike two GPUs are, by what is known of them: a search weighs other GPUs' rows by it.

``benchmarks/likeness.py`` holds pairs of GPUs against each other: by how much their losses differ,
over all kernels that both measured. Its ``coefficients``, in ``benchmarks/results/likeness.json``,
are the constants below. Shared memory, threads and FP32 lanes per SM tell nothing beside these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

COEFFICIENTS = {"sms": 0.889, "bandwidth_per_flop": 1.584, "maker": 3.245, "generation": 0.0}
"""By difference: doublings of SMs, of bandwidth per FLOP; other maker; compute capability."""

NUMBERS = ("sms", "cores", "clock_mhz", "memory_bandwidth_gbs")


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """By the names of :data:`COEFFICIENTS`; NaN where a fact is missing. The facts are those of a
    profile: ``sms``, ``cores`` (FP32 lanes of all SMs), ``clock_mhz``, ``memory_bandwidth_gbs``,
    ``arch`` (such as ``sm_90``, ``gfx1100``), ``compute_capability`` (major, minor). Raises
    ValueError when one is no number above 0."""
    a, b = _facts(one), _facts(other)
    found = {name: abs(a[name] - b[name]) for name in a}
    # Generations of two makers have no order.
    return found if found["maker"] == 0 else {**found, "generation": 0.0 * found["maker"]}


def away(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> float:
    """How unlike two GPUs are, 0 and more; NaN where a fact of one is missing."""
    found = differences(one or {}, other or {})
    return sum(COEFFICIENTS[name] * each for name, each in found.items())


def _facts(gpu: Mapping[str, Any]) -> dict[str, float]:
    sms, cores, clock_mhz, bandwidth = (_number(gpu, name) for name in NUMBERS)
    arch, version = gpu.get("arch"), gpu.get("compute_capability")
    is_amd = math.nan if arch is None else float(str(arch).startswith("gfx"))
    return {
        "sms": math.log2(sms),
        "bandwidth_per_flop": math.log2(bandwidth / (cores * clock_mhz)),
        "maker": is_amd,
        "generation": math.nan if version is None else version[0] + version[1] / 10,
    }


def _number(gpu: Mapping[str, Any], name: str) -> float:
    found = gpu.get(name, math.nan)
    if isinstance(found, str | bool) or found <= 0:
        raise ValueError(f"{name} of a GPU must be a number above 0, not {found!r}")
    return float(found)
