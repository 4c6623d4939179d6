"""The describe stage on a real GPU: are the ceilings in an order that can be? Run with -m gpu."""

import json
import os
import subprocess
import sys
import time

import pytest
from gpu_runs import described
from samples import ROOT

from launchwise.gpus.profile import Ceilings
from launchwise.measuring.cards import cards

pytestmark = [pytest.mark.gpu, pytest.mark.times]


@pytest.fixture(scope="session")
def profile():
    """The first card, described by the real stage."""
    begin = time.perf_counter()
    found = described(None)
    print(f"described in {time.perf_counter() - begin:.1f} s")
    return found


@pytest.fixture(scope="session")
def ceilings(profile):
    """Its ceilings; NaN, which is in no order, where there is none."""
    for name, value in profile.ceilings.model_dump().items():
        print(f"{name:24} {value}")
    found = profile.ceilings.model_dump()
    return {name: float("nan") if found[name] is None else found[name] for name in found}


def test_everything_is_measured(profile):
    if profile.compute_capability < (8, 0):
        pytest.skip("older cards lack types of tensor cores")
    found = profile.ceilings.model_dump()
    assert [name for name in Ceilings.model_fields if found[name] is None] == []


def test_memory_is_slower_the_farther_it_is(ceilings):
    near = [ceilings["l1_latency_ns"], ceilings["shared_latency_ns"]]
    # Both are parts of one memory in an SM; either may be a little ahead.
    assert max(near) < 2 * min(near)
    assert min(near) > 5
    assert 2 * max(near) < ceilings["l2_latency_ns"]
    assert 1.3 * ceilings["l2_latency_ns"] < ceilings["dram_latency_ns"] < 3000


def test_arithmetic_waits_some_cycles(profile, ceilings):
    cycle_ns = 1e3 / profile.clock_mhz
    assert 3.5 * cycle_ns < ceilings["float32_latency_ns"] < 12 * cycle_ns
    assert ceilings["float64_latency_ns"] > 0.95 * ceilings["float32_latency_ns"]
    for name in ("float32", "float64"):
        # A division is some dependent multiply-adds and more.
        assert ceilings[f"{name}_division_ns"] > 4 * ceilings[f"{name}_latency_ns"]
    assert ceilings["float64_division_ns"] > ceilings["float32_division_ns"]
    assert 3 * cycle_ns < ceilings["barrier_ns"] < 200 * cycle_ns


def test_rates_are_in_an_order_that_can_be(profile, ceilings):
    assert ceilings["l2_bandwidth_gbs"] > ceilings["copy_bandwidth_gbs"]
    # An SM draws at most 64 bytes from L2 in a cycle.
    assert ceilings["l2_bandwidth_gbs"] < 1.05 * 64 * profile.sms * profile.clock_mhz / 1e3
    if profile.compute_capability >= (8, 0):
        # Cards for games multiply tf32 no faster than float32.
        assert ceilings["tf32_gflops"] > 0.8 * ceilings["float32_gflops"]
        assert ceilings["float16_gflops"] > ceilings["float32_gflops"]
        assert ceilings["float16_gflops"] > 1.5 * ceilings["tf32_gflops"]
        assert 0.8 < ceilings["bfloat16_gflops"] / ceilings["float16_gflops"] < 1.25


def test_the_host_costs_what_it_may(ceilings):
    for name in ("to_device", "to_host"):
        # Where the host is slow to copy, pageable memory loses; it never wins by more than noise.
        assert ceilings[f"{name}_gbs"] > 0.95 * ceilings[f"pageable_{name}_gbs"]
        assert 1 < ceilings[f"{name}_gbs"] < 1000
    assert 0.3 < ceilings["graph_launch_us"] < ceilings["host_synchronize_us"] < 200
    assert ceilings["graph_launch_us"] < 1.1 * ceilings["launch_overhead_us"]
    assert 0.3 < ceilings["copy_overhead_us"] < 100
    assert 0.3 < ceilings["stream_creation_us"] < 1000
    assert 1 < ceilings["host_solve_ns"] < 500


def test_two_descriptions_agree(ceilings):
    again = described(None).ceilings.model_dump()
    for name in Ceilings.model_fields:
        if name.endswith("_ns") and name != "host_solve_ns":
            print(name, again[name] / ceilings[name])
            assert 0.9 < again[name] / ceilings[name] < 1.1, name


def test_a_slice_is_described_with_its_own_sms(profile, ceilings):
    if profile.compute_capability < (9, 0):
        pytest.skip("green contexts of 16 SMs need a larger card")
    part = described(16)
    found = part.ceilings.model_dump()
    print({name: found[name] for name in found})
    assert [name for name in Ceilings.model_fields if found[name] is None] == []
    share = part.sms / profile.sms
    assert 0.7 * share < found["float16_gflops"] / ceilings["float16_gflops"] < 1.5 * share
    assert found["l2_bandwidth_gbs"] < 0.6 * ceilings["l2_bandwidth_gbs"]
    assert 0.8 < found["l1_latency_ns"] / ceilings["l1_latency_ns"] < 1.25


ASTRAY = """
import runpy
from launchwise.cuda import ceilings_timing
usual = ceilings_timing.links
ceilings_timing.links = lambda base, *more: usual(base + (1 << 44), *more)
runpy.run_module("launchwise.cuda.ceilings", run_name="__main__")
"""


def test_an_illegal_address_ends_it_and_is_told():
    present = cards()
    job = {"name": "test", "card": present[0].mark, "driver": "", "slice_sms": None}
    done = subprocess.run(
        [sys.executable, "-c", ASTRAY],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": present[0].uuid},
        check=False,
    )
    print(done.stderr)
    assert done.returncode == 1
    assert "the device is lost" in done.stderr.splitlines()[-1]
    assert "illegal" in done.stderr.splitlines()[-1]
