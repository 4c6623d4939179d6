"""The tridiagonal kernels' own sources on the CPU, held against SciPy's banded solver."""

import itertools
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_banded

from kernels.tridiagonal.host.host_solution import (
    STAGES,
    HostArrays,
    HostSolution,
    solution_with_host,
)
from kernels.tridiagonal.host.launches import (
    LAYOUTS,
    Arrays,
    DeviceSolution,
    interleaved,
    most_shared_bytes,
)
from kernels.tridiagonal.host.plan import HOST_SOLVER_OF, Choice
from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Launch
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.host_device import METHOD, HostDevice, measured_rows, memory_of
from tests.support.mistakes import mistakes, with_mistake
from tests.support.slow_cases import first_of

FOLDER = Path(__file__).resolve().parents[3] / "kernels" / "tridiagonal"
FACTS = {
    "gpu_memory_bytes": 1 << 30,
    "gpu_max_threads_per_block": 1024,
    "gpu_shared_per_block_bytes": 232448,
}
SMALL = {"n": 333, "dtype": "float64", "memory": "device", "batch": 3}


def system(rows, dtype, seed, empty=0.0):
    """A row-dominant system; a share ``empty`` of the couplings is zero.

    What stands before the first row and behind the last is NaN: nobody may look at it.
    """
    dice = np.random.default_rng(seed)
    a, c = dice.uniform(-1, 1, (2, rows)) * (dice.uniform(size=(2, rows)) >= empty)
    b = (np.abs(a) + np.abs(c) + dice.uniform(0.05, 1, rows)) * dice.choice([-1, 1], rows)
    a[0] = c[-1] = np.nan
    return [each.astype(dtype) for each in (a, b, c, dice.uniform(-1, 1, rows))]


def expected(arrays):
    """The solution by elimination with pivoting, in float64."""
    a, b, c, d = (each.astype(float) for each in arrays)
    if len(b) == 1:
        return d / b
    bands = np.zeros((3, len(b)))
    bands[0, 1:], bands[1], bands[2, :-1] = c[:-1], b, a[1:]
    return np.asarray(solve_banded((1, 1), bands, d))


def error(found, arrays):
    right = expected(arrays)
    return float(np.max(np.abs(found - right)) / np.max(np.abs(right)))


def on_device(device, arrays, sizes, layout, threads, last_m=0):
    dtype, rows = arrays[0].dtype, len(arrays[0])
    choice = Choice(layout, tuple(sizes), last_m, threads)
    solution = DeviceSolution(device, dtype, rows, choice)
    cuts = solution.cuts
    stored = layout == "interleaved" and bool(cuts)
    buffers = [device.allocate(each.nbytes) for each in arrays]
    for buffer, each in zip(buffers, arrays, strict=True):
        device.upload(buffer, interleaved(each, cuts[0].m) if stored else each)
    x = device.allocate(arrays[0].nbytes)
    for launch in solution.launches(Arrays(*buffers), x):
        device.launch(launch)
    found = np.empty(rows, dtype)
    device.download(x, found)
    return found[np.argsort(interleaved(np.arange(rows), cuts[0].m))] if stored else found


TOLERANCE = {"float64": 5e-14, "float32": 3e-5}
"""Forward error: eps times the condition of these systems, which is at most some tens."""


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 700),
    sizes=st.lists(st.integers(3, 40), max_size=4),
    threads=st.sampled_from([32, 64, 128]),
    last_m=st.sampled_from([0, 3, 4, 8]),
    dtype=st.sampled_from(["float32", "float64"]),
    empty=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_any_cut_of_any_system_is_solved(
    device, layout, rows, sizes, threads, last_m, dtype, empty, seed
):
    arrays = system(rows, dtype, seed, empty)
    found = on_device(device, arrays, sizes, layout, threads, last_m)
    assert error(found, arrays) < TOLERANCE[dtype]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (5, [8]),  # fewer rows than one sub-system
        (8, [8]),  # one sub-system
        (15, [8]),  # one sub-system that takes 7 more
        (16, [8]),
        (9, [3]),
        (64 * 7 + 6, [7]),  # a whole block, and rows left over
        (64 * 7 + 7, [7]),  # a block with one sub-system
        (2 * 64 * 7 + 13, [7]),  # a block with one sub-system that takes 6 more
        (64 * 7 * 5 + 100, [7, 3]),
        (6000, [33, 8, 4, 3]),
    ],
)
def test_the_edges_of_a_cut(device, layout, rows, sizes):
    arrays = system(rows, "float64", rows)
    assert error(on_device(device, arrays, sizes, layout, 64), arrays) < 1e-14


@pytest.mark.parametrize("layout", ["strided", "strided_scratch", "blockwise"])
@pytest.mark.parametrize("stage2", ["host", "thomas", "cores", "device"])
@pytest.mark.parametrize("streams", [1, 3, 32])
@pytest.mark.parametrize("sizes", first_of([[10, 4], [10], [7, 5, 3]]))
def test_the_host_takes_part(device, sizes, streams, stage2, layout):
    finish_on_host = stage2 != "device"
    arrays = system(1003, "float64", 5)
    dtype, rows = arrays[0].dtype, len(arrays[0])
    solver = HOST_SOLVER_OF.get(stage2, "lapack")
    choice = Choice(layout, tuple(sizes), 0, 32, streams, finish_on_host, solver)
    solution = DeviceSolution(device, dtype, rows, choice)
    buffers = [device.allocate(each.nbytes) for each in arrays]
    x = np.full(rows, np.nan)
    host = HostArrays(*arrays, x)
    place = device.allocate(x.nbytes)
    work = solution_with_host(solution, Arrays(*buffers), place, host, choice)
    for _ in range(2):
        work.run()
        assert error(x, arrays) < 1e-14
        x[:] = np.nan
    stages = work.staged()
    assert error(x, arrays) < 1e-14
    assert list(stages) == list(STAGES)
    assert (stages["t2_h"] > 0) == finish_on_host
    assert (stages["t2_d"] > 0) == (not finish_on_host or len(solution.cuts) > 1)
    assert all(stages[name] > 0 for name in ("t1_h2d", "t1_comp", "t3_comp", "t3_d2h"))


@pytest.mark.parametrize("threads", [32, 256, 1024])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [3, 4, 35, 100, 129, 512, 1024, 4096])
def test_a_scratch_array_has_room_for_any_m(device, m, dtype, threads):
    rows = 5 * 1024 + 77
    arrays = system(rows, dtype, m)
    choice = Choice("strided_scratch", (m,), threads=threads, finish_on_host=True)
    assert most_shared_bytes(rows, choice, arrays[0].itemsize) == 0
    assert (
        error(on_device(device, arrays, [m], "strided_scratch", threads), arrays)
        < (TOLERANCE[dtype])
    )


def test_streams_and_levels_keep_to_their_own_scratch(device):
    rows = 40_009
    choice = Choice("strided_scratch", (16, 8), threads=32, streams=5, finish_on_host=True)
    solution = DeviceSolution(device, np.dtype("float64"), rows, choice)
    buffers = [device.allocate(8 * rows) for _ in range(5)]
    system_arrays = Arrays(*buffers[:4])
    work = HostSolution(solution, system_arrays, buffers[4], None, choice)

    def place(buffer):
        begin = memory_of(buffer, buffer.nbytes).ctypes.data
        return begin, begin + buffer.nbytes

    # What a launch of stage 3 gets last before its sizes.
    parts = sorted(place(launch.arguments[-4]) for launch in work._substitute)
    assert [end - begin for begin, end in parts] == [8 * part.rows for part in work._chunks]
    assert all(one[1] == following[0] for one, following in itertools.pairwise(parts))
    (inner,) = solution.outwards()
    begin, end = place(inner.arguments[-4])
    assert parts[0][0] <= begin < end <= parts[-1][1]
    solution.close()


OFFSETS = """
#include "strided_scratch.cu"

extern "C" __global__ void KERNEL(offsets)(
    const long long *number, const int *k, long long *found, long long rows, int m,
    long long count) {
    const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= count) return;
    found[2 * i] = place(number[i], rows / m, m, k[i]);
    found[2 * i + 1] = scratch_at(number[i], rows / m, m, k[i]);
}
"""


@pytest.mark.parametrize("m", [3, 4, 35, 4096])
@pytest.mark.parametrize("rows", [5000, 10**9 - 1, 10**9])
def test_offsets_of_large_systems(tmp_path, kernel_cache, spec, rows, m):
    folder = tmp_path / "tridiagonal"
    shutil.copytree(FOLDER, folder)
    (folder / "offsets.cu").write_text(OFFSETS)
    device = HostDevice(folder, spec.headers, cache=kernel_cache)
    subsystems, rest = divmod(rows, m)
    dice = np.random.default_rng(rows + m)
    number = np.concatenate([dice.integers(0, subsystems, 500), np.full(500, subsystems - 1)])
    k = np.concatenate([dice.integers(0, m, 500), dice.integers(0, m + rest, 500)])
    number[-1], k[-1] = subsystems - 1, m + rest - 1
    buffers = [device.allocate(size * len(k)) for size in (8, 4, 16)]
    device.upload(buffers[0], number.astype(np.int64))
    device.upload(buffers[1], k.astype(np.int32))
    sizes = (np.int64(rows), np.int32(m), np.int64(len(k)))
    kernels = Build.of("offsets.cu", real_macro("float64"))
    arguments = (*buffers, *sizes)
    device.launch(Launch(kernels, "offsets", (len(k) // 250, 1, 1), (250, 1, 1), arguments))
    found = np.empty((len(k), 2), np.int64)
    device.download(buffers[2], found)
    assert np.array_equal(found[:, 0], number * m + k)
    # Row k of all sub-systems together, then the rows beyond m of the last one: as for the
    # interleaved layout, each row has a word of its own.
    assert np.array_equal(
        found[:, 1], np.where(k < m, k * subsystems + number, subsystems * m + k - m)
    )
    assert found.min() >= 0
    assert found.max() == rows - 1
    rows_seen = np.unique(found[:, 0], return_index=True)[1]
    assert len(np.unique(found[rows_seen, 1])) == len(rows_seen)


def rows_of(device, folder, spec, problem, some):
    return measured_rows(device, folder, spec, problem, some, METHOD)


@pytest.mark.parametrize("memory", ["device", "pinned", "pageable"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_drawn_configurations_are_right_and_say_their_stages(device, spec, memory, dtype):
    problem = {**SMALL, "memory": memory, "dtype": dtype}
    drawn = Draws(spec, problem, FACTS, 0).sample(random.Random(memory + dtype), 15)
    rows = rows_of(device, FOLDER, spec, problem, [baseline(spec), *drawn])
    assert [row["status"] for row in rows] == ["ok"] * len(rows), rows
    eps = float(np.finfo(dtype).eps)
    assert max(row["max_error"] for row in rows) < 10 * eps
    assert {row["timer"] for row in rows} <= {"events", "host"}
    # While others are still compiled, only these are there.
    workload = load_workload(FOLDER, spec)
    promised = [*workload.check_builds(problem), *(workload.build(problem, each) for each in drawn)]
    assert device.launched <= {build.key for build in promised}
    for row in rows:
        if row["m"] == 0:
            assert row["t2_d_ms"] > 0
            continue
        assert row["t1_comp_ms"] > 0
        assert row["t3_comp_ms"] > 0
        if memory != "device":
            assert row["timer"] == "host"
            assert row["t1_h2d_ms"] > 0


class Losing(HostDevice):
    def download(self, buffer, array, stream=None):
        """All but what takes the place of a poisoned solution."""
        if array.size != SMALL["n"] * SMALL["batch"] or not np.isnan(array).all():
            super().download(buffer, array, stream)


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_a_solution_that_does_not_reach_the_host_is_wrong(spec, kernel_cache, memory):
    losing = Losing(FOLDER, spec.headers, cache=kernel_cache)
    (row,) = rows_of(losing, FOLDER, spec, {**SMALL, "memory": memory}, [baseline(spec)])
    assert row["status"] == "wrong"


@pytest.mark.parametrize("hiccups", [1, 10**6])
def test_one_hiccup_of_the_host_does_not_make_a_configuration_slow(
    device, spec, monkeypatch, hiccups
):
    run, runs = HostSolution.run, []

    def stumbling(self):
        # Every run sleeps, so that "20 times slower" begins at .4 s: a busy machine adds less.
        time.sleep(0.02)
        if self._solution.cuts[0].m == 20:
            runs.append(self)
            if len(runs) <= hiccups:
                time.sleep(1.2)
        run(self)

    monkeypatch.setattr(HostSolution, "run", stumbling)
    problem = {**SMALL, "memory": "pinned"}
    tried = [baseline(spec), {**baseline(spec), "m": 20}]
    method = METHOD.model_copy(update={"slow_factor": 20.0})
    first, second = measured_rows(device, FOLDER, spec, problem, tried, method)
    assert first["status"] == "ok"
    assert second["timer"] == "host"
    assert second["first_ms"] > 1200
    if hiccups == 1:
        assert second["status"] == "ok"
        assert second["time_ms"] < 400
    else:
        assert second["status"] == "slow"
        assert second["time_ms"] > 1200
        assert len(runs) == 2


@pytest.mark.parametrize("mistake", first_of(mistakes(FOLDER)), ids=str)
def test_a_mistake_in_the_method_is_found(tmp_path, kernel_cache, mistake):
    folder = with_mistake(FOLDER, tmp_path, mistake.file, mistake.right, mistake.wrong)
    spec = load_spec(folder)
    device = HostDevice(folder, spec.headers, cache=kernel_cache)
    problem = {**SMALL, "n": 335}
    wide = {"variant": "blockwise", "threads": 32, "stage2": "device"}
    tried = {**baseline(spec), **({} if mistake.file == "tridiagonal.cuh" else wide)}
    (row,) = rows_of(device, folder, spec, problem, [tried])
    assert row["status"] == "wrong", row
