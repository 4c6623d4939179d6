"""Arrays over rows: constants of GPUs, lower bounds of run times, regrets, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.vectors import Columns
from launchwise.gpus.machine import Machine, full_tensor_gflops
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.splits import case_numbers
from launchwise.tables.rows import least_by
from launchwise.workloads.cost import KernelCost
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

FACTS = ("registers", "spill_bytes")
"""Registers per thread and spilled bytes per thread of a run's main kernel."""


def keys_of(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Values of some columns, a tuple per row."""
    return list(zip(*(rows[name].tolist() for name in columns), strict=True))


def of_gpus(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Constants of each row's GPU, by name: float64, shape (rows,).

    ``facts``: GPU to its facts, every GPU of ``rows`` among them; all have the same names.
    """
    codes, gpus = pd.factorize(rows["gpu"])
    return {
        name: np.array([facts[gpu][name] for gpu in gpus], dtype=float)[codes]
        for name in next(iter(facts.values()))
    }


def least_bytes(rows: pd.DataFrame, columns: Columns, spec: Spec) -> np.ndarray:
    """Least bytes that a run of each row moves: every array of the problem once; its share, where a
    launch of the row's variant does several runs at once. float64, shape (rows,)."""
    found = np.asarray(columns.value(spec.work.bytes), dtype=float)
    if spec.cost is None or "variant" not in rows:
        return found
    for variant in rows["variant"].unique():
        if (kernel := spec.cost.several(variant)) is not None:
            share = columns.value(f"({kernel.launches}) * ({kernel.least_bytes})")
            found = np.where(rows["variant"] == variant, share, found)
    return found


def arrays(rows: pd.DataFrame, spec: Spec, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Columns as plain arrays: text as objects, numbers as they are."""
    wanted = [*spec.problem_columns, *spec.tunable_columns] if names is None else list(names)
    arrays = {name: rows[name].to_numpy() for name in wanted}
    return {
        name: values if values.dtype.kind in "iuf" else values.astype(object)
        for name, values in arrays.items()
    }


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as mappings."""
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def timed_repeatedly(rows: pd.DataFrame) -> pd.DataFrame:
    """Training rows that did not stop early (``slow``): the one launch that those were timed by was
    the first. Raises UserError without any."""
    timed = rows
    if "status" in rows:
        timed = rows[rows["status"] != "slow"].reset_index(drop=True)
    if timed.empty:
        raise UserError("training rows", "", "there are none, or every row stopped early")
    return timed


def regrets(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """log(time / best time of the same case) of each row: 0 is the best. Shape (rows,)."""
    codes = case_numbers(rows, spec)
    logs = np.log(rows["time_ms"].to_numpy(dtype=float))
    return logs - least_by(codes, logs)[codes]


def ranked(groups: np.ndarray, *criteria: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows by group, then by criteria, and the rank of each row in its group, from 1.

    Both int64, shape (rows,). ``groups``: number of each row's group: int64, shape (rows,).
    ``criteria``: compared from the first, shape (rows,) each; ties stay in the order of the rows.
    """
    # lexsort compares its last key first.
    order = np.lexsort((*criteria[::-1], groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(starts, lengths) + 1
    return order, rank


def configuration_codes(rows: pd.DataFrame, columns: list[str], spec: Spec) -> np.ndarray:
    """Number each row's values in some tunables, the same way in every table.

    Returns int64, shape (rows,): positions of the values in the spec, as digits of mixed radix.
    ``columns``: some of :attr:`Spec.tunable_columns`. Raises ValueError when a row holds a value
    that the spec does not have.
    """
    codes = np.zeros(len(rows), dtype=np.int64)
    for name in columns:
        if name == "variant":
            allowed: list[Value] = list(spec.variants)
        else:
            tunable = spec.tunables[name]
            allowed = list(dict.fromkeys([tunable.neutral, *tunable.values]))
        places = {value: place for place, value in enumerate(allowed)}
        # Few distinct values: find those in the spec, then spread them.
        numbers, distinct = pd.factorize(rows[name].array)
        found = [places.get(value, -1) for value in distinct.tolist()]
        if -1 in found:
            strange = rows[name].iloc[int((numbers == found.index(-1)).argmax())]
            raise ValueError(f"{name} holds {strange}, unknown to the spec")
        codes *= len(allowed)
        if len(found) > 1:
            codes += np.array(found, dtype=np.int64)[numbers]
        elif found:
            codes += found[0]
    return codes


FLOP_USE = "_flop"  # Suffix of an arithmetic demand of `cost.yaml`, after its type


def limits_ms(
    rows: pd.DataFrame, spec: Spec, profiles: Mapping[str, GpuProfile]
) -> dict[str, np.ndarray]:
    """Time of the least bytes at the copy bandwidth, of the FLOP at their ceiling, and of both.
    Returns ``bytes``, ``flop`` and ``roofline``, the longer of both and the overhead of one launch:
    float64, ms, shape (rows,); FLOP of a type whose ceiling was not measured take none. ``rows``:
    columns ``gpu`` and the problem's; with ``variant``, bytes are those of its launch
    (:func:`least_bytes`)."""
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    precision = columns.value(spec.work.precision)
    types = list(dict.fromkeys(map(str, precision.tolist())))
    facts = {}
    for gpu, profile in profiles.items():
        known = profile.ceilings
        flops = {name: known.flop_gflops(name) for name in types}
        rest = {"launch_us": known.launch_overhead_us, "copy_gbs": known.copy_bandwidth_gbs}
        facts[gpu] = {**rest, **flops}
    rates = of_gpus(rows, facts)
    gflops = np.full(len(rows), np.inf)
    for name in types:
        measured = (precision == name) & np.isfinite(rates[name])
        gflops = np.where(measured, rates[name], gflops)
    found = {
        "bytes": least_bytes(rows, columns, spec) / rates["copy_gbs"] / 1e6,
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
    takes its share of a CUDA graph or the host's, whichever is shorter. ``rows``: as of
    :func:`limits_ms`.
    """
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    moved_bytes = least_bytes(rows, columns, spec)
    precision = columns.value(spec.work.precision)
    own, used = set(map(str, precision.tolist())), _types_used(spec)
    facts = {}
    for gpu, profile in profiles.items():
        machine = Machine.of(profile)
        rates = {
            name: max(getattr(machine, name), full_tensor_gflops(profile, name))
            for name in {*own, *used}
        }
        facts[gpu] = {
            "l2_bytes": float(profile.l2_bytes),
            "l2_gbs": machine.l2_gbs,
            "dram_gbs": profile.memory_bandwidth_gbs,
            "launch_us": min(machine.launch_us, machine.host_launch_us),
            **rates,
        }
    known = of_gpus(rows, facts)
    gflops = np.max([known[name] for name in used], axis=0) if used else np.zeros(len(rows))
    for name in own:
        gflops = np.where(precision == name, np.maximum(gflops, known[name]), gflops)
    times = [
        moved_bytes / known["l2_gbs"],
        np.maximum(moved_bytes - known["l2_bytes"], 0.0) / known["dram_gbs"],
        columns.value(spec.work.flop).astype(float) / gflops,
    ]
    return np.asarray(np.max(times, axis=0) / 1e6 + known["launch_us"] / 1e3)


def _types_used(spec: Spec) -> list[str]:
    """Types whose arithmetic the workload's cost names; none where it has no cost."""
    phases = spec.cost.phases().values() if spec.cost else ()
    uses = [name for phase in phases if isinstance(phase, KernelCost) for name in phase.uses]
    return sorted({use.removesuffix(FLOP_USE) for use in uses if use.endswith(FLOP_USE)})
