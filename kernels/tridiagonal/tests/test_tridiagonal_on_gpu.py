"""The tridiagonal workload and solver on a real GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gpu_runs import described, measured
from test_tridiagonal import FOLDER

from launchwise.gpus.profile import GpuProfile
from launchwise.workloads.space import Problem

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def profile() -> GpuProfile:
    return described(None)


@pytest.mark.parametrize("memory", ["device", "pinned", "pageable"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "batch"), [(1003, 1), (777, 1300), (10**6 + 7, 1)])
def test_drawn_configurations_are_right(
    profile: GpuProfile, tmp_path: Path, n: int, batch: int, dtype: str, memory: str
) -> None:
    problem: Problem = {"n": n, "dtype": dtype, "memory": memory, "batch": batch}
    strategy = {"kind": "random", "budget": 40}
    rows = measured(FOLDER, profile, [problem], tmp_path, strategy=strategy)
    assert len(rows) == 40
    assert {row["status"] for row in rows} <= {"ok", "slow"}, [
        (row["status"], row["reason"]) for row in rows if row["status"] not in ("ok", "slow")
    ][:3]
    eps = float(np.finfo(dtype).eps)
    assert max(row["max_error"] for row in rows) <= 10 * eps
    for row in rows:
        if row["status"] == "ok" and row["m"]:
            assert row["t1_comp_ms"] > 0
            assert row["t3_comp_ms"] > 0
