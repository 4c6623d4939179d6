"""Core-seconds of a fixed work like that of the main job: trees, tables, plain Python, arrays.

    python benchmarks/harness/calibration.py

Prints the core-seconds of one round, about 1, after a warm-up. A machine that is slow today, or
shared, is as slow for this work as for the main job that runs beside it.
"""

from __future__ import annotations

import time

import lightgbm
import numpy as np
import pandas as pd

TREES = {
    **{"objective": "regression", "num_leaves": 63, "num_threads": 1},
    **{"deterministic": True, "force_col_wise": True, "verbosity": -1},
}


def trees(rng: np.random.Generator, size: float) -> None:
    """Boosted trees, fitted and asked."""
    rows = rng.random((int(12_000 * size), 30))
    data = lightgbm.Dataset(rows, rows[:, 0] * rows[:, 1] + rows[:, 2], params={"verbosity": -1})
    lightgbm.train(TREES, data, 60).predict(rows, num_threads=1)


def tables(rng: np.random.Generator, size: float) -> None:
    """Least value of each group beside its rows, in order."""
    count = int(60_000 * size)
    columns = {"a": rng.integers(0, 300, count), "b": rng.integers(0, 40, count)}
    table = pd.DataFrame({**columns, "c": rng.random(count)})
    for _ in range(6):
        least = table.groupby(["a", "b"], sort=False)["c"].min().rename("least").reset_index()
        least.merge(table, on=["a", "b"]).sort_values(["a", "c"])


def plain(size: float) -> None:
    """Sums in a dictionary."""
    sums: dict[tuple[int, int], int] = {}
    for number in range(int(400_000 * size)):
        key = number % 997, number % 13
        sums[key] = sums.get(key, 0) + number


def arrays(rng: np.random.Generator, size: float) -> None:
    """Kernels of a Gaussian process."""
    points = rng.random((int(900 * size), 60))
    for _ in range(12):
        np.exp(-np.sqrt(np.maximum(points @ points.T, 0)))


def core_seconds(size: float = 1.0) -> float:
    """Core-seconds of one round; ``size`` scales its rows."""
    rng = np.random.default_rng(0)
    began = time.process_time()
    trees(rng, size)
    tables(rng, size)
    plain(size)
    arrays(rng, size)
    return time.process_time() - began


if __name__ == "__main__":
    core_seconds(0.05)
    print(f"{core_seconds():.3f}")
