"""Large outputs are compared on the device: what it finds, and what it is not believed."""

from __future__ import annotations

import math
import shutil
from typing import Any

import numpy as np
import pytest

from launchwise.base.places import ROOT
from launchwise.cpu.device import CpuDevice
from launchwise.workloads.comparison import DIGEST_BUILD, largest_difference
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Allocations, LaunchFailed
from launchwise.workloads.output_check import HOST_BYTES, KERNEL, OutputCheck, compare_build
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"
COUNT = HOST_BYTES // 2 + 1000


class Output:
    """An output on the CPU device, and its check."""

    def __init__(self, kept, right, device=None):
        self.device = device or CpuDevice(CONVOLUTION, [], cache=kept)
        self.memory = Allocations(self.device)
        self.buffer = self.memory.upload(right)
        self.dtype = right.dtype
        self.check = OutputCheck(self.device, self.memory, self.buffer, self.dtype, right)

    def write(self, index, value):
        """Change one element."""
        part = self.device.part(self.buffer, index * self.dtype.itemsize, self.dtype.itemsize)
        self.device.upload(part, np.array([value], self.dtype))


def numbers(dtype):
    """Content of an output that the device compares."""
    return (100 * np.random.default_rng(1).uniform(0, 1, COUNT)).astype(dtype)


@pytest.mark.parametrize(
    ("dtype", "wrong", "size"),
    [
        ("float32", 101.5, None),
        ("float64", -math.inf, math.inf),
        ("float64", math.nan, math.nan),
        ("int32", -(2**31), None),
        ("uint64", 2**63, None),
    ],
)
def test_the_device_finds_one_wrong_element(tmp_path, dtype, wrong, size):
    right = numbers(dtype)
    output = Output(tmp_path, right)
    assert output.check.difference(1e-5).size == 0
    assert output.device.launched == {compare_build(right.dtype, right.nbytes).key}
    output.write(COUNT - 3, wrong)
    found = output.check.difference(1e-5)
    assert found.index == COUNT - 3
    exact = abs(float(np.array(wrong, dtype)) - float(right[COUNT - 3])) if size is None else size
    assert found.size == pytest.approx(exact, nan_ok=True)


def test_integers_of_any_size_are_compared_exactly(tmp_path):
    right = np.full(COUNT, 2**62, np.int64)
    output = Output(tmp_path, right)
    output.check.difference(0)
    output.write(7, 2**62 + 1)
    assert (output.check.difference(0).size, output.check.difference(0).index) == (1, 7)


def test_small_differences_need_no_copy(tmp_path):
    right = numbers("float32")
    output = Output(tmp_path, right)
    output.check.difference(1e-5)
    output.write(5, right[5] + 1e-4)
    copied = []
    download = output.device.download

    def noted(buffer, array, stream=None):
        copied.append(array.nbytes)
        download(buffer, array, stream)

    output.device.download = noted
    found = output.check.difference(1e-5)
    assert found.size == largest_difference(np.float32(right[5:6] + 1e-4), right[5:6]).size > 0
    assert copied == [8]


class Recording(CpuDevice):
    """A device that remembers what was allocated."""

    taken: list[Any]

    def allocate(self, nbytes):
        buffer = super().allocate(nbytes)
        self.__dict__.setdefault("taken", []).append(buffer)
        return buffer


def test_what_a_kernel_writes_over_the_reference_blames_no_other(tmp_path):
    right = numbers("float32")
    device = Recording(CONVOLUTION, [], cache=tmp_path)
    output = Output(tmp_path, right, device)
    output.check.difference(1e-5)
    reference = device.taken[-1]
    assert reference.nbytes == COUNT * 8
    kept = np.empty(COUNT)
    device.download(reference, kept)
    device.fill_bytes(reference, 0xFF)
    assert output.check.difference(1e-5).size == 0
    again = np.empty(COUNT)
    device.download(reference, again)
    assert np.array_equal(again, kept)


class Careless(CpuDevice):
    """A device whose comparison does nothing, as if it had found no difference."""

    def launch(self, launch, stream=None):
        if launch.kernel != KERNEL:
            super().launch(launch, stream)


def test_a_device_that_compares_wrongly_is_not_believed(tmp_path):
    right = numbers("float32")
    output = Output(tmp_path, right, Careless(CONVOLUTION, [], cache=tmp_path))
    output.write(0, 7e5)
    with pytest.raises(LaunchFailed, match="is 0 on the device, 69") as caught:
        output.check.difference(1e-5)
    assert caught.value.fatal


@pytest.mark.parametrize("device_bytes", [COUNT * 4 + 100, 1 << 30])
def test_the_host_compares_what_the_device_has_no_room_for(tmp_path, device_bytes):
    right = numbers("float32")
    device = CpuDevice(CONVOLUTION, [], memory_bytes=device_bytes, cache=tmp_path)
    output = Output(tmp_path, right, device)
    output.check.difference(1e-5)
    output.write(COUNT - 1, math.nan)
    assert output.check.difference(1e-5).index == COUNT - 1
    assert bool(device.launched) == (device_bytes > 1 << 20)


@pytest.mark.parametrize(("dtype", "count"), [("float16", 10), ("float32", 10), ("float32", 0)])
def test_small_outputs_are_compared_on_the_host(tmp_path, dtype, count):
    right = numbers("float64")[:count].astype(dtype)
    output = Output(tmp_path, right) if count else None
    assert compare_build(right.dtype, right.nbytes) is None
    if output:
        output.write(3, 500)
        assert output.check.difference(1e-2).index == 3
        assert not output.device.launched


def test_a_reference_that_is_no_integer_is_not_rounded(tmp_path):
    right = numbers("int32")
    output = Output(tmp_path, right)
    halves = OutputCheck(
        output.device, output.memory, output.buffer, np.dtype(np.int32), right + 0.5
    )
    assert halves.difference(0).size == 0.5


def test_a_session_with_a_large_output_compares_on_the_device(tmp_path):
    spec = load_spec(CONVOLUTION)
    workload = load_workload(CONVOLUTION, spec)
    problem = {"w": 300, "h": 250}
    comparing, watching = workload.check_builds(problem)[::-1]
    assert watching == DIGEST_BUILD
    device = CpuDevice(CONVOLUTION, spec.headers, cache=tmp_path)
    session = workload.open(device, problem, (), 1)
    configuration = {"variant": "tiled", "block_size_x": 32, "block_size_y": 4}
    session.poison()
    device.launch(session.launch({**configuration, "tile_size_x": 1, "tile_size_y": 1}))
    assert session.check().wrong == ""
    assert comparing.key in device.launched
    session.poison()
    assert session.check().wrong.startswith("output[0, 0] is never written or only")
    session.close()
