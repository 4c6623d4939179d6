"""Kept libraries follow their sources; the compiler itself; arguments and variables of kernels."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest

from launchwise.cpu import library, toolchain
from launchwise.cpu.device import CpuDevice
from launchwise.cpu.toolchain import CannotCompile, CannotRun
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

ONE = (1, 1, 1)


def value(device, kernel="f", build=Build.of("f.cu", {})):  # noqa: B008
    """The number that a kernel stores."""
    return int(launch(device, build, kernel, ONE, ONE, [np.zeros(1, np.int32)])[0][0])


def reopened(device, folder):
    """Another device with the same kept libraries, as another process has it."""
    return CpuDevice(folder, [], cache=folder / "compiled")


# Kept libraries


def test_a_changed_file_is_never_answered_from_a_kept_library(tmp_path):
    own = '#define OWN "own.h"\n#include OWN\n'
    source = own + "__global__ void f(int *out) { *out = VALUE + 1; }\n"
    device = device_for(tmp_path, {"f.cu": source, "own.h": "#define VALUE 1\n"})
    assert value(device) == 2
    (tmp_path / "own.h").write_text("#define VALUE 5\n")
    assert value(reopened(device, tmp_path)) == 6
    (tmp_path / "f.cu").write_text(source.replace("+ 1", "+ 2"))
    assert value(reopened(device, tmp_path)) == 7
    # A file that is as it was before is not compiled again.
    (tmp_path / "own.h").write_text("#define VALUE 1\n")
    (tmp_path / "f.cu").write_text(source)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "compiled").glob("*.so")}
    assert value(reopened(device, tmp_path)) == 2
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "compiled").glob("*.so")} == kept
    assert len(kept) == 3


def test_headers_of_other_folders_and_new_ones_belong_to_a_kept_library(tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "value.h").write_text("#define VALUE 1\n")
    source = """#include "../beside/value.h"
#if __has_include(<other.h>)
#include <other.h>
#endif
__global__ void f(int *out) { *out = VALUE; }
"""
    folder = tmp_path / "own"
    device = device_for(folder, {"f.cu": source})
    assert value(device) == 1
    (tmp_path / "beside" / "value.h").write_text("#define VALUE 2\n")
    assert value(reopened(device, folder)) == 2
    (folder / "other.h").write_text("#undef VALUE\n#define VALUE 3\n")
    assert value(reopened(device, folder)) == 3


@pytest.mark.parametrize("kernels", [[], ["f"]])
def test_no_file_of_the_current_folder_is_read(tmp_path, monkeypatch, kernels):
    source = '#include "own.h"\n__global__ void f(int *out) { *out = VALUE; }'
    device = device_for(tmp_path / "f", {"f.cu": source, "own.h": "#define VALUE 1\n"})
    (tmp_path / "f.cu").write_text("__global__ void f(int *out) { *out = 2; }")
    (tmp_path / "own.h").write_text("#define VALUE 3\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(device, "_compiler", library.Compiler(Path("f"), [], Path("f/compiled")))
    assert value(device, build=Build.of("f.cu", {}, kernels)) == 1


def test_bytes_of_other_encodings_pass_through(tmp_path):
    device = device_for(tmp_path, {})
    comment = b"// \xe9crit \xe0 la main\n"
    (tmp_path / "own.h").write_bytes(comment + b"#define VALUE 7\n")
    text = b'#include "own.h"\n__global__ void f(int *out) { *out = VALUE + ("\xe9"[0] == -23); }'
    (tmp_path / "f.cu").write_bytes(comment + text)
    build = Build.of("f.cu", {}, ["f"])
    assert value(device, build=build) == 8
    (tmp_path / "f.cu").write_bytes(comment + b'\n#error "\xe9"\n' + text)
    with pytest.raises(CannotCompile, match=r'^f\.cu:3: #error "\?"$'):
        value(reopened(device, tmp_path), build=build)


@pytest.fixture
def copied_headers(monkeypatch):
    """What a new temporary folder is filled with is copied, not compiled anew."""
    header, runtime = toolchain.precompiled()
    ready = header.with_name(f"{header.name}.gch")

    def copied(options, scratch):
        shutil.copy(runtime if "-c" in options else ready, scratch)

    monkeypatch.setattr(toolchain, "_built", copied)


@pytest.mark.usefixtures("copied_headers")
def test_a_cleaned_temporary_folder_is_filled_again(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "system"))
    for number in range(2):
        (tmp_path / "system").mkdir()
        folder = tmp_path / str(number)
        device = device_for(folder, {"f.cu": "__global__ void f(int *out) { *out = 4; }"})
        assert value(device) == 4
        shutil.rmtree(tmp_path / "system")


def test_a_copy_of_a_folder_is_answered_from_what_was_kept_for_the_other(tmp_path):
    sources = {
        "f.cu": '#include <cassert>\n#include "own.h"\n__global__ void f(int *out) {\n'
        "  assert(*out == 0);\n  *out = VALUE;\n}\n",
        "own.h": "#define VALUE 3\n",
    }
    kept = tmp_path / "kept"
    kept.mkdir()
    for name, value_of, libraries in (("one", 3, 1), ("two", 3, 1), ("three", 4, 2)):
        folder = tmp_path / name
        folder.mkdir()
        texts = {**sources, "own.h": f"#define VALUE {value_of}\n"}
        for file, text in texts.items():
            (folder / file).write_text(text)
        device = CpuDevice(folder, [], cache=kept)
        assert value(device) == value_of
        assert len(list(kept.glob("*.so"))) == libraries
        # A failure names the file, and no folder: least of all another copy's.
        with pytest.raises(LaunchFailed, match=r"f\.cu:4: assertion fails") as failed:
            launch(device, Build.of("f.cu", {}), "f", ONE, ONE, [np.ones(1, np.int32)])
        assert str(tmp_path) not in str(failed.value)


@pytest.mark.usefixtures("copied_headers")
def test_flags_and_compiler_belong_to_a_kept_library(tmp_path, monkeypatch):
    device = device_for(tmp_path, {"f.cu": "__global__ void f(int *out) { *out = 4; }"})
    assert value(device) == 4
    digest = toolchain.toolchain.__wrapped__
    before = digest()
    # Headers of "another" compiler stay out of the folder that other tests, of other days, share.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(toolchain, "FLAGS", [*toolchain.FLAGS, "-DOTHER"])
    assert digest() != before
    for part in ("toolchain", "own_code"):
        monkeypatch.setattr(toolchain, part, lambda: "another")
        assert value(reopened(device, tmp_path)) == 4
    assert len(list((tmp_path / "compiled").glob("*.so"))) == 3


# A compiler that something else ends, or that is missing


@pytest.mark.parametrize(
    "ends",
    ["kill -9 $$", 'echo "g++: fatal error: Killed signal terminated program cc1plus" >&2; exit 1'],
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
        device.prepare(Build.of("f.cu", {}, ["f"]))
    assert not isinstance(raised.value, CannotRun)
    # It is tried again: the next time there may be more memory.
    (tmp_path / "free").touch()
    assert value(device) == 3


def test_a_missing_compiler_is_said(tmp_path, monkeypatch):
    device = device_for(tmp_path, {"f.cu": "__global__ void f(int *out) {}"})
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    with pytest.raises(CannotCompile, match=r"g\+\+ is not on the PATH"):
        value(device)


# Arguments and variables


def test_a_launch_that_no_gpu_accepts_is_refused(tmp_path):
    device = device_for(tmp_path, {"f.cu": "__global__ void f(int *out) { *out = 1; }"})
    for grid, block, shared, said in (
        (ONE, (32, 33, 1), 0, "has more than 1024 threads"),
        (ONE, (1, 1, 65), 0, "allowed up to"),
        ((1, 65536, 1), ONE, 0, "allowed up to"),
        ((0, 1, 1), ONE, 0, "each must be at least 1"),
        (ONE, ONE, 300_000, "300000 B of shared memory"),
    ):
        with pytest.raises(LaunchFailed, match=said):
            launch(device, Build.of("f.cu", {}), "f", grid, block, [np.zeros(1, np.int32)], shared)


def test_variables_are_found_by_name(tmp_path):
    source = """
extern "C" { __constant__ int c_name[3]; }
namespace inner { __constant__ static double own[2]; }
__device__ int counter = 5;
__global__ void f(int *out) { *out = c_name[2] + (int)inner::own[1] + counter++; }
"""
    device = device_for(tmp_path, {"f.cu": source})
    build = Build.of("f.cu", {})
    assert device.constant(build, "c_name").nbytes == 12
    device.upload(device.constant(build, "c_name"), np.array([1, 2, 3], np.int32))
    device.upload(device.constant(build, "own"), np.array([10.0, 20.0]))
    assert [value(device), value(device)] == [28, 29]
    with pytest.raises(
        LaunchFailed, match=r"no __constant__ or __device__ variable filter \(it has"
    ):
        device.constant(build, "filter")
