"""Counters of the solver's launches, with a log of an H200."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from samples import ROOT

from launchwise.cuda.counted import run
from launchwise.experiment.study import Counters
from launchwise.measuring.counters import fastest_by, joined, parse
from launchwise.tables.files import read_table
from launchwise.tables.measurements import counters_schema
from launchwise.workloads.spec import Spec
from tests.support.profiled import LOG, Switch, Watched

FOLDER = ROOT / "kernels" / "tridiagonal"


def made(spec: Spec, variant: str, **changes: Any) -> dict[str, Any]:
    """A configuration with m = 10 and 64 threads."""
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    return {"variant": variant, **neutral, "m": 10, "threads": 64, "stage2": "device", **changes}


def problem(n: int, memory: str = "device") -> dict[str, Any]:
    """One float64 system."""
    return {"n": n, "dtype": "float64", "memory": memory, "batch": 1}


@pytest.fixture
def device(spec: Spec, tmp_path: Path) -> Watched:
    found = Watched(FOLDER, spec.headers, cache=tmp_path)
    found.switch, found.seen = Switch(), []
    return found


def test_only_the_launches_of_a_run_are_profiled(spec: Spec, device: Watched) -> None:
    runs = [
        {"problem": problem(1000), "configuration": made(spec, "staged")},
        {"problem": problem(1000), "configuration": made(spec, "interleaved")},
        {
            "problem": problem(1000, "pinned"),
            "configuration": made(spec, "strided", stage2="host", streams=2),
        },
        {"problem": problem(20000), "configuration": made(spec, "blockwise")},
    ]
    free = device.free_bytes
    found = run({"folder": str(FOLDER), "seed": 1, "runs": runs}, device, device.switch)
    assert [launch["symbol"] for each in found for launch in each] == device.seen
    assert device.switch.times == len(runs)
    assert [launch["kernel"] for launch in found[0]] == ["reduce", "finish", "substitute"]
    # Two streams, two launches of each stage; the host does stage 2.
    assert [launch["kernel"] for launch in found[2]] == ["reduce"] * 2 + ["substitute"] * 2
    assert found[3][0] == {
        "symbol": found[3][0]["symbol"],
        **{"kernel": "reduce", "grid_blocks": 32, "block_threads": 64},
    }
    assert device.free_bytes == free


def test_a_real_log_is_read(spec: Spec, device: Watched) -> None:
    runs = [
        {"problem": problem(1000), "configuration": made(spec, "staged")},
        {"problem": problem(20000), "configuration": made(spec, "blockwise")},
    ]
    launched = run({"folder": str(FOLDER), "seed": 1, "runs": runs}, device, device.switch)
    seen = parse(LOG.read_text())
    # The log is of the build that the CPU runs: the same names in the same order.
    (first, finish, last), (other, *_) = joined(launched, seen)
    assert (first["kernel"], finish["kernel"], last["kernel"]) == ("reduce", "finish", "substitute")
    assert (first["occupancy"], first["achieved_occupancy"]) == pytest.approx((0.2812, 0.0312))
    assert (finish["occupancy"], finish["dram_throughput"]) == pytest.approx((0.5469, 0.0011))
    assert other["grid_blocks"] == 32
    assert other["achieved_occupancy"] == pytest.approx(0.0309)


def test_counters_that_were_recorded_before_one_was_added_are_read(spec: Spec) -> None:
    path = ROOT / "data" / "recorded" / "h200" / "tridiagonal_device.counters.parquet"
    found = read_table(path, counters_schema(spec))
    assert found["instructions_per_cycle"].isna().all()
    assert found["dram_throughput"].notna().any()


def test_the_fastest_of_every_value_is_profiled(spec: Spec) -> None:
    rows = pd.DataFrame(
        [
            {**problem(n), **made(spec, "staged", threads=threads, m=m), "time_ms": time}
            for n, threads, m, time in [
                *((1000, 32, 10, 2.0), (1000, 32, 20, 1.0)),
                *((1000, 64, 10, 3.0), (2000, 64, 10, 1.0)),
            ]
        ]
    )
    chosen = fastest_by(rows, spec, Counters(by=["threads"]))
    assert chosen[["n", "threads", "m"]].to_numpy().tolist() == [
        [1000, 32, 20],
        [1000, 64, 10],
        [2000, 64, 10],
    ]
    assert set(chosen.columns) == {*spec.problem_columns, *spec.tunable_columns}
    large = fastest_by(rows, spec, Counters(by=["threads"], among={"n": [2000, 3000]}))
    assert large[["n", "threads", "m"]].to_numpy().tolist() == [[2000, 64, 10]]
