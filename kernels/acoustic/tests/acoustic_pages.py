"""Studies of the stencil's tiles with known times, for tests of its page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from tests.support.report_study import settings, study

KERNEL = Path(__file__).resolve().parents[1]
FOLDER = KERNEL / "studies" / "acoustic_tile"
PROBLEM = {"n": 256, "dtype": "float64", "order": 2}


def measured(*rows: dict[str, Any]) -> StudyData:
    """A study whose GPU ``big`` has these rows of the first problem of table 1, and no other."""
    plain = study(("big",), "acoustic_tile", FOLDER, KERNEL)
    shape = plain.sweeps["big"].iloc[0].to_dict()
    neutral = baseline(plain.spec)
    given = [{**shape, **PROBLEM, **neutral, "status": "ok", **row} for row in rows]
    parts = {"train": {"n": [512]}, "test": {"n": [256]}}
    split = {"kind": "problems", "title": "x", **parts}
    return dataclasses.replace(
        plain,
        sweeps={"big": pd.DataFrame(given)},
        settings=settings(workload="acoustic", splits={"sizes": split}),
    )


LINEAR = {"variant": "linear", "time_ms": 2.0}


def program(time_ms: float, i: int, j: int, k: int, **more: Any) -> dict[str, Any]:
    tile = {"tile_i": i, "tile_j": j, "tile_k": k}
    return {"variant": "openmp", **tile, "time_ms": time_ms, **more}
