"""The tridiagonal workload, its stages and its scratch arrays on a real GPU."""

import statistics
import time
from contextlib import contextmanager

import numpy as np
import pytest
from gpu_runs import described, measured
from test_tridiagonal import FOLDER, error, system

from kernels.tridiagonal.host.host_solution import HostArrays, solution_with_host
from kernels.tridiagonal.host.launches import Arrays, DeviceSolution
from kernels.tridiagonal.host.plan import Choice
from kernels.tridiagonal.solver import solve
from launchwise.workloads.device import Allocations

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def profile():
    return described(None)


@pytest.mark.parametrize("memory", ["device", "pinned", "pageable"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "batch"), [(1003, 1), (777, 1300), (10**6 + 7, 1)])
def test_drawn_configurations_are_right(profile, tmp_path, n, batch, dtype, memory):
    problem = {"n": n, "dtype": dtype, "memory": memory, "batch": batch}
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


@contextmanager
def opened(rows, choice):
    from kernels.tridiagonal.solver.from_host import open_host_solver

    device = open_host_solver().device
    arrays = [np.nan_to_num(each) for each in system(rows, "float64", 1)]
    host = [device.page_locked(8 * rows).view(np.float64) for _ in range(5)]
    for place, values in zip(host, arrays, strict=False):
        place[:] = values
    solution = DeviceSolution(device, np.dtype(np.float64), rows, choice)
    with Allocations(device) as memory:
        each = [memory.take(8 * rows) for _ in range(5)]
        yield solution_with_host(solution, Arrays(*each[:4]), each[4], HostArrays(*host), choice)
        device.synchronize()
    solution.close()


@pytest.mark.times
@pytest.mark.parametrize("rows", [1000, 100_000, 4_000_000])
def test_stages_of_one_stream_add_up_to_the_run(rows):
    with opened(rows, Choice("strided", (10,), threads=256, finish_on_host=True)) as work:
        times = []
        for _ in range(30):
            begin = time.perf_counter()
            work.run()
            times.append(1e3 * (time.perf_counter() - begin))
        share = sum(work.staged().values()) / statistics.median(times)
    print(f"{rows} rows: stages add up to {share:.3f} of {statistics.median(times):.4f} ms")
    # In small systems the latency of the waits belongs to no stage.
    # Each stage that is timed alone waits for the card: that counts where a run takes microseconds.
    low, high = (0.6, 1.6) if rows < 10**5 else (0.85, 1.15)
    assert low < share < high


@pytest.mark.times
def test_stages_of_many_streams_do_not_overlap():
    found = []
    for streams in (1, 8):
        how = Choice("strided", (10,), threads=256, finish_on_host=True, streams=streams)
        with opened(4_000_000, how) as work:
            work.run()
            found.append(work.staged())
    one, eight = found
    print(one, eight)
    # The same bytes over the same link: a stage that began before all copies had ended would
    # count a part of them as its own.
    for name in ("t1_h2d", "t3_d2h"):
        assert eight[name] == pytest.approx(one[name], rel=0.25)
    assert eight["t1_comp"] < 0.5 * eight["t1_h2d"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [32, 1024])
@pytest.mark.parametrize("sizes", [(4,), (35,), (1024,), (1024, 16), (8, 100, 8)])
def test_large_subsystems_and_blocks(sizes, threads, dtype):
    arrays = system(1_000_003, dtype, 1)
    how = {"layout": "strided_scratch", "sizes": sizes, "threads": threads, "last_m": 0}
    for streams, solver in ((1, "lapack"), (7, "lapack"), (1, "cores"), (7, "cores")):
        on_host = {"finish_on_host": True, "host_solver": solver, "streams": streams}
        found = solve(*arrays, check=True, **on_host, **how)
        assert error(found, arrays) < {"float64": 1e-13, "float32": 1e-4}[dtype]
