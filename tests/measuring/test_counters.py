"""Hardware counters: what is profiled, what a log of Nsight Compute says, what is refused."""

import shutil

import numpy as np
import pytest
import yaml
from mistakes import planted
from samples import STENCIL

from launchwise.base.errors import UserError
from launchwise.cuda.counted import run
from launchwise.measuring.counters import joined, parse, read_counters
from launchwise.workloads import space
from launchwise.workloads.spec import load_spec
from tests.support.profiled import LOG, Switch, Watched


def test_a_wrong_answer_is_refused_but_of_a_variant_that_is_not_verified(tmp_path):
    folder = tmp_path / "stencil"
    shutil.copytree(STENCIL, folder)
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    spec["variants"]["column"]["verified"] = False
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    planted(folder, "stencil.cuh", "(sum / (6 * radius))", "(sum / (7 * radius))")
    device = Watched(folder, load_spec(folder).headers, cache=tmp_path)
    device.switch, device.seen = Switch(), []
    problem = {"n": 20, "dtype": "float32", "order": 2}
    neutral = space.baseline(load_spec(folder))

    def counted(**chosen):
        one = {"problem": problem, "configuration": {**neutral, **chosen}}
        return run({"folder": str(folder), "seed": 1, "runs": [one]}, device, device.switch)

    ((launch,),) = counted(variant="column", tz=2)
    # 18 x 18 columns of 9 threads.
    assert (launch["grid_blocks"], launch["block_threads"]) == (46, 64)
    with pytest.raises(UserError, match=r"linear.*off"):
        counted(variant="linear")


@pytest.mark.parametrize(
    ("share", "name", "expected"),
    [
        ("0.23", "dram_throughput", ["n/a", np.nan, 0.0011]),
        # Rounded up by the profiler.
        ("54.69", "occupancy", ["100.27", 0.2812, 1.0]),
    ],
)
def test_a_share_may_be_missing_and_is_one_at_most(share, name, expected):
    other, *shares = expected
    found = parse(LOG.read_text().replace(f'"%","{share}"', f'"%","{other}"'))[:2]
    assert [each[name] for each in found] == pytest.approx(shares, nan_ok=True)


def test_a_counter_that_is_no_share_keeps_its_value():
    line = next(line for line in LOG.read_text().splitlines() if '"%","0.23"' in line)
    old = '"dram__throughput.avg.pct_of_peak_sustained_elapsed","%","0.23"'
    new = '"sm__inst_executed.avg.per_cycle_active","inst/cycle","2.15"'
    assert old in line
    first, second = parse(LOG.read_text().replace(line, f"{line}\n{line.replace(old, new)}"))[:2]
    assert first["instructions_per_cycle"] == 2.15
    assert np.isnan(second["instructions_per_cycle"])


def test_other_launches_than_were_made_are_refused():
    seen = parse(LOG.read_text())
    launched = [[{"symbol": kernel["symbol"], "kernel": "k"} for kernel in seen]]
    assert len(joined(launched, seen)[0]) == 6
    with pytest.raises(UserError, match="recorded 5 launches that differ from the 6 that ran"):
        joined(launched, seen[:-1])
    with pytest.raises(UserError, match="recorded 6 launches that differ"):
        joined(launched, seen[::-1])
    assert parse("==ERROR== no kernels were profiled\n") == []


REFUSED = "ERR_NVGPUCTRPERM - The user does not have permission to access counters"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "Nsight Compute is not on the PATH"),
        (f'echo "==ERROR== {REFUSED}" > "$3"; exit 1', "may not read the GPU's counters"),
        ('echo "no such device" >&2; echo "[]" > "$made"; exit 1', "no such device"),
        ('echo "no such device" >&2', "no such device"),
    ],
    ids=["not installed", "no permission", "a process that fails", "one that writes nothing"],
)
def test_a_profiler_that_counts_nothing_is_told(tmp_path, monkeypatch, script, said):
    if script is not None:
        (tmp_path / "ncu").write_text(f"#!/bin/sh\nfor made; do :; done\n{script}\n")
        (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match=said):
        read_counters({}, {})
