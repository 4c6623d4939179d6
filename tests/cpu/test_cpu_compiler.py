"""A compiler that is missing, or that something else ends; and what it is not given."""

import os
import shutil

import numpy as np
import pytest

from launchwise.cpu.other_code import other_code
from launchwise.cpu.toolchain import CannotCompile, CannotRun
from launchwise.workloads.builds import Build
from tests.cpu.runs import device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

ONE = (1, 1, 1)
BUILD = Build.of("f.cu", {}, ["f"])


def value(device):
    """The number that the kernel stores."""
    return int(launch(device, BUILD, "f", ONE, ONE, [np.zeros(1, np.int32)])[0][0])


@pytest.mark.parametrize(
    "ends",
    [
        "kill -9 $$",
        'echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1',
    ],
)
def test_a_killed_compiler_is_not_the_fault_of_the_source(tmp_path, monkeypatch, ends):
    device = device_for(tmp_path, {"f.cu": "__global__ void f(int *out) { *out = 3; }"})
    wrapper = tmp_path / "bin" / "g++"
    wrapper.parent.mkdir()
    gxx = shutil.which("g++")
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *-shared*) test -e {tmp_path}/free || {{ {ends}; }};; esac\n'
        f'exec {gxx} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    with pytest.raises(CannotCompile, match=r"^g\+\+ was ended by signal 9 \(Killed\)") as raised:
        device.prepare(BUILD)
    assert not isinstance(raised.value, CannotRun)
    # It is tried again: the next time there may be more memory.
    (tmp_path / "free").touch()
    assert value(device) == 3


def test_a_missing_compiler_is_said(tmp_path, monkeypatch):
    device = device_for(tmp_path, {"f.cu": "__global__ void f(int *out) {}"})
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(CannotCompile, match=r"g\+\+ is not on the PATH"):
        value(device)


SOURCE = """
struct Pair { float x; float y; };
struct Timer { void scaled() { cudaDeviceSynchronize(); } };
constexpr int scaled(int n) { return 2 * n; }
constexpr int place(int n) { return scaled(n) - 1; }
static int launches = 0;
__global__ void sum(float *out) {
    Pair p = {1, 2};
    out[place(1)] = reinterpret_cast<const float *>(&p)[1];
}
void run(float *out) { ++launches; sum<<<1, 1>>>(out); }
int main() { run(nullptr); }
"""


def test_what_a_kernel_needs_stays_though_a_method_of_the_host_has_its_name():
    left_out = {SOURCE[start:end].strip() for start, end, _ in other_code(SOURCE)}
    assert left_out == {
        "struct Timer { void scaled() { cudaDeviceSynchronize(); } };",
        "static int launches = 0;",
        "void run(float *out) { ++launches; sum<<<1, 1>>>(out); }",
        "int main() { run(nullptr); }",
    }
