"""Where a roofline formula errs: by what bounds a kernel, and by variant.

    python benchmarks/roofline_formula.py benchmarks/results/roofline_formula.json

The published formula of Granger's study, max(FLOP / peak, bytes / bandwidth) + 5 us with the
figures of the datasheets, for the fastest recorded row of every variant and problem of the
workloads in ``kernels/``, on the whole recorded cards. FLOP and least bytes come from
``spec.yaml``, what bounds a row from the cost model. Rows of a single launch do not count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness.command_line import arguments, provenance
from harness.projects import ROOT

from launchwise.base.storage import write_json
from launchwise.base.vectors import Columns
from launchwise.gpus.datasheets import Datasheet, read_cards
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.analytical import CostModel
from launchwise.learning.row_arrays import arrays
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import fastest_rows
from launchwise.workloads.spec import Spec, load_spec

GPUS = ("h100", "h200")
WORKLOADS = ("acoustic", "granger", "sentiment", "tridiagonal")
SMALLEST = ("granger",)
LAUNCH_US = 5.0
"""Overhead of a launch in the source, us."""

NEAR = 1.25
"""Factor within which a prediction is near."""

MEANING = {
    "dram": "device memory",
    "l2": "L2",
    "l1": "L1",
    "shared": "shared memory",
    "instructions": "instructions",
    "arithmetic": "arithmetic",
    "waiting": "a chain of waits",
    "launches": "launches",
    "transfers": "copies over the bus",
    "host": "the host",
}


def formula_ms(rows: pd.DataFrame, spec: Spec, card: Datasheet) -> np.ndarray:
    """The published formula: float64, ms, shape (rows,)."""
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    precision = columns.value(spec.work.precision)
    peak = np.array([card.figures[f"{each}_gflops"] for each in precision], dtype=float)
    flop_ms = columns.value(spec.work.flop).astype(float) / peak / 1e6
    moved = columns.value(spec.work.bytes).astype(float)
    bytes_ms = moved / card.figures["memory_bandwidth_gbs"] / 1e6
    return np.maximum(flop_ms, bytes_ms) + LAUNCH_US / 1e3


def judged(workload: str, gpu: str, card: Datasheet) -> pd.DataFrame:
    """The fastest row of every variant and problem: ``ratio`` (measured / formula), ``bound``."""
    spec = load_spec(ROOT / "kernels" / workload)
    profile: GpuProfile = read_profile(_recorded(gpu) / "profile.json", gpu)
    rows = read_table(_recorded(gpu) / f"{workload}.parquet", measurement_schema(spec))
    rows = rows[rows["status"] == "ok"]
    best = fastest_rows(rows, [*spec.problem_columns, "variant"], spec).reset_index(drop=True)
    estimate = CostModel(spec, {gpu: profile}).estimate(best)
    return pd.DataFrame(
        {
            "gpu": gpu,
            "workload": workload,
            "variant": best["variant"],
            "bound": estimate.bound_by(),
            "ratio": best["time_ms"] / formula_ms(best, spec, card),
        }
    )


def _recorded(gpu: str) -> Path:
    return ROOT / "data" / "recorded" / gpu


def spread(rows: pd.DataFrame) -> dict[str, Any]:
    """How far times are from the formula: quantiles of the ratio, and how many are near."""
    ratio = rows["ratio"].to_numpy()
    low, middle, high = np.quantile(ratio, [0.1, 0.5, 0.9])
    near = np.mean((ratio <= NEAR) & (ratio >= 1 / NEAR))
    faster = np.mean(ratio < 1 / NEAR)
    return {
        "rows": len(ratio),
        "tenth": round(float(low), 3),
        "median": round(float(middle), 3),
        "nine_tenths": round(float(high), 3),
        "near_share": round(float(near), 3),
        "faster_share": round(float(faster), 3),
    }


def main() -> None:
    """Judge the formula and write the file."""
    given = arguments(__doc__ or "").parse_args()
    cards = read_cards()
    workloads = SMALLEST if given.smallest else WORKLOADS
    rows = pd.concat([judged(one, gpu, cards[gpu]) for one in workloads for gpu in GPUS])
    by_bound = [
        {"bound": bound, "meaning": MEANING[str(bound)], **spread(part)}
        for bound, part in rows.groupby("bound")
    ]
    by_variant = [
        {**dict(zip(("workload", "variant", "bound"), key, strict=True)), **spread(part)}
        for key, part in rows.groupby(["workload", "variant", "bound"])
    ]
    write_json(
        given.output,
        {
            **provenance(),
            "near": NEAR,
            "launch_us": LAUNCH_US,
            "all": spread(rows),
            "by_bound": sorted(by_bound, key=lambda each: -each["rows"]),
            "by_variant": by_variant,
        },
    )


if __name__ == "__main__":
    main()
