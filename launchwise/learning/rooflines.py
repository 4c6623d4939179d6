"""Lower bounds of run times from a problem's definition and a GPU's ceilings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.gpus.machine import Machine, full_tensor_gflops
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.row_arrays import arrays, least_bytes_ms, of_gpus
from launchwise.workloads.cost import KernelCost
from launchwise.workloads.spec import Spec

FLOP_USE = "_flop"
"""Suffix of an arithmetic demand of ``cost.yaml``, after its type."""


def limits_ms(
    rows: pd.DataFrame, spec: Spec, profiles: Mapping[str, GpuProfile]
) -> dict[str, np.ndarray]:
    """Time of the least bytes at the copy bandwidth, of the FLOP at their ceiling, and of both.

    Returns ``bytes``, ``flop`` and ``roofline``, the longer of both and the overhead of one launch:
    float64, ms, shape (rows,); FLOP of a type whose ceiling was not measured take none. ``rows``:
    columns ``gpu`` and the problem's.
    """
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    precision = columns.value(spec.work.precision)
    types = list(dict.fromkeys(map(str, precision.tolist())))
    facts = {}
    for gpu, profile in profiles.items():
        known = profile.ceilings
        flops = {name: known.flop_gflops(name) for name in types}
        facts[gpu] = {"launch_us": known.launch_overhead_us, **flops}
    rates = of_gpus(rows, facts)
    gflops = np.full(len(rows), np.inf)
    for name in types:
        measured = (precision == name) & np.isfinite(rates[name])
        gflops = np.where(measured, rates[name], gflops)
    found = {
        "bytes": least_bytes_ms(rows, columns, spec, profiles),
        "flop": columns.value(spec.work.flop).astype(float) / gflops / 1e6,
    }
    overhead_ms = rates["launch_us"] / 1e3
    return {**found, "roofline": np.maximum(found["bytes"], found["flop"]) + overhead_ms}


def least_ms(rows: pd.DataFrame, spec: Spec, profiles: Mapping[str, GpuProfile]) -> np.ndarray:
    """Time that no run of a problem can beat: float64, ms, shape (rows,).

    Unlike the ``roofline`` of :func:`limits_ms` it is a bound for warm caches and for tensor cores.
    Only the bytes that exceed the L2 cache need come from device memory, at the rate of its bus:
    what reads more than it writes is faster than a copy. All bytes pass L2. FLOP run at the highest
    rate of the problem's type and of the types that the workload's ``cost.yaml`` names. A launch
    takes its share of a CUDA graph or the host's, whichever is shorter. ``rows``: columns ``gpu``
    and the problem's.
    """
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    moved_bytes = np.asarray(columns.value(spec.work.bytes), dtype=float)
    precision = columns.value(spec.work.precision)
    facts = {}
    for gpu, profile in profiles.items():
        machine = Machine.of(profile)
        rates = {
            name: max(getattr(machine, name), full_tensor_gflops(profile, name))
            for name in arithmetic_types(spec, precision)
        }
        facts[gpu] = {
            "l2_bytes": float(profile.l2_bytes),
            "l2_gbs": machine.l2_gbs,
            "dram_gbs": profile.memory_bandwidth_gbs,
            "launch_us": min(machine.launch_us, machine.host_launch_us),
            **rates,
        }
    known = of_gpus(rows, facts)
    used = _types_used(spec)
    gflops = np.max([known[name] for name in used], axis=0) if used else np.zeros(len(rows))
    for name in set(map(str, precision.tolist())):
        gflops = np.where(precision == name, np.maximum(gflops, known[name]), gflops)
    times = [
        moved_bytes / known["l2_gbs"],
        np.maximum(moved_bytes - known["l2_bytes"], 0.0) / known["dram_gbs"],
        columns.value(spec.work.flop).astype(float) / gflops,
    ]
    return np.asarray(np.max(times, axis=0) / 1e6 + known["launch_us"] / 1e3)


def arithmetic_types(spec: Spec, precision: np.ndarray) -> list[str]:
    """Types of the problems and of the workload's kernels."""
    return sorted({*map(str, precision.tolist()), *_types_used(spec)})


def _types_used(spec: Spec) -> list[str]:
    """Types whose arithmetic the workload's cost names; none where it has no cost."""
    phases = spec.cost.phases().values() if spec.cost else ()
    uses = [name for phase in phases if isinstance(phase, KernelCost) for name in phase.uses]
    return sorted({use.removesuffix(FLOP_USE) for use in uses if use.endswith(FLOP_USE)})
