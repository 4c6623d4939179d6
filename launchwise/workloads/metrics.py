"""Columns of sweeps and of hardware counters beside problem and configuration, each declared once.

Journal rows, tables with their units and checks, imports, the report and docs/reference/columns.md
follow from the entries: another metric is another entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

MEASURED = ("ok", "slow")
"""Statuses of rows with a verified result and a time; ``slow`` rows stopped early (one launch)."""

UNVERIFIED = "unverified"
"""Status of timed rows whose variant is not verified. They may be shown, but are never used for
training, comparison or recommendation."""

TIMED = (*MEASURED, UNVERIFIED)  # Statuses of rows that have a time
UNKNOWN = "unknown"  # Reasons for throttling if the card cannot be queried

STATUSES = (*TIMED, "wrong", "failed", "timeout", "out_of_memory")

OLDEST = 3  # Oldest schema version of tables that is read

Kind = Literal["text", "whole", "real", "times"]

_NEUTRAL: Mapping[Kind, Any] = {"text": "", "whole": 0, "real": math.nan, "times": ()}


@dataclass(frozen=True)
class Shown:
    """A metric in the report."""

    title: str  # of its values there
    unit: str = ""
    factor: float = 1.0  # what a value is multiplied by: 100 for a share in %
    # Place among what is told of each row beside its configuration and time; 0: it is not told.
    row: int = 0


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A column: what was measured, or how. The text below its entry is for the reference."""

    name: str = ""  # of the column: that of its entry
    kind: Kind = "real"  # texts, whole numbers, real numbers (NaN: missing), or lists of times
    unit: str = ""  # of the column's values; `1` for a ratio, empty for what has none
    # Bounds of its values: at least, above, at most.
    least: float | None = None
    above: float | None = None
    most: float | None = None
    one_of: tuple[str, ...] = ()  # texts that it may hold; any where that is empty
    # Value of a row in which it was not measured, and of tables older than it; of its kind's
    # emptiness where that is None.
    neutral: Any = None
    since: int = OLDEST  # schema version of tables from which on they hold it
    # ``row``: the measuring process may tell it of a row. ``always``: every row has it.
    # ``table``: it is computed when journal rows become a table.
    made: Literal["row", "always", "table"] = "row"
    # Columns, and ``bytes`` and ``flop`` of the problem (NaN: unknown), to its values; all
    # float64 of shape (rows,).
    formula: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = None
    shown: Shown | None = None  # where the report shows it; None for columns that it reads by name

    @property
    def absent(self) -> Any:
        """Its neutral value."""
        return _NEUTRAL[self.kind] if self.neutral is None else self.neutral


@dataclass(frozen=True, kw_only=True)
class Counter(Metric):
    """A real number that Nsight Compute counts."""

    source: str  # its name there
    scale: float = 1.0  # what its value there is multiplied by


@dataclass(frozen=True, kw_only=True)
class Share(Counter):
    """A counter in percent, as a share between 0 and 1."""

    unit: str = "1"
    least: float | None = 0.0
    most: float | None = 1.0
    scale: float = 0.01


Column = TypeVar("Column", bound=Metric)


def _named(entries: type, kind: type[Column]) -> tuple[Column, ...]:
    found = [(name, each) for name, each in vars(entries).items() if isinstance(each, kind)]
    return tuple(replace(each, name=name) for name, each in found)


class Keys:
    """Columns of a sweep before problem and configuration."""

    gpu = Metric(kind="text", made="always")
    """name of the GPU in the settings"""
    workload = Metric(kind="text", made="always")
    """name of the workload"""


KEYS = _named(Keys, Metric)


class Results:
    """Columns of a sweep before the workload's stages and findings."""

    status = Metric(kind="text", made="always", one_of=STATUSES, shown=Shown("status", row=1))
    """`ok`; `slow` (stopped early: the time of one launch); `unverified`; `wrong`; `failed`;
    `timeout`; `out_of_memory`"""
    reason = Metric(kind="text")
    """why the status is not `ok`"""
    time_ms = Metric(unit="ms", above=0)
    """median of `times_ms`; the first launch is never in it, except in a `slow` row, which has the
    shortest of two to five launches"""
    times_ms = Metric(kind="times", unit="ms")
    """all repeats"""
    repeats = Metric(kind="whole", made="table", shown=Shown("repeats", row=3))
    """number of repeats"""
    spread_ms = Metric(unit="ms", least=0, made="table")
    """robust spread of the repeats: median absolute deviation times 1.4826"""
    relative_error = Metric(
        unit="1",
        least=0,
        made="table",
        shown=Shown("standard error", "% of the time at most", 100, row=4),
    )
    """relative standard error of the median"""
    outlier_repeats = Metric(kind="whole", made="table")
    """repeats outside the Tukey limits; none is deleted"""
    timer = Metric(kind="text", one_of=("", "events", "graph", "restored", "host"))
    """`events`: CUDA events around each launch; `graph`: around a replayed graph of several;
    `restored`: around each launch, arrays that it changes put back before; `host`: the host's
    clock, for what it drives"""
    launches_per_repeat = Metric(kind="whole")
    """launches in one repeat"""
    first_ms = Metric(unit="ms", above=0)
    """first launch"""
    l2 = Metric(kind="text", one_of=("", "cold", "warm"))
    """`cold` or `warm`: L2 before a launch"""
    max_error = Metric(unit="1", least=0)
    """largest deviation from the float64 reference"""
    tolerance = Metric(unit="1", least=0)
    """largest deviation that is allowed; only an `unverified` row may have a time and a larger
    one"""


RESULTS = _named(Results, Metric)


class Circumstances:
    """Columns of a sweep after them."""

    registers = Metric(kind="whole", shown=Shown("registers", "per thread", row=6))
    """registers per thread of the main kernel"""
    spill_bytes = Metric(kind="whole", unit="B")
    """spilled registers per thread"""
    shared_bytes = Metric(
        kind="whole", unit="B", shown=Shown("shared memory", "B per block", row=7)
    )
    """shared memory per block of the main kernel"""
    occupancy = Metric(unit="1", least=0, most=1, shown=Shown("occupancy", "%", 100, row=8))
    """warps that an SM can hold of the main kernel / warps that it can hold at most"""
    bandwidth_gbs = Metric(
        unit="GB/s",
        above=0,
        made="table",
        formula=lambda row: row["bytes"] / (row["time_ms"] / 1e3) / 1e9,
    )
    """the problem's bytes / time; the report compares it with the ceilings in the GPU's profile"""
    flop_rate_gflops = Metric(
        unit="GFLOP/s",
        least=0,
        made="table",
        formula=lambda row: row["flop"] / (row["time_ms"] / 1e3) / 1e9,
    )
    """the problem's FLOP / time"""
    sm_clock_mhz = Metric(unit="MHz", least=0, shown=Shown("SM clock", "MHz", row=5))
    """mean clock of the SMs"""
    memory_clock_mhz = Metric(unit="MHz", least=0)
    """mean clock of the memory"""
    temperature_c = Metric(unit="degC")
    """mean temperature"""
    power_w = Metric(unit="W", least=0)
    """mean power"""
    energy_j = Metric(unit="J", above=0, made="table", shown=Shown("energy", "J per run", row=9))
    """energy per launch, launches back to back"""
    sustained_ms = Metric(
        unit="ms", above=0, made="table", since=5, shown=Shown("back to back", "ms", row=10)
    )
    """time per launch, launches back to back: at the card's power limit, if that is reached"""
    throttle = Metric(kind="text", neutral=UNKNOWN)
    """reasons for throttling, joined by `+`; `unknown` if the card cannot be queried"""
    control_ratio = Metric(unit="1", above=0, made="table")
    """reference time after the row / first reference time on that card"""
    attempt = Metric(kind="whole", least=1, neutral=1)
    """2 if a first measurement was in doubt and repeated"""


CIRCUMSTANCES = _named(Circumstances, Metric)
BACK_TO_BACK = ("energy_j", "sustained_ms")  # Columns of launches that follow each other at once


class Origin:
    """Columns of provenance, at the end of a sweep."""

    card = Metric(kind="text", made="always")
    """mark of the physical card"""
    driver = Metric(kind="text", made="always")
    """version of the driver"""
    toolkit = Metric(kind="text", made="always")
    """version of the CUDA toolkit"""
    backend = Metric(kind="text", made="always")
    """what launched the kernels; `imported` for sweeps of others"""
    commit = Metric(kind="text", made="always")
    """commit of this project"""
    seed = Metric(kind="whole")
    """seed of the inputs"""
    measured_at = Metric(kind="text", made="always")
    """time of the measurement, UTC"""


ORIGIN = _named(Origin, Metric)

SWEEP: tuple[Metric, ...] = (*KEYS, *RESULTS, *CIRCUMSTANCES, *ORIGIN)


class Counters:
    """Columns of hardware counters."""

    occupancy = Share(
        source="sm__maximum_warps_per_active_cycle_pct",
        shown=Shown("occupancy", "% theoretical", 100),
    )
    """warps that registers, shared memory and block size leave room for / warps that an SM holds at
    most"""
    achieved_occupancy = Share(
        source="sm__warps_active.avg.pct_of_peak_sustained_active",
        shown=Shown("occupancy", "% achieved", 100),
    )
    """mean of the active warps on SMs at work / warps that an SM holds at most"""
    dram_throughput = Share(
        source="dram__throughput.avg.pct_of_peak_sustained_elapsed", shown=Shown("memory", "%", 100)
    )
    """throughput of the memory / its peak"""
    l2_throughput = Share(
        source="lts__throughput.avg.pct_of_peak_sustained_elapsed", shown=Shown("L2", "%", 100)
    )
    """throughput of L2 / its peak"""
    l1_throughput = Share(
        source="l1tex__throughput.avg.pct_of_peak_sustained_active",
        shown=Shown("L1, shared memory", "%", 100),
    )
    """throughput of L1 with shared memory / its peak"""
    sm_throughput = Share(
        source="sm__throughput.avg.pct_of_peak_sustained_elapsed",
        shown=Shown("pipelines of SMs", "%", 100),
    )
    """throughput of the SMs' pipelines / its peak"""
    instructions_per_cycle = Counter(
        source="sm__inst_executed.avg.per_cycle_active",
        unit="1/cycle",
        least=0,
        since=4,
        shown=Shown("instructions", "per cycle and SM"),
    )
    """instructions of warps that an SM executed per cycle at work; its peak is 4 on cards since
    Volta"""


COUNTERS = _named(Counters, Counter)

SCHEMA_VERSION = max(each.since for each in (*SWEEP, *COUNTERS))  # Version of the tables' schemas


def named(*names: str) -> list[Metric]:
    """Metrics of a sweep by their names, in the order of :data:`SWEEP`."""
    return [each for each in SWEEP if each.name in names]


def absent(metrics: Iterable[Metric]) -> dict[str, Any]:
    """Name to neutral value."""
    return {each.name: each.absent for each in metrics}
