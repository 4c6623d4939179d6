"""Hardware counters: what is profiled, what a log of Nsight Compute says, what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.cuda.counted import run
from launchwise.experiment.study import Counters
from launchwise.measuring.counters import fastest_by, joined, parse, read_counters
from launchwise.tables.files import read_table
from launchwise.tables.measurements import counters_schema
from launchwise.workloads.spec import Spec, load_spec
from tests.support.host_device import HostDevice

FOLDER = ROOT / "kernels" / "tridiagonal"
LOG = Path(__file__).resolve().parents[1] / "support" / "logs" / "ncu_h200.csv"
"""Of an H200: a staged run of 1 000 rows and a blockwise one of 20 000, both with m = 10."""


@pytest.fixture(scope="module")
def spec() -> Spec:
    """The tridiagonal workload's."""
    return load_spec(FOLDER)


def made(spec: Spec, variant: str, **changes: Any) -> dict[str, Any]:
    """A configuration with m = 10 and 64 threads."""
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    return {"variant": variant, **neutral, "m": 10, "threads": 64, "stage2": "device", **changes}


def problem(n: int, memory: str = "device") -> dict[str, Any]:
    """One float64 system."""
    return {"n": n, "dtype": "float64", "memory": memory, "batch": 1}


class Switch:
    """A profiler that counts how often it is on."""

    def __init__(self) -> None:
        self.on = False
        self.times = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        assert not self.on
        self.on, self.times = True, self.times + 1
        yield
        self.on = False


class Watched(HostDevice):
    """Counts what is launched while the profiler is on, as Nsight Compute would."""

    switch: Switch
    seen: list[str]

    def launch(self, launch: Any, stream: Any = None) -> None:
        """Launch, and see it."""
        if self.switch.on:
            self.seen.append(launch.build.symbol(launch.kernel))
        super().launch(launch, stream)


@pytest.fixture
def device(spec: Spec, tmp_path: Path) -> Watched:
    """The CPU under a profiler."""
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


def test_a_wrong_answer_is_refused_but_of_a_variant_that_is_not_verified(tmp_path: Path) -> None:
    folder = tmp_path / "granger"
    shutil.copytree(FOLDER.parent / "granger", folder)
    # Regressions explain another series than the reference's.
    path = folder / "matrices.cuh"
    text = path.read_text()
    assert text.count("return m == 1 ? 0 : 1") == 1
    path.write_text(text.replace("return m == 1 ? 0 : 1", "return m == 1 ? 1 : 0"))
    spec = load_spec(folder)
    device = Watched(folder, spec.headers, cache=tmp_path)
    device.switch, device.seen = Switch(), []
    fits = {"county": 5, "countx": 2, "rows": 32, "cols": 4, "dtype": "float32"}

    def counted(variant: str) -> list[list[dict[str, Any]]]:
        one = {"problem": fits, "configuration": {"variant": variant, "threads": 128}}
        return run({"folder": str(folder), "seed": 1, "runs": [one]}, device, device.switch)

    ((launch,),) = counted("published")
    assert (launch["grid_blocks"], launch["block_threads"]) == (25, 1024)
    with pytest.raises(UserError, match=r"no_duplicates.*coefficients off by"):
        counted("no_duplicates")


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


def test_what_a_card_cannot_count_is_missing() -> None:
    text = LOG.read_text().replace('"%","0.23"', '"%","n/a"')
    first, second = parse(text)[:2]
    assert np.isnan(first["dram_throughput"])
    assert second["dram_throughput"] == pytest.approx(0.0011)


def test_a_share_that_was_rounded_up_is_one() -> None:
    first, second = parse(LOG.read_text().replace('"%","54.69"', '"%","100.27"'))[:2]
    assert (first["occupancy"], second["occupancy"]) == (pytest.approx(0.2812), 1.0)


def test_a_counter_that_is_no_share_keeps_its_value() -> None:
    line = next(line for line in LOG.read_text().splitlines() if '"%","0.23"' in line)
    old = '"dram__throughput.avg.pct_of_peak_sustained_elapsed","%","0.23"'
    new = '"sm__inst_executed.avg.per_cycle_active","inst/cycle","2.15"'
    assert old in line
    first, second = parse(LOG.read_text().replace(line, f"{line}\n{line.replace(old, new)}"))[:2]
    assert first["instructions_per_cycle"] == 2.15
    assert np.isnan(second["instructions_per_cycle"])


def test_counters_that_were_recorded_before_one_was_added_are_read(spec: Spec) -> None:
    path = ROOT / "data" / "recorded" / "h200" / "tridiagonal_device.counters.parquet"
    found = read_table(path, counters_schema(spec))
    assert found["instructions_per_cycle"].isna().all()
    assert found["dram_throughput"].notna().any()


def test_other_launches_than_were_made_are_refused() -> None:
    seen = parse(LOG.read_text())
    launched = [[{"symbol": kernel["symbol"], "kernel": "k"} for kernel in seen]]
    assert len(joined(launched, seen)[0]) == 6
    with pytest.raises(UserError, match="recorded 5 launches that differ from the 6 that ran"):
        joined(launched, seen[:-1])
    with pytest.raises(UserError, match="recorded 6 launches that differ"):
        joined(launched, seen[::-1])
    assert parse("==ERROR== no kernels were profiled\n") == []


def test_a_machine_without_nsight_compute_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="Nsight Compute is not on the PATH"):
        read_counters({}, {})


def test_a_profiler_that_may_not_count_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "ncu"
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters"
    script.write_text(f'#!/bin/sh\necho "{text}" > "$3"\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match="may not read the GPU's counters"):
        read_counters({}, {})


@pytest.mark.parametrize("end", ['echo "[]" > "$made"; exit 1', "exit 0"])
def test_a_profiled_process_that_fails_or_writes_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    script = tmp_path / "ncu"
    script.write_text(f'#!/bin/sh\nfor made; do :; done\necho "no such device" >&2\n{end}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match="no such device"):
        read_counters({}, {})


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
