"""Columns of sweeps and of hardware counters beside problem and configuration, each declared once.

Journal rows, tables with their units and checks, imports, the report and docs/reference/columns.md
follow from the entries: another metric is another entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

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

    # Of its values there.
    title: str
    unit: str = ""
    # What a value is multiplied by: 100 for a share in %.
    factor: float = 1.0
    # Place among what is told of each row beside its configuration and time; 0: it is not told.
    row: int = 0
    # Whether the health of a sweep shows it against time.
    history: bool = False


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A column: what was measured, or how."""

    # Of the column.
    name: str
    # For the reference; Markdown.
    meaning: str
    # Texts, whole numbers, real numbers (NaN: missing), or lists of times.
    kind: Kind = "real"
    # Of the column's values; ``1`` for a ratio, empty for what has none.
    unit: str = ""
    # Bounds of its values: at least, above, at most.
    least: float | None = None
    above: float | None = None
    most: float | None = None
    # Texts that it may hold; any where that is empty.
    one_of: tuple[str, ...] = ()
    # Value of a row in which it was not measured, and of tables older than it; of its kind's
    # emptiness where that is None.
    neutral: Any = None
    # Schema version of tables from which on they hold it.
    since: int = OLDEST
    # ``row``: the measuring process may tell it of a row. ``always``: every row has it.
    # ``table``: it is computed when journal rows become a table.
    made: Literal["row", "always", "table"] = "row"
    # Columns, and ``bytes`` and ``flop`` of the problem (NaN: unknown), to its values; all
    # float64 of shape (rows,).
    formula: Callable[[Mapping[str, np.ndarray]], np.ndarray] | None = None
    # Where the report shows it; None for columns that it reads by name.
    shown: Shown | None = None

    @property
    def absent(self) -> Any:
        """Its neutral value."""
        return _NEUTRAL[self.kind] if self.neutral is None else self.neutral


@dataclass(frozen=True, kw_only=True)
class Counter(Metric):
    """A real number that Nsight Compute counts."""

    # Its name there.
    source: str
    # What its value there is multiplied by.
    scale: float = 1.0
    # Whether it is a share of a peak of the card that may bound a kernel.
    bounds: bool = False


@dataclass(frozen=True, kw_only=True)
class Share(Counter):
    """A counter in percent, as a share between 0 and 1."""

    unit: str = "1"
    least: float | None = 0.0
    most: float | None = 1.0
    scale: float = 0.01


KEYS = (
    Metric(name="gpu", kind="text", made="always", meaning="name of the GPU in the settings"),
    Metric(name="workload", kind="text", made="always", meaning="name of the workload"),
)
"""Columns of a sweep before problem and configuration."""

RESULTS = (
    Metric(
        name="status",
        kind="text",
        made="always",
        one_of=STATUSES,
        meaning="`ok`; `slow` (stopped early: the time of one launch); `unverified`; `wrong`; "
        "`failed`; `timeout`; `out_of_memory`",
        shown=Shown("status", row=1),
    ),
    Metric(name="reason", kind="text", meaning="why the status is not `ok`"),
    Metric(
        name="time_ms",
        unit="ms",
        above=0,
        meaning="median of `times_ms`; the first launch is never in it, except in a `slow` row, "
        "which has the shorter of two launches",
    ),
    Metric(name="times_ms", kind="times", unit="ms", meaning="all repeats"),
    Metric(
        name="repeats",
        kind="whole",
        made="table",
        meaning="number of repeats",
        shown=Shown("repeats", row=3),
    ),
    Metric(
        name="spread_ms",
        unit="ms",
        least=0,
        made="table",
        meaning="robust spread of the repeats: median absolute deviation times 1.4826",
    ),
    Metric(
        name="relative_error",
        unit="1",
        least=0,
        made="table",
        meaning="relative standard error of the median",
        shown=Shown("standard error", "% of the time at most", 100, row=4),
    ),
    Metric(
        name="outlier_repeats",
        kind="whole",
        made="table",
        meaning="repeats outside the Tukey limits; none is deleted",
    ),
    Metric(
        name="timer",
        kind="text",
        one_of=("", "events", "graph", "restored", "host"),
        meaning="`events`: CUDA events around each launch; `graph`: around a replayed graph of "
        "several; `restored`: around each launch, arrays that it changes put back before; `host`: "
        "the host's clock, for what it drives",
    ),
    Metric(name="launches_per_repeat", kind="whole", meaning="launches in one repeat"),
    Metric(name="first_ms", unit="ms", above=0, meaning="first launch"),
    Metric(
        name="l2",
        kind="text",
        one_of=("", "cold", "warm"),
        meaning="`cold` or `warm`: L2 before a launch",
    ),
    Metric(
        name="max_error",
        unit="1",
        least=0,
        meaning="largest deviation from the float64 reference",
    ),
    Metric(
        name="tolerance",
        unit="1",
        least=0,
        meaning="largest deviation that is allowed; only an `unverified` row may have a time and a "
        "larger one",
    ),
)
"""Columns of a sweep before the workload's stages and findings."""

CIRCUMSTANCES = (
    Metric(
        name="registers",
        kind="whole",
        meaning="registers per thread of the main kernel",
        shown=Shown("registers", "per thread", row=6),
    ),
    Metric(name="spill_bytes", kind="whole", unit="B", meaning="spilled registers per thread"),
    Metric(
        name="shared_bytes",
        kind="whole",
        unit="B",
        meaning="shared memory per block of the main kernel",
        shown=Shown("shared memory", "B per block", row=7),
    ),
    Metric(
        name="occupancy",
        unit="1",
        least=0,
        most=1,
        meaning="warps that an SM can hold of the main kernel / warps that it can hold at most",
        shown=Shown("occupancy", "%", 100, row=8),
    ),
    Metric(
        name="bandwidth_gbs",
        unit="GB/s",
        above=0,
        made="table",
        meaning="the problem's bytes / time; the report compares it with the ceilings in the GPU's "
        "profile",
        formula=lambda row: row["bytes"] / (row["time_ms"] / 1e3) / 1e9,
    ),
    Metric(
        name="flop_rate_gflops",
        unit="GFLOP/s",
        least=0,
        made="table",
        meaning="the problem's FLOP / time",
        formula=lambda row: row["flop"] / (row["time_ms"] / 1e3) / 1e9,
    ),
    Metric(
        name="sm_clock_mhz",
        unit="MHz",
        least=0,
        meaning="mean clock of the SMs",
        shown=Shown("SM clock", "MHz", row=5, history=True),
    ),
    Metric(name="memory_clock_mhz", unit="MHz", least=0, meaning="mean clock of the memory"),
    Metric(
        name="temperature_c",
        unit="degC",
        meaning="mean temperature",
        shown=Shown("temperature", "°C", history=True),
    ),
    Metric(
        name="power_w",
        unit="W",
        least=0,
        meaning="mean power",
        shown=Shown("power", "W", history=True),
    ),
    Metric(
        name="energy_j",
        unit="J",
        above=0,
        made="table",
        meaning="energy per launch",
        shown=Shown("energy", "J per run", row=9),
    ),
    Metric(
        name="throttle",
        kind="text",
        neutral=UNKNOWN,
        meaning="reasons for throttling, joined by `+`; `unknown` if the card cannot be queried",
    ),
    Metric(
        name="control_ratio",
        unit="1",
        above=0,
        made="table",
        meaning="reference time after the row / first reference time on that card",
        shown=Shown("reference time / first reference time", history=True),
    ),
    Metric(
        name="attempt",
        kind="whole",
        least=1,
        neutral=1,
        meaning="2 if a first measurement was in doubt and repeated",
    ),
)
"""Columns of a sweep after them."""

ORIGIN = (
    Metric(name="card", kind="text", made="always", meaning="mark of the physical card"),
    Metric(name="driver", kind="text", made="always", meaning="version of the driver"),
    Metric(name="toolkit", kind="text", made="always", meaning="version of the CUDA toolkit"),
    Metric(
        name="backend",
        kind="text",
        made="always",
        meaning="what launched the kernels; `imported` for sweeps of others",
    ),
    Metric(name="commit", kind="text", made="always", meaning="commit of this project"),
    Metric(name="seed", kind="whole", meaning="seed of the inputs"),
    Metric(name="measured_at", kind="text", made="always", meaning="time of the measurement, UTC"),
)
"""Columns of provenance, at the end of a sweep."""

SWEEP: tuple[Metric, ...] = (*KEYS, *RESULTS, *CIRCUMSTANCES, *ORIGIN)

COUNTERS: tuple[Counter, ...] = (
    Share(
        name="occupancy",
        source="sm__maximum_warps_per_active_cycle_pct",
        meaning="warps that registers, shared memory and block size leave room for / warps that an "
        "SM holds at most",
    ),
    Share(
        name="achieved_occupancy",
        source="sm__warps_active.avg.pct_of_peak_sustained_active",
        meaning="mean of the active warps on SMs at work / warps that an SM holds at most",
    ),
    Share(
        name="dram_throughput",
        source="dram__throughput.avg.pct_of_peak_sustained_elapsed",
        meaning="throughput of the memory / its peak",
        bounds=True,
        shown=Shown("memory", "%", 100),
    ),
    Share(
        name="l2_throughput",
        source="lts__throughput.avg.pct_of_peak_sustained_elapsed",
        meaning="throughput of L2 / its peak",
        bounds=True,
        shown=Shown("L2", "%", 100),
    ),
    Share(
        name="l1_throughput",
        source="l1tex__throughput.avg.pct_of_peak_sustained_active",
        meaning="throughput of L1 with shared memory / its peak",
        bounds=True,
        shown=Shown("L1, shared memory", "%", 100),
    ),
    Share(
        name="sm_throughput",
        source="sm__throughput.avg.pct_of_peak_sustained_elapsed",
        meaning="throughput of the SMs' pipelines / its peak",
        bounds=True,
        shown=Shown("pipelines of SMs", "%", 100),
    ),
    Counter(
        name="instructions_per_cycle",
        source="sm__inst_executed.avg.per_cycle_active",
        unit="1/cycle",
        least=0,
        since=4,
        meaning="instructions of warps that an SM executed per cycle at work; its peak is 4 on "
        "cards since Volta",
        shown=Shown("instructions", "per cycle and SM"),
    ),
)
"""Columns of hardware counters."""

SCHEMA_VERSION = max(each.since for each in (*SWEEP, *COUNTERS))  # Version of the tables' schemas


def named(*names: str) -> list[Metric]:
    """Metrics of a sweep by their names, in the order of :data:`SWEEP`."""
    return [each for each in SWEEP if each.name in names]


def absent(metrics: Iterable[Metric]) -> dict[str, Any]:
    """Name to neutral value."""
    return {each.name: each.absent for each in metrics}
