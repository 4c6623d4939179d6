"""Sweeps with planted changes, and both sides of a comparison on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from samples import SAXPY, measurements

from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec, load_spec

SPEC = load_spec(SAXPY)
SIZES = [1000 * size for size in range(1, 19)]


def made_up(slower: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """A sweep of the tutorial's workload: most rows are steady, some noisy, some of one launch."""
    draw = np.random.default_rng(seed)
    found = measurements(SPEC, [{"n": SIZES, "dtype": ["float32", "float64"]}])
    # Those of the first sizes are all steady.
    noisy = (found["n"] > SIZES[3]) & (found.index % 4 == 1)
    scatter = np.where(noisy, 0.15, np.where(found.index % 2, 0.005, 0.002))
    drawn = [
        slower * time * np.exp(draw.normal(0, each, 9))
        for time, each in zip(found["time_ms"], scatter, strict=True)
    ]
    found["times_ms"], found["repeats"] = drawn, 9
    found["time_ms"] = [float(np.median(each)) for each in drawn]
    found["first_ms"] = 1.2 * found["time_ms"]
    slow = ((found["n"] > SIZES[3]) & (found.index % 40 == 3)).to_numpy()
    found.loc[slow, ["status", "repeats", "sm_clock_mhz"]] = ["slow", 1, np.nan]
    found["times_ms"] = [
        np.array([time]) if one else each
        for each, time, one in zip(found["times_ms"], found["time_ms"], slow, strict=True)
    ]
    return found


def steady(sweep: pd.DataFrame, most: float = 0.01) -> np.ndarray:
    """Whether a row is ok and the logarithms of its repeats scatter by at most so much: bool."""
    scatter = sweep["times_ms"].map(
        lambda times: np.log(times).std(ddof=1) if len(times) > 2 else 9
    )
    return ((sweep["status"] == "ok") & (scatter <= most)).to_numpy(bool)


def with_times(sweep: pd.DataFrame, rows: Any, factor: float) -> pd.DataFrame:
    """A copy in which all times of some rows are multiplied, measured a day later."""
    found = sweep.copy()
    index = found.index[rows]
    for name in ("time_ms", "first_ms"):
        found.loc[index, name] *= factor
    found.loc[index, "times_ms"] = found.loc[index, "times_ms"].map(lambda times: factor * times)
    found.loc[index, "measured_at"] = "2030-01-01T00:00:00+00:00"
    return found


def redrawn(sweep: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A copy whose ok rows have new repeats, log-normal with mean and scatter of their own."""
    draw = np.random.default_rng(seed)
    found = sweep.copy()
    index = found.index[found["status"] == "ok"]
    logs = found.loc[index, "times_ms"].map(np.log)
    times = [np.exp(draw.normal(each.mean(), each.std(ddof=1), len(each))) for each in logs]
    found.loc[index, "times_ms"] = pd.Series(times, index=index)
    found.loc[index, "time_ms"] = [float(np.median(each)) for each in times]
    return found


def write_sweep(folder: Path, sweep: pd.DataFrame, spec: Spec) -> Path:
    """Write a sweep as ``folder/GPU/WORKLOAD.parquet``."""
    path = folder / str(sweep["gpu"].iloc[0]) / f"{spec.workload}.parquet"
    write_table(path, sweep, measurement_schema(spec), {})
    return path
