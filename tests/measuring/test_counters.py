"""Hardware counters: what is profiled, what a log of Nsight Compute says, what is refused."""

import shutil

import numpy as np
import pytest
import yaml
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
    path = folder / "stencil.cuh"
    text = path.read_text()
    assert text.count("(sum / (6 * radius))") == 1
    path.write_text(text.replace("(sum / (6 * radius))", "(sum / (7 * radius))"))
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


def test_what_a_card_cannot_count_is_missing():
    text = LOG.read_text().replace('"%","0.23"', '"%","n/a"')
    first, second = parse(text)[:2]
    assert np.isnan(first["dram_throughput"])
    assert second["dram_throughput"] == pytest.approx(0.0011)


def test_a_share_that_was_rounded_up_is_one():
    first, second = parse(LOG.read_text().replace('"%","54.69"', '"%","100.27"'))[:2]
    assert (first["occupancy"], second["occupancy"]) == (pytest.approx(0.2812), 1.0)


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


def test_a_machine_without_nsight_compute_is_told(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UserError, match="Nsight Compute is not on the PATH"):
        read_counters({}, {})


def test_a_profiler_that_may_not_count_is_told(tmp_path, monkeypatch):
    script = tmp_path / "ncu"
    text = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters"
    script.write_text(f'#!/bin/sh\necho "{text}" > "$3"\nexit 1\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match="may not read the GPU's counters"):
        read_counters({}, {})


@pytest.mark.parametrize("end", ['echo "[]" > "$made"; exit 1', "exit 0"])
def test_a_profiled_process_that_fails_or_writes_nothing_is_told(tmp_path, monkeypatch, end):
    script = tmp_path / "ncu"
    script.write_text(f'#!/bin/sh\nfor made; do :; done\necho "no such device" >&2\n{end}\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UserError, match="no such device"):
        read_counters({}, {})
