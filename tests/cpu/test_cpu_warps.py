"""Warp intrinsics, barriers and vector types against what the CUDA C++ guide says of them."""

import shutil

import numpy as np
import pytest
import yaml

from launchwise.cpu.device import ORDERS
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import KERNELS, device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

BUILD = Build.of("warps.cu", {})


@pytest.fixture(scope="module", params=ORDERS)
def device(request, tmp_path_factory):
    """A device with the kernels of warps.cu, in one order."""
    folder = tmp_path_factory.getbasetemp() / "warps"
    text = (KERNELS / "warps.cu").read_text()
    return device_for(folder, {"warps.cu": text}, orders=(request.param,))


def lanes(device, kernel, block, columns):
    """What each thread of a block says, by linear number."""
    threads = block[0] * block[1] * block[2]
    out = np.full((threads, columns), -12345, np.int32)
    return np.asarray(launch(device, BUILD, kernel, (1, 1, 1), block, [out])[0])


@pytest.mark.parametrize("block", [(64, 1, 1), (4, 8, 2), (1, 2, 32), (16, 3, 2)])
def test_shuffles_move_values_within_warps_of_linear_numbers(device, block):
    found = lanes(device, "shuffles", block, 7)
    thread = np.arange(len(found))
    lane, first, of_eight = thread % 32, thread // 32 * 32, thread % 8
    expected = [
        first + 5,
        np.where(lane >= 3, thread - 3, thread),
        np.where(lane < 32 - 3, thread + 3, thread),
        thread ^ 9,
        thread - of_eight + 2,
        np.where(of_eight >= 3, thread - 3, thread),
        np.where(of_eight < 5, thread + 3, thread),
    ]
    assert np.array_equal(found, np.stack(expected, axis=1))


def test_votes_count_lanes_that_have_not_ended(device):
    found = lanes(device, "votes", (48, 1, 1), 6)
    # Threads from 40 on end at once.
    assert (found[40:] == -12345).all()
    thread = np.arange(40)
    full, eight = np.uint32(0x55555555).view(np.int32), 0x55
    ballot = np.where(thread < 32, full, eight)
    assert np.array_equal(found[:40, 0], ballot)
    assert (found[:40, 1] == 1).all()
    assert (found[:40, 2] == 0).all()
    assert (found[:40, 3] == 1).all()
    sums = np.where(thread < 32, np.arange(32).sum(), np.arange(32, 40).sum())
    assert np.array_equal(found[:40, 4], sums)
    groups = [sum(1 << j for j in range(32) if j % 3 == i % 3) for i in range(32)]
    assert found[:32, 5].view(np.uint32).tolist() == groups


def test_votes_of_the_block(device):
    found = lanes(device, "block_votes", (10, 5, 2), 3)
    assert (found == [34, 0, 1]).all()


def test_lanes_of_one_branch_are_active_together(device):
    found = lanes(device, "active", (32, 1, 1), 2).view(np.uint32)
    odd = np.arange(32) % 2 == 1
    assert np.array_equal(found[:, 0], np.where(odd, 0xAAAAAAAA, 0x55555555))
    assert np.array_equal(found[:, 1], np.where(odd, 16, 16))


def test_vectors_and_arithmetic(device):
    (failures,) = launch(device, BUILD, "arithmetic", (1, 1, 1), (1, 1, 1), [np.zeros(1, np.int32)])
    assert failures[0] == 0


DEEP = """__device__ int deep(int n) {
    int x[99];
    x[n % 99] = n;
    return n ? deep(n - 1) + x[n % 9] : 0;
}"""

DIVERGENT = yaml.safe_load((KERNELS.parent / "data" / "divergent.yaml").read_text())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mistake", DIVERGENT)
def test_what_would_hang_or_crash_is_an_error_in_words(tmp_path_factory, mistake, order):
    text, said = DIVERGENT[mistake].values()
    source = f"#include <assert.h>\n{DEEP}\n__global__ void f(int *out) {{\n    {text}\n}}\n"
    folder = tmp_path_factory.getbasetemp() / f"mistake-{list(DIVERGENT).index(mistake)}"
    device = device_for(folder, {"f.cu": source}, orders=(order,))
    arguments = [np.zeros(64, np.int32)]
    shape = (1, 1, 1), (64, 1, 1)
    with pytest.raises(LaunchFailed, match=said) as raised:
        launch(device, Build.of("f.cu", {}), "f", *shape, arguments, 256)
    assert not raised.value.fatal
    assert "\n" not in str(raised.value)
    if "__s" in said:
        assert "f.cu:" in str(raised.value)
    # The device is as good as before.
    device = device_for(
        folder.parent / "next", {"g.cu": "__global__ void g(int *out) { *out = 3; }"}
    )
    assert launch(device, Build.of("g.cu", {}), "g", *shape, arguments)[0][0] == 3


def test_threads_that_have_ended_block_nobody(tmp_path):
    source = """
__global__ void f(int *out, int n) {
    __shared__ int all[64];
    const int i = threadIdx.x;
    if (i >= n) return;
    all[i] = i;
    __syncthreads();
    int sum = 0;
    for (int k = 0; k < n; ++k) sum += all[k];
    out[i] = __shfl_sync(0xffffffffu, sum, 0);
}
"""
    device = device_for(tmp_path, {"f.cu": source})
    for _ in ORDERS:
        arguments = [np.zeros(64, np.int32), np.int32(50)]
        found = launch(device, Build.of("f.cu", {}), "f", (1, 1, 1), (64, 1, 1), arguments)[0]
        assert found.tolist() == [sum(range(50))] * 50 + [0] * 14


@pytest.mark.parametrize(
    ("passage", "right"),
    [
        ("", {"forward": True, "backward": True, "shuffled": True}),
        # Some missing barriers show in one direction only.
        ("__syncthreads();  // read", {"forward": True, "backward": False, "shuffled": False}),
        ("__syncthreads();  // written", {"forward": False, "backward": True, "shuffled": False}),
    ],
)
def test_a_missing_barrier_shows_in_some_order_of_threads(tmp_path, passage, right):
    source = (KERNELS / "shift.cu").read_text()
    assert not passage or source.count(passage) == 1
    values, found = np.arange(100, dtype=np.int32), {}
    for order in ORDERS:
        device = device_for(tmp_path, {"shift.cu": source.replace(passage, "")}, orders=(order,))
        given = [values, np.int32(3)]
        shifted = launch(device, Build.of("shift.cu", {}), "shift", (1, 1, 1), (100, 1, 1), given)[
            0
        ]
        found[order] = np.array_equal(shifted, np.minimum(values + 3, 99))
    assert found == right


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
