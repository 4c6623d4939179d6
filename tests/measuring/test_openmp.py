"""Variants in C with OpenMP: checked on the CPU, compiled by Clang, left out without it."""

import logging
import re
import shutil
from pathlib import Path

import pytest
from mistakes import planted

from launchwise.base.errors import UserError
from launchwise.cli.app import main
from launchwise.measuring import openmp
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle, left_out
from launchwise.measuring.job import compilable
from launchwise.workloads.builds import Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import FunctionRun, builds_in_order
from tests.measuring.conftest import DATA, MISTAKES

needs_clang = pytest.mark.skipif(
    bool(left_out([Build.of("any.c", {})], "sm_90")),
    reason="needs Clang with OpenMP for sm_90, and ptxas of CUDA 12",
)
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")


@pytest.fixture
def folder(tmp_path):
    """A workload of one variant in CUDA and one in C."""
    return Path(shutil.copytree(DATA / "twice_openmp", tmp_path / "twice"))


@needs_gxx
def test_a_function_in_c_is_checked_on_the_cpu(folder, capsys):
    assert main(["check", str(folder), "n=1000", "dtype=float32,float64", "--cpu"]) in (0, None)
    told = capsys.readouterr().out.splitlines()
    ran = [line for line in told if line.startswith("ok       cpu: openmp step=")]
    assert len(ran) >= 3, told


@needs_gxx
@pytest.mark.parametrize("mistake", MISTAKES["openmp"])
def test_a_mistake_in_it_is_told_in_one_line(folder, capsys, mistake):
    *change, said = MISTAKES["openmp"][mistake]
    planted(folder, *change)
    assert main(["check", str(folder), "n=1000", "dtype=float32", "--cpu"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def builds_of(folder, dtype):
    """The spec, and builds of the variant in C."""
    workload = load_workload(folder, spec := load_spec(folder))
    choices = ({"variant": "openmp", "step": step} for step in (0, 4))
    return spec, [workload.build({"n": 9, "dtype": dtype}, each) for each in choices]


@needs_clang
@pytest.mark.nvcc
def test_clang_makes_a_library_per_build(folder, tmp_path):
    spec, builds = builds_of(folder, "float64")
    compile_bundle(folder, spec, builds, "sm_90", tmp_path / "x.cubins", 1)
    bundle = Bundle(tmp_path / "x.cubins")
    assert bundle.compilers.keys() == {"clang", "ptxas"}
    for build in builds:
        function = bundle.kernel(build, "twice")
        assert function.registers > 0
        content = bundle.cubin(function.cubin)
        assert content.startswith(b"\x7fELF")
        assert function.symbol.encode() in content
        # The device's code: an executable for the ABI that LLVM's runtime takes.
        at = content.index(b"\x7fELF\x02\x01\x01\x33\x07", 1)
        assert content[at + 16] == 2
    assert bundle.cubin(bundle.kernel(builds[0], "twice").cubin) != content


@needs_clang
@pytest.mark.nvcc
def test_what_clang_refuses_names_file_and_line(folder, tmp_path):
    planted(folder, "twice.c", "tile sizes(step)", "tile size(step)")
    spec, builds = builds_of(folder, "float32")
    compile_bundle(folder, spec, builds, "sm_90", tmp_path / "x.cubins", 1)
    (said,) = Bundle(tmp_path / "x.cubins").refused.values()
    assert said.startswith("clang failed: twice.c:5: ")
    with pytest.raises(UserError, match=r"clang failed: twice\.c:5: "):
        compile_bundle(folder, spec, builds[1:], "sm_90", tmp_path / "x.cubins", 1)


MACHINES = {
    "no clang": ({}, "clang is not on the PATH: apt-get install clang-19"),
    "no library of LLVM": ({"clang-19": "19.1.7"}, "libomptarget .* no OpenMP library for sm_90"),
    "ptxas 13 alone": (
        {"clang-19": "19.1.7", "ptxas": "13.0", "bc": ""},
        r"ptxas of CUDA 12 is missing \(found 13.0\): pip install nvidia-cuda-nvcc-cu12",
    ),
}  # fmt: skip


@pytest.fixture
def machine(tmp_path, monkeypatch, request):
    """A PATH with these programs alone; gives what must be said."""
    programs, said = MACHINES[request.param]
    bin_folder, library = tmp_path / "bin", tmp_path / "lib"
    bin_folder.mkdir()
    library.mkdir()
    if "bc" in programs:
        (library / "libomptarget-nvptx-sm_90.bc").touch()
    resources = f"-print-resource-dir) echo {library}/clang/19;;"
    for name, release in programs.items():
        text = f"clang version {release} (x)" if name.startswith("clang") else f"release {release},"
        script = f"#!/bin/sh\ncase $1 in {resources} *) echo '{text}';; esac\n"
        (bin_folder / name).write_text(script)
        (bin_folder / name).chmod(0o755)
    openmp.clang_for.cache_clear()
    monkeypatch.setattr(openmp.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(bin_folder))
    return said


@pytest.mark.parametrize("machine", MACHINES, indirect=True)
def test_without_a_compiler_the_variant_is_left_out_and_the_line_says_what_to_install(
    folder, machine, caplog
):
    spec = load_spec(folder)
    builds = builds_in_order(load_workload(folder, spec), [{"n": 9, "dtype": "float32"}])
    missing = left_out(builds, "sm_90")
    openmp.clang_for.cache_clear()
    assert missing.keys() == {"twice.c"}
    with caplog.at_level(logging.WARNING):
        assert list(compilable(spec, missing).variants) == ["cuda"]
    (said,) = caplog.messages
    assert said.startswith("twice: variant openmp is left out: ")
    assert re.search(machine, said), said


def test_a_baseline_without_a_compiler_ends_the_sweep(folder):
    planted(folder, "spec.yaml", "{variant: cuda,", "{variant: openmp,")
    with pytest.raises(UserError, match="twice: openmp: no clang"):
        compilable(load_spec(folder), {"twice.c": "no clang"})


def test_a_call_in_place_of_a_launch(folder):
    from launchwise.cpu.device import CpuDevice

    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers)
    session = workload.open(device, {"n": 9, "dtype": "float32"}, (), 1)
    work = session.launch({"variant": "openmp", "step": 4})
    assert isinstance(work, FunctionRun)
    assert len(work.restores) == 1  # y, which the function changes
    session.close()
