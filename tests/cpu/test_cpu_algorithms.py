"""Kernels as their authors write them, right on the CPU device, and wrong without a barrier."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.signal import correlate2d

from launchwise.cpu.device import ORDERS, CpuDevice
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import KERNELS, device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

BARRIER = "__syncthreads();"


@dataclass(frozen=True)
class Case:
    """A kernel, whether its result is right, and changes that make it wrong in some order."""

    source: str
    right: Callable[[CpuDevice, Build], bool]
    mistakes: dict[str, tuple[str, str]]
    defines: dict[str, str | int] = field(default_factory=dict)


def numbers(*shape, dtype="float32"):
    return np.random.default_rng(7).uniform(-1, 1, shape).astype(dtype)


def transposes(device, build):
    matrix = numbers(45, 70)
    out = np.full((70, 45), np.nan, np.float32)
    arguments = [out, matrix, np.int32(70), np.int32(45)]
    shape = (3, 2, 1), (32, 8, 1)
    return np.array_equal(launch(device, build, "transpose", *shape, arguments)[0], matrix.T)


def steps_a_cube(device, build):
    n = 11
    cube = numbers(n, n, n, dtype="float64")
    expected = cube.copy()
    middle = (slice(1, -1),) * 3
    rolled = [np.roll(cube, step, axis) for axis in range(3) for step in (-1, 1)]
    expected[middle] = (sum(rolled) - 6 * cube)[middle]
    arguments = [np.full_like(cube, np.nan), cube, np.int32(n)]
    shape = (2, 3, 3), (8, 4, 4)
    found = launch(device, build, "stencil", *shape, arguments, 10 * 6 * 6 * 8)[0]
    return np.allclose(found, expected, rtol=0, atol=1e-14)


def sums(device, build):
    values = np.random.default_rng(7).integers(-9, 9, 1000).astype(np.float32)
    arguments = [np.zeros(1, np.float32), values, np.int32(1000)]
    shape = (3, 1, 1), (16, 8, 1)
    return launch(device, build, "sum", *shape, arguments)[0][0] == values.sum()


def counts_bytes(device, build):
    values = np.random.default_rng(7).integers(0, 200, 1000).astype(np.uint8)
    shape = (1, 1, 1), (96, 1, 1)
    arguments = [np.zeros(257, np.uint32), values, np.int32(1000)]
    found = launch(device, build, "histogram", *shape, arguments)[0]
    expected = np.bincount(values, minlength=256)
    return np.array_equal(found, [*expected, expected.max()])


def convolves(device, build):
    image, weights = numbers(33, 50), numbers(5, 5)
    arguments = [np.full((29, 46), np.nan, np.float32), image, np.int32(46), np.int32(29)]
    constants = {
        "d_filter": weights,
        "offset": np.array([3], np.int32),
        "pixels": np.zeros(1, np.uint64),
    }
    shape = (3, 4, 1), (16, 8, 1)
    found = launch(device, build, "convolution_kernel", *shape, arguments, 0, constants)[0]
    pixels = np.zeros(1, np.uint64)
    device.download(device.constant(build, "pixels"), pixels)
    expected = correlate2d(image.astype(float), weights, "valid") + 3
    return np.abs(found - expected).max() < 1e-5 and pixels[0] == 29 * 46


def multiplies(device, build):
    left, right = numbers(24, 24), numbers(24, 24)
    arguments = [np.full((24, 24), np.nan, np.float32), left, right, np.int32(24)]
    found = launch(device, build, "product", (3, 3, 1), (8, 8, 1), arguments)[0]
    return bool(np.abs(found - left.astype(float) @ right).max() < 1e-5)


def shifts(device, build):
    values = np.arange(100, dtype=np.int32)
    found = launch(device, build, "shift", (1, 1, 1), (100, 1, 1), [values, np.int32(3)])[0]
    return np.array_equal(found, np.minimum(values + 3, 99))


CASES = {
    "transpose": Case("transpose.cu", transposes, {"no barrier": (BARRIER, "")}),
    "stencil": Case(
        "stencil.cu",
        steps_a_cube,
        {"no barrier": (BARRIER, ""), "no halo in z": ("if (tz == 0 && z > 0)", "if (false)")},
    ),
    "reduction": Case(
        "reduction.cu",
        sums,
        {
            "no barrier": (BARRIER, ""),
            "sums of other warps": ("thread < threads / 32 ?", "thread < 32 ?"),
            "a step too few": ("apart > 0", "apart > 1"),
        },
    ),
    "histogram": Case(
        "histogram.cu",
        counts_bytes,
        {
            "no first barrier": (f"most = 0;\n    {BARRIER}", "most = 0;"),
            "no second barrier": (f"}}\n    {BARRIER}", "}"),
            "counts not set to 0": ("clear(own);", ""),
            "most not set to 0": ("most = 0;", ";"),
        },
    ),
    "convolution": Case(
        "convolution.cu",
        convolves,
        {"no barrier": (BARRIER, "")},
        {"block_size_x": 16, "block_size_y": 8},
    ),
    "product": Case(
        "product.cu",
        multiplies,
        {
            "no first barrier": (f"n + x];\n        {BARRIER}", "n + x];"),
            "no second barrier": (f"{BARRIER}  // after", ""),
        },
    ),
    "shift": Case(
        "shift.cu",
        shifts,
        {
            "no barrier after reading": (f"{BARRIER}  // read", ""),
            "no barrier after writing": (f"{BARRIER}  // written", ""),
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_right_in_every_order(tmp_path, name):
    case = CASES[name]
    device = device_for(tmp_path, {case.source: (KERNELS / case.source).read_text()})
    build = Build.of(case.source, case.defines)
    assert [case.right(device, build) for _ in ORDERS * 2] == [True] * 6


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, mistake) for name in CASES for mistake in CASES[name].mistakes]
)
def test_a_mistake_gives_a_wrong_result(tmp_path, name, mistake):
    case = CASES[name]
    text, instead = case.mistakes[mistake]
    source = (KERNELS / case.source).read_text()
    assert source.count(text) == 1
    device = device_for(tmp_path, {case.source: source.replace(text, instead)})
    build = Build.of(case.source, case.defines)
    assert not all(case.right(device, build) for _ in ORDERS)


def test_some_missing_barriers_show_in_one_direction_only(tmp_path):
    text, instead = CASES["shift"].mistakes["no barrier after reading"]
    source = (KERNELS / "shift.cu").read_text().replace(text, instead)
    right = {}
    for order in ORDERS:
        device = device_for(tmp_path, {"shift.cu": source}, orders=(order,))
        right[order] = shifts(device, Build.of("shift.cu", {}))
    assert right == {"forward": True, "backward": False, "shuffled": False}


def test_a_change_of_what_lies_behind_a_buffer_is_found(tmp_path):
    source = "__global__ void f(float *out) { out[4] += 1; }"
    device = device_for(tmp_path, {"f.cu": source})
    zeros = [np.zeros(4, np.float32)]

    def run_rounds():
        for number in range(len(ORDERS)):
            device.begin_round(number)
            launch(device, Build.of("f.cu", {}, ["f"]), "f", (1, 1, 1), (1, 1, 1), zeros)

    with pytest.raises(LaunchFailed, match=r"writes byte 1[6-9], beyond the end of a buffer"):
        run_rounds()
