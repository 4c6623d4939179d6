"""Shared memory and barriers in each order of threads; whole algorithms are in tests/strangers."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from launchwise.cpu.device import ORDERS
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import KERNELS, device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

BARRIER = "__syncthreads();"


def counts_bytes(device, build):
    values = np.random.default_rng(7).integers(0, 200, 1000).astype(np.uint8)
    shape = (1, 1, 1), (96, 1, 1)
    arguments = [np.zeros(257, np.uint32), values, np.int32(1000)]
    found = launch(device, build, "histogram", *shape, arguments)[0]
    expected = np.bincount(values, minlength=256)
    return np.array_equal(found, [*expected, expected.max()])


def shifts(device, build):
    values = np.arange(100, dtype=np.int32)
    found = launch(device, build, "shift", (1, 1, 1), (100, 1, 1), [values, np.int32(3)])[0]
    return np.array_equal(found, np.minimum(values + 3, 99))


CASES = {
    "histogram": (
        counts_bytes,
        {
            "no first barrier": (f"most = 0;\n    {BARRIER}", "most = 0;"),
            "no second barrier": (f"}}\n    {BARRIER}", "}"),
            "counts not set to 0": ("clear(own);", ""),
            "most not set to 0": ("most = 0;", ";"),
        },
    ),
    "shift": (
        shifts,
        {
            "no barrier after reading": (f"{BARRIER}  // read", ""),
            "no barrier after writing": (f"{BARRIER}  // written", ""),
        },
    ),
}
"""Kernel to whether its result is right, and to changes that make it wrong in some order."""


def results(folder, name, text="", instead="", orders=ORDERS):
    """Whether a kernel with a passage replaced is right in each order."""
    source = (KERNELS / f"{name}.cu").read_text()
    assert not text or source.count(text) == 1
    device = device_for(folder, {"k.cu": source.replace(text, instead)}, orders=orders)
    return [CASES[name][0](device, Build.of("k.cu", {})) for _ in orders]


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_right_in_every_order(tmp_path, name):
    assert all(results(tmp_path, name))


@pytest.mark.parametrize(
    ("name", "mistake"), [(name, mistake) for name in CASES for mistake in CASES[name][1]]
)
def test_a_mistake_gives_a_wrong_result(tmp_path, name, mistake):
    assert not all(results(tmp_path, name, *CASES[name][1][mistake]))


def test_some_missing_barriers_show_in_one_direction_only(tmp_path):
    change = CASES["shift"][1]["no barrier after reading"]
    right = {order: results(tmp_path, "shift", *change, (order,)) for order in ORDERS}
    assert right == {"forward": [True], "backward": [False], "shuffled": [False]}


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
