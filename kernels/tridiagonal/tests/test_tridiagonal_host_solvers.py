"""The compiled Thomas algorithm, and the partition method on the host's cores, against LAPACK."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tridiagonal import FOLDER, SMALL, TOLERANCE, error, system

from kernels.tridiagonal.host import compiling, cores
from kernels.tridiagonal.host.accuracy import ALLOWED_EPS, backward_error
from kernels.tridiagonal.host.compiling import NoCompiler, library
from kernels.tridiagonal.host.cores import LANES, PartitionedSystem, parts_of
from kernels.tridiagonal.host.interface_solvers import (
    SingularSystem,
    solve_by_thomas,
    solve_on_cores,
    solve_on_host,
)
from kernels.tridiagonal.host.thomas import SOURCE, thomas
from kernels.tridiagonal.host.workload import inputs
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.host_device import METHOD, HostDevice, measured_rows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_batch_has_nothing_between_its_systems(dtype):
    n, batch = 57, 40
    whole = inputs(n, batch, dtype, 3)
    together = solve_by_thomas(*(each.copy() for each in whole))
    for number in range(batch):
        own = slice(number * n, (number + 1) * n)
        alone = solve_by_thomas(*(each[own].copy() for each in whole))
        assert np.array_equal(together[own], alone)


def test_it_works_in_place_and_leaves_a_and_b():
    arrays = system(100, "float64", 1)
    a, b, c, d = (each.copy() for each in arrays)
    assert solve_by_thomas(a, b, c, d) is d
    assert np.array_equal(a, arrays[0], equal_nan=True)
    assert np.array_equal(b, arrays[1])


@pytest.mark.parametrize("row", [1, 2, 7])
def test_a_zero_pivot_is_said(row):
    a, b, c, d = (np.zeros(7), np.ones(7), np.zeros(7), np.ones(7))
    b[row - 1] = 0
    with pytest.raises(SingularSystem, match=f"row {row} of 7 .* zero pivot"):
        solve_by_thomas(a, b, c, d)


def test_arrays_that_it_cannot_take_are_refused():
    ones = np.ones(8)
    with pytest.raises(ValueError, match="one type"):
        thomas(ones, ones, ones, ones.astype("float32"))
    with pytest.raises(ValueError, match="one shape"):
        thomas(ones, ones, ones[:4], ones)
    with pytest.raises(ValueError, match="contiguous"):
        thomas(*(np.ones(8)[::2] for _ in range(4)))
    with pytest.raises(ValueError, match="one row at least"):
        thomas(*(np.ones(0) for _ in range(4)))


@pytest.fixture
def not_loaded():
    library.cache_clear()
    yield
    library.cache_clear()


def test_a_missing_compiler_fails_its_own_rows_alone(kernel_cache, monkeypatch, not_loaded):
    spec = load_spec(FOLDER)
    device = HostDevice(FOLDER, spec.headers, cache=kernel_cache)
    monkeypatch.setattr(compiling, "COMPILERS", ("no-such-compiler",))
    monkeypatch.delenv("CC", raising=False)
    problem = {**SMALL, "memory": "pinned"}
    tried = [{**baseline(spec), "stage2": "thomas"}, baseline(spec)]
    rows = measured_rows(device, FOLDER, spec, problem, tried, METHOD)
    found = {row["stage2"]: row for row in rows}
    assert found["host"]["status"] == "ok"
    assert found["thomas"]["status"] == "failed"
    assert "needs a C compiler: install one of no-such-compiler" in found["thomas"]["reason"]


@pytest.mark.parametrize(
    ("text", "source", "said"),
    [
        ("false", SOURCE, "cannot compile thomas.c"),
        ("false", cores.SOURCE, r"cannot compile partition\.c"),
        ("/no/such/cc", SOURCE, "No such file"),
    ],
)
def test_a_compiler_that_fails_is_named(monkeypatch, not_loaded, text, source, said):
    monkeypatch.setenv("CC", text)
    with pytest.raises(NoCompiler, match=said):
        library(source)


def test_cc_may_have_options(monkeypatch, not_loaded):
    monkeypatch.setenv("CC", "cc -DNOTHING")
    arrays = system(50, "float64", 2)
    assert error(solve_by_thomas(*(each.copy() for each in arrays)), arrays) < 1e-14


@pytest.mark.parametrize("solve", [solve_by_thomas, solve_on_cores])
@settings(max_examples=100)
@given(
    rows=st.integers(1, 5000),
    dtype=st.sampled_from(["float32", "float64"]),
    empty=st.sampled_from([0.0, 0.3, 1.0]),
    number=st.sampled_from([1, 3, 16]),
    fewest=st.sampled_from([2, 5, 64]),
    seed=st.integers(0, 1000),
)
def test_they_solve_what_lapack_solves(solve, rows, dtype, empty, number, fewest, seed):
    # a[0] and c[-1] are NaN: nobody may compute with them.
    arrays = system(rows, dtype, seed, empty)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cores, "FEWEST_ROWS", fewest)
        patch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(number)))
        found = solve(*(each.copy() for each in arrays))
    with_pivots = solve_on_host(*(each.copy() for each in arrays))
    assert np.max(np.abs(found - with_pivots)) <= 2 * TOLERANCE[dtype] * np.max(np.abs(with_pivots))
    assert error(found, arrays) < TOLERANCE[dtype]
    assert backward_error(arrays, found) <= ALLOWED_EPS * np.finfo(dtype).eps


@settings(max_examples=20)
@given(lengths=st.lists(st.integers(2, 3000), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_pieces_may_come_one_after_the_other(lengths, seed):
    arrays = system(sum(lengths), "float64", seed)
    here = [np.full_like(each, np.nan) for each in arrays]
    bounds = list(itertools.accumulate(lengths, initial=0))
    pieces = [slice(*each) for each in itertools.pairwise(bounds)]
    whole = PartitionedSystem(here, pieces)
    for number, piece in enumerate(pieces):
        for place, values in zip(here, arrays, strict=True):
            place[piece] = values[piece]
        whole.reduce(number)
    whole.solve_ends()
    for number in reversed(range(len(pieces))):
        whole.substitute(number)
    assert error(here[3], arrays) < 1e-14
    assert np.array_equal(here[1], arrays[1])


def test_short_pieces_are_not_cut(monkeypatch):
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(16)))
    assert parts_of(2) == parts_of(LANES * cores.FEWEST_ROWS - 1) == 1
    assert parts_of(LANES * cores.FEWEST_ROWS) == LANES
    assert parts_of(10**7) == 16 * LANES


@pytest.mark.parametrize("row", [0, 1, 700, 2999])
def test_a_zero_pivot_of_cores_is_said(row):
    a, b, c, d = (np.zeros(3000), np.ones(3000), np.zeros(3000), np.ones(3000))
    b[row] = 0
    with pytest.raises(SingularSystem, match=r"zero pivot|pivot is zero"):
        solve_on_cores(a, b, c, d)


def test_lanes_are_those_of_the_source():
    assert f"#define LANES {LANES}\n" in Path(cores.SOURCE).read_text()
