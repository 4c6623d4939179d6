"""Ceilings of a GPU, on a made-up device: chases, the arithmetic of benchmarks, what fails."""

import math
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from made_up_device import (
    COPY_US,
    DRAM_NS,
    L2_NS,
    LAUNCH_US,
    PAGEABLE_SHARE,
    PER_GRAPH_NODE_US,
    SOLVE_NS,
    STEP_NS,
    STREAM_US,
    TO_DEVICE_GBS,
    TO_HOST_GBS,
    DriverError,
    MadeUpDevice,
    Memory,
)

from launchwise.base.errors import UserError
from launchwise.cuda import ceilings, ceilings_timing
from launchwise.cuda.ceilings import REFUSALS, attempted, measured_ceilings, translation_unit
from launchwise.cuda.ceilings_timing import Kernels, cycle, links, step_ns
from launchwise.cuda.parameters import occupancy
from launchwise.measuring.measure import LaunchFailed, OutOfMemory


@pytest.fixture
def device(monkeypatch):
    """A made-up device, whose clock is the host's, too."""
    found = MadeUpDevice()
    clock = SimpleNamespace(perf_counter=lambda: found.clock_ms / 1e3)
    monkeypatch.setattr(ceilings, "time", clock)
    monkeypatch.setattr(ceilings, "COPY_BYTES", 1 << 22)

    def gtsv(a, b, c, d, *overwrite):
        assert overwrite == (True,) * 4
        assert len(a) == len(c) == len(b) - 1
        assert np.all(np.abs(b[1:-1]) > np.abs(a[:-1]) + np.abs(c[1:]))
        assert np.all(np.isfinite(d))
        found.spend_us(len(b) * SOLVE_NS / 1e3)
        d[:] = np.nan  # As LAPACK does: the next system must be another copy.

    monkeypatch.setattr("scipy.linalg.get_lapack_funcs", lambda names, dtype: (gtsv,))
    return found


def measured(device, capability=(9, 0)):
    """The ceilings that the benchmarks find; the device stands for its module, too."""
    return measured_ceilings(device, device, capability, DriverError)


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 4099])
def test_a_random_cycle_meets_every_place_before_it_closes(count):
    after = cycle(count, np.random.default_rng(count))
    at, seen = 0, set()
    for _ in range(count):
        seen.add(at)
        at = int(after[at])
    assert at == 0
    assert seen == set(range(count))


def test_a_cycle_is_in_no_order_that_a_cache_could_guess():
    after = cycle(10_000, np.random.default_rng(1))
    strides = after - np.arange(10_000)
    assert np.mean(np.abs(strides) < 100) < 0.05
    assert len(np.unique(strides)) > 3000


def test_linked_lines_are_addresses_of_one_another():
    base, lines = 7 << 40, 500
    words = links(base, lines, np.random.default_rng(1))
    assert words.dtype == np.uint64
    assert words.nbytes == lines * 128
    at, seen = base, set()
    for _ in range(lines):
        assert (at - base) % 128 == 0
        seen.add(at)
        at = int(words[(at - base) // 8])
    assert at == base
    assert len(seen) == lines


@pytest.mark.parametrize("steps", [2, 1000, 1001])
def test_what_a_launch_costs_falls_out_of_the_time_of_a_step(steps):
    full = [0.008 + steps * 250e-6] * 5
    half = [0.008 + (steps // 2) * 250e-6] * 5
    assert step_ns(full, half, steps) == pytest.approx(250)
    full[3] += 10  # One run that was disturbed.
    assert step_ns(full, half, steps) == pytest.approx(250)


def test_benchmarks_find_what_a_device_is_made_with(device):
    found = measured(device)
    expected = {
        "launch_overhead_us": LAUNCH_US,
        "dram_latency_ns": DRAM_NS,
        "l2_latency_ns": L2_NS,
        "l1_latency_ns": STEP_NS["chase_l1"],
        "shared_latency_ns": STEP_NS["chase_shared"],
        "float32_latency_ns": STEP_NS["chain_float32"],
        "float64_latency_ns": STEP_NS["chain_float64"],
        "float32_division_ns": STEP_NS["divide_float32"],
        "float64_division_ns": STEP_NS["divide_float64"],
        "barrier_ns": STEP_NS["wait_for_block"],
        "graph_launch_us": PER_GRAPH_NODE_US,
        "host_synchronize_us": LAUNCH_US,
        "to_device_gbs": TO_DEVICE_GBS,
        "to_host_gbs": TO_HOST_GBS,
        "pageable_to_device_gbs": TO_DEVICE_GBS * PAGEABLE_SHARE,
        "pageable_to_host_gbs": TO_HOST_GBS * PAGEABLE_SHARE,
        "stream_creation_us": STREAM_US,
        "host_solve_ns": SOLVE_NS,
    }
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected)
    assert found.copy_overhead_us == pytest.approx(COPY_US, rel=1e-3)
    assert device.launched["wait_for_block"] == (1, 256)
    assert not device.held


def test_rates_count_what_the_kernels_do(device):
    found = measured(device).model_dump()
    source = translation_unit()
    defined = {
        name: int(count) for name, count in re.findall(r"#define (\w+) (\d+)$", source, re.M)
    }
    steps = defined["CHAINS"] * defined["STEPS"]

    def threads(name):
        blocks, width = device.launched[name]
        assert blocks % device.sms == 0
        return blocks * width

    # In a millisecond: a rate of 1e9 a second is 1e6 of each.
    for name in ("float32", "float64"):
        flop = 2 * steps * threads(f"multiply_add_{name}")
        assert found[f"{name}_gflops"] == pytest.approx(flop / 1e6)
    for name, depth in {"tf32": 8, "float16": 16, "bfloat16": 16}.items():
        flop = 2 * 16 * 8 * depth * steps * threads(f"multiply_matrices_{name}") / 32
        assert found[f"{name}_gflops"] == pytest.approx(flop / 1e6)
    read = 16 * ceilings_timing.L2_READS * threads("read_words")
    assert found["l2_bandwidth_gbs"] == pytest.approx(read / 1e6)
    copied = 64 * threads("copy_words")
    assert found["copy_bandwidth_gbs"] == pytest.approx(2 * copied / 1e6)
    assert ceilings_timing.L2_READS % defined["IN_FLIGHT"] == 0


@pytest.mark.parametrize("l2_bytes", [4 << 20, 40 << 20, 62_914_560, 126 << 20])
def test_reads_from_l2_stay_in_a_part_of_it_and_are_a_power_of_two(l2_bytes):
    size = ceilings_timing.l2_bytes_read(l2_bytes)
    assert l2_bytes / 6 < size <= l2_bytes / 3
    assert size.bit_count() == 1


@pytest.mark.parametrize(
    ("capability", "missing"),
    [
        ((7, 0), {"tf32_gflops", "float16_gflops", "bfloat16_gflops"}),
        ((7, 5), {"tf32_gflops", "bfloat16_gflops"}),
        ((8, 0), set()),
        ((12, 0), set()),
    ],
)
def test_every_ceiling_is_measured_but_types_that_the_architecture_lacks(
    device, capability, missing, capsys
):
    found = measured(device, capability).model_dump()
    assert {name for name, value in found.items() if value is None} == missing
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error",
    [
        DriverError("cuModuleGetFunction failed:\nnamed symbol not found"),
        LaunchFailed("refused", fatal=False),
        OutOfMemory("0.25 GB cannot be allocated"),
        AttributeError("no such attribute"),
    ],
)
def test_a_benchmark_that_cannot_run_leaves_a_line_and_the_rest_goes_on(device, error, capsys):
    device.broken["chase_l1"] = error
    found = measured(device).model_dump()
    assert [name for name, value in found.items() if value is None] == ["l1_latency_ns"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"l1_latency_ns was not measured: {type(error).__name__}: ")
    assert str(error).split()[-1] in line
    assert not device.held


def test_a_host_without_scipy_has_no_time_of_its_solutions(device, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    found = measured(device)
    assert found.host_solve_ns is None
    assert found.graph_launch_us is not None
    assert "scipy" in capsys.readouterr().err


def test_a_mistake_is_no_refusal(device):
    device.broken["chase_l1"] = TypeError("a mistake")
    with pytest.raises(TypeError, match="a mistake"):
        measured(device)


@pytest.mark.parametrize("error", [DriverError("an illegal memory access"), None])
def test_a_lost_device_ends_it_though_the_benchmark_did_not_notice(device, error):
    def lost():
        device.lost = True
        if error:
            raise error
        return 1.0

    said = "the device is lost: .*illegal" if error else "the device is lost"
    with pytest.raises(UserError, match=f"describe: l1: {said}"):
        attempted("l1", lost, device, (DriverError, LaunchFailed))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_value_that_cannot_be_is_left_out(device, value, capsys):
    step = value / 1e6

    def run():
        return step_ns([step, step], [0.0, 0.0], 2)

    assert attempted("l1", run, device, REFUSALS) is None
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_streams_stay_until_all_of_them_are_created():
    alive, most = 0, 0

    class Stream:
        def __init__(self):
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    device = SimpleNamespace(stream=Stream, synchronize=lambda: None)
    assert ceilings.stream_creation_us(device) > 0
    assert (most, alive) == (ceilings.STREAMS * ceilings.STREAM_ROUNDS, 0)


def test_the_host_really_solves():
    assert 0.1 < ceilings.host_solve_ns() < 10_000


def test_kernels_are_told_the_types_of_their_arguments():
    told = []
    function = SimpleNamespace(
        prepare=told.append, prepared_async_call=lambda *given: told.append(given)
    )
    module = SimpleNamespace(get_function=lambda name: function)
    run = Kernels(module).ready("f", 3, 64, Memory(99, 8), np.float32(0.5), np.int64(7))
    assert told == [f"Pf{np.dtype(np.int64).char}"]
    run("a stream")
    assert told[1] == ((3, 1, 1), (64, 1, 1), "a stream", 99, 0.5, 7)


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_kernels_compile_without_a_warning(arch, tmp_path):
    unit = tmp_path / "unit.cu"
    unit.write_text(translation_unit())
    flags = ["-std=c++17", "-O3", "-Werror", "all-warnings", "-Xptxas", "-warn-spills"]
    command = ["nvcc", *flags, "-arch", arch, "-cubin", "-o", str(tmp_path / "out"), str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    symbols = (tmp_path / "out").read_bytes()
    entries = re.findall(r"__global__ void (\w+)\(|^CH\w+\((\w+),", unit.read_text(), re.M)
    names = {one or other for one, other in entries} - {"NAME"}
    assert len(names) == 16
    assert all(name.encode() in symbols for name in names)


@pytest.mark.parametrize(
    ("blocks", "threads", "share"),
    [(32, 4, 0.5), (32, 33, 1.0), (2, 1024, 1.0), (21, 96, 63 / 64), (0, 128, 0.0)],
)
def test_a_block_takes_whole_warps(blocks, threads, share):
    assert occupancy(blocks, threads, 2048) == share
