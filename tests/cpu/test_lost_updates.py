"""Updates that a GPU loses, though they all count where threads run one after the other."""

import shutil

import numpy as np
import pytest

from launchwise.cpu.device import ORDERS, CpuDevice
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import KERNELS, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

X = np.arange(256, dtype=np.int32)
LOST = {
    "count": ("5: reads and then writes the same memory", "thread (4 of block 0)"),
    "hist": ("22: reads and then writes the same bins", "thread (0 of block 0)"),
    "blocks": ("44: reads and then writes the same memory", "thread (0 of block 0)"),
}
"""Kernel to the line, what is changed, and who changed it before."""

KEPT = {"atomic": 196, "own": 0, "tree": 2016, "lock": 32640, "turns": 496, "barriers": 2016}
"""Kernel to its first sum."""


def first_sum(name, cache, **options):
    """What a kernel leaves in its first number in each order of threads."""
    device = CpuDevice(KERNELS, [], cache=cache, **options)
    blocks = 1 if name in ("turns", "barriers") else 4
    shape = (blocks, 1, 1), (32 if name == "turns" else 64, 1, 1)
    given = [X, np.zeros(256, np.int32), np.int32(200 if name != "lock" else 256)]
    build = Build.of("updates.cu", {}, [*LOST, *KEPT])
    return {launch(device, build, name, *shape, given)[1][0] for _ in ORDERS}


@pytest.mark.parametrize("name", LOST)
def test_two_threads_that_change_the_same_memory_fail(name, tmp_path):
    line, other = LOST[name]
    for order in ORDERS:
        with pytest.raises(LaunchFailed, match="a GPU loses one of the two updates") as caught:
            first_sum(name, tmp_path, watched=True, orders=(order,))
        assert f"{name}: updates.cu:{line} as another thread" in str(caught.value)
        assert order != "forward" or other in str(caught.value)
    # Nothing shows where accesses are not watched.
    assert len(first_sum(name, tmp_path)) == 1


@pytest.mark.parametrize("name", KEPT)
def test_what_atomics_barriers_and_locks_order_does_not(name, tmp_path):
    assert first_sum(name, tmp_path, watched=True) == {KEPT[name]}
