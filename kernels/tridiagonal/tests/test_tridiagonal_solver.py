"""The solver as Python calls it, with the kernels' own sources on the CPU."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from test_tridiagonal import error, system

from docs.generator.recorded_answers import device_choices
from kernels.tridiagonal.host.accuracy import InaccurateSolution
from kernels.tridiagonal.host.launches import finish_bytes
from kernels.tridiagonal.host.plan import remaining_rows
from kernels.tridiagonal.solver.from_host import HostSolver
from kernels.tridiagonal.solver.solving import TYPES, Choice, usual_choice
from launchwise.workloads.usual import usual_configuration


@pytest.fixture
def solver(device):
    return HostSolver(device, shared_limit=232448)


@pytest.mark.parametrize("rows", [2, 3, 16, 17, 1000, 20011])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_system_from_host_memory(solver, rows, dtype):
    arrays = system(rows, dtype, rows)
    before = [each.copy() for each in arrays]
    found = solver.solve(*arrays, check=True)
    assert found.dtype == dtype
    assert error(found, arrays) < {"float64": 1e-14, "float32": 1e-5}[dtype]
    assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(arrays, before, strict=True))


@pytest.mark.parametrize(
    "how",
    [
        {"sizes": (10,), "finish_on_host": True},
        {"sizes": (10, 4), "finish_on_host": True, "streams": 5, "layout": "strided"},
        {"sizes": (33, 5), "streams": 8, "threads": 128},
        {"sizes": (10, 4), "finish_on_host": True, "host_solver": "thomas", "streams": 2},
        {"sizes": (200,), "layout": "strided_scratch", "finish_on_host": True},
    ],
)
def test_whatever_is_named_is_not_chosen(solver, how):
    arrays = system(3000, "float64", 1)
    for _ in range(2):
        assert error(solver.solve(*arrays, check=True, **how), arrays) < 1e-14


def test_a_batch_is_many_systems_with_nothing_between_them(solver):
    batch = [system(131, "float64", number) for number in range(7)]
    stacked = [np.stack(each) for each in zip(*batch, strict=True)]
    found = solver.solve(*stacked, check=True)
    assert found.shape == (7, 131)
    for number, arrays in enumerate(batch):
        assert error(found[number], arrays) < 1e-14


def test_a_system_that_needs_pivots_is_refused_when_checked(solver):
    # b of 1e-9 before couplings of 1: elimination without pivots loses everything.
    rows = 64
    a, c = np.ones(rows), np.ones(rows)
    b = np.full(rows, 1e-9)
    d = np.random.default_rng(1).uniform(-1, 1, rows)
    with pytest.raises(InaccurateSolution, match="row-dominant"):
        solver.solve(a, b, c, d, check=True, last_m=8)


@pytest.mark.parametrize(
    ("changed", "how", "said"),
    [
        ({0: np.ones(9)}, {}, "must be alike"),
        ({1: np.ones(10, np.float32)}, {}, "must be alike"),
        ({}, {"layout": "interleaved"}, "on the device"),
        ({}, {"host_solver": "thmoas"}, "unknown host_solver 'thmoas'"),
        ({}, {"streams": 0}, "must be positive"),
    ],
)
def test_bad_input_is_said(solver, changed, how, said):
    arrays = system(10, "float64", 1)
    for number, array in changed.items():
        arrays[number] = array
    with pytest.raises(ValueError, match=said):
        solver.solve(*arrays, **how)


def test_a_place_for_the_solution_must_fit(solver):
    arrays = system(10, "float64", 1)
    with pytest.raises(ValueError, match="x is float32"):
        solver.solve(*arrays, np.empty(10, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        solver.solve(*arrays, np.empty(20)[::2])


def test_what_no_block_can_hold_is_said_before_anything_runs(device):
    small = HostSolver(device, shared_limit=48 * 1024)
    arrays = system(3000, "float64", 1)
    with pytest.raises(ValueError, match="bytes of shared memory a block, 49152 are there"):
        small.solve(*arrays, layout="strided", sizes=(4,), last_m=0)
    assert error(small.solve(*arrays, layout="strided", sizes=(4, 4, 4)), arrays) < 1e-14
    with pytest.raises(ValueError, match="leaves 20000 rows to one block"):
        HostSolver(device, shared_limit=1 << 20).solve(
            *system(80000, "float64", 1), layout="strided", sizes=(8,), last_m=4
        )


def test_memory_is_given_back(device, solver):
    free = device.free_bytes
    for rows in (100, 5000, 100):
        solver.solve(*system(rows, "float64", 1))
    solver.close()
    assert device.free_bytes == free


@pytest.mark.parametrize("n", [3, 1024, 1025, 10**6, 1_400_000, 10**8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_usual_choice_leaves_one_block_little(n, dtype):
    choice = usual_choice({"n": n, "dtype": dtype, "memory": "device", "batch": 1})
    left = remaining_rows(n, choice.levels(n))
    assert left <= 2048
    # Every card has 48 KB of shared memory a block.
    assert finish_bytes(left, choice.last_m, 8) <= 48 * 1024


@given(n=st.integers(min_value=10**4, max_value=10**8), dtype=st.sampled_from(TYPES))
@example(n=200_000, dtype="float64")
@example(n=700_000, dtype="float32")
@example(n=1_400_000, dtype="float32")
@example(n=1_400_001, dtype="float32")
def test_the_solver_chooses_what_the_workload_calls_usual(tridiagonal_spec, n, dtype):
    problem = {"n": n, "dtype": dtype, "memory": "device", "batch": 1}
    found = usual_configuration(tridiagonal_spec.usual, problem, tridiagonal_spec)
    assert Choice.of(found) == usual_choice(problem)


@pytest.mark.parametrize(("gpu", "mean", "least"), [("h200", 0.97, 0.9), ("h100", 0.95, 0.88)])
def test_the_usual_choice_is_near_the_fastest_in_pairs(gpu, mean, least):
    """Compared in pairs, 10^4 to 10^8 rows; the rule was made for the H200."""
    found = device_choices()[gpu]
    assert found["problems"] == 18
    assert 1 > found["mean"] >= mean
    assert found["mean"] > found["least"] >= least
