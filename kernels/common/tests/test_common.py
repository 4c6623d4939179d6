"""Device code of ``kernels/common/`` in the project's workloads and in one outside the project."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launchwise.base.places import ROOT
from launchwise.experiment.discovery import find_workloads
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle
from launchwise.measuring.source_states import deciding_files, fingerprint, source_state
from launchwise.workloads import sources
from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Launch
from launchwise.workloads.inputs import uniform
from launchwise.workloads.spec import load_spec
from tests.support.host_device import HostDevice

KERNELS = ROOT / "kernels"
WORKLOADS = ("acoustic", "granger", "sentiment", "tridiagonal")
ALONE = ("expert_product",)  # declared by their specs: their files are CUDA that stands alone
# compare.cu, compare_half.cu and digest.cu are no headers: they verify every workload that has no
# host code of its own.
INCLUDED_BY = {
    "async_copy.cuh": {"acoustic"},
    "bulk_copy.cuh": {"acoustic"},
    "compare.cu": set(),
    "compare_half.cu": set(),
    "difference.cuh": set(),
    "digest.cu": set(),
    "dynamic_shared.cuh": {"acoustic", "granger", "sentiment", "tridiagonal"},
    "half_types.cuh": set(),
    "largest.cuh": {"acoustic", "tridiagonal"},
    "uniform.cuh": {"acoustic", "granger", "tridiagonal"},
    "warp.cuh": {"acoustic", "granger", "sentiment"},
}

NOT_OUTSIDE = {"async_copy.cuh", "bulk_copy.cuh"}
"""Copies that a thread does not wait for: the workload outside makes none."""

BUILDS = [
    Build.of(source, real_macro(dtype))
    for source in ("check.cu", "sums.cu")
    for dtype in ("float32", "float64")
]


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere") / "outside"
    shutil.copytree(Path(__file__).with_name("outside"), folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Compiled kernels of this module's tests; each workload's in a folder of their own."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is needed to run kernels on the CPU")
    return tmp_path_factory.mktemp("compiled")


def made(folder):
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def device(outside, cache):
    return HostDevice(outside, load_spec(outside).headers, cache=made(cache / "outside"))


def run(device, dtype, kernel, arguments, grid=1, threads=64, shared_bytes=0):
    """Run a kernel; an array among its arguments is copied to the device and back."""
    source = "sums.cu" if kernel == "sums" else "check.cu"
    buffers = [
        (device.allocate(each.nbytes), each) for each in arguments if isinstance(each, np.ndarray)
    ]
    for buffer, array in buffers:
        device.upload(buffer, array)
    left = iter(buffers)
    passed = [next(left)[0] if isinstance(each, np.ndarray) else each for each in arguments]
    build = Build.of(source, real_macro(dtype))
    shape = (grid, 1, 1), (threads, 1, 1)
    device.launch(Launch(build, kernel, *shape, tuple(passed), shared_bytes))
    for buffer, array in buffers:
        device.download(buffer, array)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (1500.0, 4500.0), (0.1, 0.3)])
@pytest.mark.parametrize("seed", [0, 7, 2**48 - 1, 2**64 - 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_device_and_numpy_make_the_same_inputs(device, dtype, seed, bounds):
    n = 1000
    found = np.full(n, np.nan, dtype)
    run(device, dtype, "fill", [found, np.int64(n), np.uint64(seed), *np.float64(bounds)], grid=3)
    assert np.array_equal(found, uniform(n, seed, *bounds).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("odd", "expected"), [(0.5, 0.5), (-3.25, 3.25), (np.nan, 1e300), (np.inf, 1e300)]
)
def test_the_largest_value_of_a_grid_is_found_wherever_it_lies(device, dtype, odd, expected):
    values = np.linspace(-0.25, 0.25, 500).astype(dtype)
    for place in (0, 31, 32, 250, 499):
        several = values.copy()
        several[place] = odd
        found = np.zeros(1)
        run(device, dtype, "largest", [several, np.int64(500), found], grid=2)
        assert found[0] == expected


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lanes_exchange_values_within_their_own_warp(device, dtype):
    values = np.arange(64.0).astype(dtype)
    sums, firsts = np.zeros(2, dtype), np.zeros(64, dtype)
    run(device, dtype, "sums", [values, sums, firsts], shared_bytes=values.nbytes)
    assert sums.tolist() == [values[:32].sum(), values[32:].sum()]
    assert firsts.tolist() == [0] * 32 + [32] * 32


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
@pytest.mark.skipif(importlib.util.find_spec("pycuda") is None, reason="PyCUDA is not installed")
def test_nvcc_compiles_an_outside_workload_with_every_common_header(outside, tmp_path):
    # One thread: all builds of both types in one translation unit.
    compile_bundle(outside, load_spec(outside), BUILDS, "sm_90", tmp_path / "x.cubins", 1)
    bundle = Bundle(tmp_path / "x.cubins")
    for build in BUILDS:
        for name in ("sums",) if build.source == "sums.cu" else ("fill", "largest"):
            assert bundle.kernel(build, name).symbol == build.symbol(name)
    assert set(INCLUDED_BY) - NOT_OUTSIDE == {path.name for path in common_of(outside)}


# The project's own workloads


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_state_of_a_folder_does_not_depend_on_how_its_path_is_written(workload, monkeypatch):
    monkeypatch.chdir(KERNELS)
    spec = load_spec(KERNELS / workload)
    named = source_state(Path(workload), spec)
    assert named == source_state(KERNELS / workload, spec)
    assert fingerprint(Path(workload), "13.0") == fingerprint(KERNELS / workload, "13.0")


def common_of(folder):
    """Headers of ``kernels/common/`` among the files that decide a workload's sweep."""
    return (path for path in deciding_files(folder) if path.parent.name == "common")


def acoustic_values(session, device):
    """u_old on the device and in NumPy, as float64."""
    found = np.empty((session.n, session.n, session.pitch), session.dtype)
    device.download(session.u_old, found)
    expected = uniform(session.n**3, session.seed + 1).reshape((session.n,) * 3)
    return found[:, :, : session.n], expected.astype(session.dtype)


def granger_values(session, device):
    found = session.inputs()[1]
    expected = uniform(found.size, 2 * session.seed + 1)
    return found, expected.reshape(found.shape).astype(found.dtype)


def tridiagonal_values(session, device):
    found = np.empty(session.rows, session.dtype)
    device.download(session.system.d, found)
    return found, uniform(session.rows, session.seed + 3).astype(session.dtype)


VALUES: dict[str, tuple[Callable[..., tuple[np.ndarray, np.ndarray]], dict[str, Any], list[Any]]]
VALUES = {
    "acoustic": (acoustic_values, {"n": 21, "order": 2}, [0, 1]),
    "granger": (granger_values, {"county": 5, "countx": 3, "rows": 17, "cols": 4}, [False, True]),
    "tridiagonal": (tridiagonal_values, {"n": 37, "batch": 3, "memory": "device"}, [0]),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("workload", VALUES)
def test_a_workloads_inputs_are_the_shared_sequence_in_every_layout(cache, workload, dtype):
    values, problem, layouts = VALUES[workload]
    folder = KERNELS / workload
    spec = load_spec(folder)
    device = HostDevice(folder, spec.headers, cache=made(cache / workload))
    for layout in layouts:
        opened = load_workload(folder, spec).open(device, {**problem, "dtype": dtype}, layout, 5)
        with closing(opened) as session:
            found, expected = values(session, device)
        assert found.dtype == np.dtype(dtype)
        assert np.array_equal(found, expected)


def test_common_is_no_workload():
    assert set(find_workloads([KERNELS])) == {*WORKLOADS, *ALONE}
    assert {path.name for path in (KERNELS / "common").glob("*.cu*")} == set(INCLUDED_BY)


@pytest.mark.parametrize("header", INCLUDED_BY)
def test_a_changed_header_changes_the_fingerprint_of_those_that_include_it(
    tmp_path, monkeypatch, outside, header
):
    common = tmp_path / "kernels" / "common"
    shutil.copytree(KERNELS / "common", common)
    monkeypatch.setattr(sources, "PROJECT_KERNELS", common.parent)
    monkeypatch.setattr(sources, "COMMON", common)
    folders = {name: KERNELS / name for name in WORKLOADS} | {"outside": outside}
    before = {name: fingerprint(folder, "13.0") for name, folder in folders.items()}
    with open(common / header, "a") as file:
        file.write("// changed\n")
    changed = {name for name in folders if fingerprint(folders[name], "13.0") != before[name]}
    assert changed == INCLUDED_BY[header] | (set() if header in NOT_OUTSIDE else {"outside"})
