"""CUDA files as their authors left them, through nvcc: several builds in one unit."""

import copy
import re

import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import Compiler, compile_bundle
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order
from tests.measuring.conftest import DATA
from tests.support.nvcc import kept_nvcc

UNITS = DATA / "units"
SPEC = yaml.safe_load((UNITS / "spec.yaml").read_text())
FILES = {name: (UNITS / name).read_bytes() for name in ("host.cu", "sizes.h", "deep/once.cuh")}
TEMPLATES, C_NAMES = ((UNITS / name).read_bytes() for name in ("templates.cu", "c_names.cu"))


def changed(spec, **macros):
    """The spec with macros, and without an array in constant memory."""
    raw = copy.deepcopy(spec)
    del raw["arguments"]["w"]
    return {**raw, "macros": macros}


def write(folder, spec, files):
    """A workload's folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder


def compiled(folder, problem, threads=1):
    """Bundle, and builds of the workload's own kernels, of every configuration of a problem."""
    spec = load_spec(folder)
    builds = builds_in_order(load_workload(folder, spec), [problem])
    path = folder / "x.cubins"
    compile_bundle(folder, spec, builds, "sm_90", path, threads)
    return Bundle(path), [build for build in builds if build.kernels]


class TestHost:
    """A file with host code, local headers, and a macro in #pragma unroll."""

    pytestmark = kept_nvcc

    def test_it_compiles_with_each_set_of_macros_in_one_unit(self, tmp_path):
        folder = write(tmp_path / "host", SPEC, FILES)
        bundle, builds = compiled(folder, {"n": 1000})
        assert len(builds) == 6
        assert bundle.index["cubins"] == ["0.cubin"], bundle.refused
        sizes, registers = {}, set()
        for build in builds:
            kernel = bundle.kernel(build, "copy")
            assert kernel.symbol.encode() in bundle.cubin(kernel.cubin)
            assert bundle.constant(build, "hidden").encode() in bundle.cubin(kernel.cubin)
            sizes[build.defines] = kernel.shared_bytes
            if dict(build.defines)["BLOCK"] == "32":
                registers.add(kernel.registers)
        # Each unroll factor is other code.
        assert len(registers) == 3
        # WIDE is defined for one block size and must not outlive its build.
        assert {size for (block, _), size in sizes.items() if block[1] == "32"} == {0}
        assert {size for (block, _), size in sizes.items() if block[1] == "128"} == {1024}


def test_builds_refused_alike_are_no_fault_of_a_source_that_another_compiles(tmp_path, monkeypatch):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(
        "#!/bin/sh\necho release 13.0\ntest $1 = --version && exit\n"
        "if grep -q 'BLOCK 32' kernel.cu || ! grep -q 'define UNROLL' kernel.cu; then\n"
        "echo 'kernel.cu(1): error: too narrow' >&2; exit 1\nfi\ntouch kernel.cubin\n"
    )
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    folder = write(tmp_path / "host", SPEC, FILES)
    spec = load_spec(folder)
    every = builds_in_order(load_workload(folder, spec), [{"n": 1000}])
    own = [build for build in every if build.kernels]
    narrow = [build for build in own if ("BLOCK", "32") in build.defines]
    wide = [build for build in own if build not in narrow]
    with Compiler(folder, spec, "sm_90") as compiler:
        found = compiler.compile([*narrow, *wide])
    assert set(found.refused) == {build.key for build in narrow}
    assert [build for group, _ in found.cubins for build in group] == wide


def template_spec():
    """A spec whose variant launches several templates by name."""
    return {**changed(SPEC), **yaml.safe_load((UNITS / "templates.yaml").read_text())}


class TestTemplates:
    """Templates by name, several instantiations in one build."""

    pytestmark = kept_nvcc

    def test_each_instantiation_is_compiled_and_found(self, tmp_path):
        folder = write(tmp_path / "host", template_spec(), {"host.cu": TEMPLATES})
        bundle, builds = compiled(folder, {"n": 1000, "dtype": "bfloat16"})
        assert bundle.index["cubins"] == ["0.cubin"], bundle.refused
        assert [build.kernels[0] for build in builds] == [
            "gemm<32, 4, __nv_bfloat16>",
            "gemm<64, 8, __nv_bfloat16>",
        ]
        for build in builds:
            shared = [bundle.kernel(build, kernel).shared_bytes for kernel in build.kernels]
            rows = int(dict(build.defines).get("BM", build.kernels[0][5:7]))
            expected = [rows * (rows // 8) * 2, rows * 8 * 4, 0, 64, 96 * 4, 128, 0, 96, 0]
            assert shared == expected
            symbols = {bundle.kernel(build, kernel).symbol for kernel in build.kernels}
            assert len(symbols) == len(build.kernels)
            assert "BM" not in dict(build.defines)


HEAD = b"__global__ void copy(int *o, int *i, int n) "


class TestAlone:
    """Files that no two builds can share a unit with, and files that nvcc refuses."""

    pytestmark = kept_nvcc

    def test_a_file_that_no_namespace_can_hold_is_compiled_as_it_is(self, tmp_path):
        spec = changed(SPEC, TUNED="1", BAD="2")
        spec["tunables"]["UNROLL"]["values"] = [4]
        folder = write(tmp_path / "host", spec, {"host.cu": C_NAMES})
        bundle, builds = compiled(folder, {"n": 1000}, threads=2)
        # One more for the project's own kernels.
        assert len(bundle.index["cubins"]) == len(builds) + 1 == 3
        for build in builds:
            kernel = bundle.kernel(build, "copy")
            assert kernel.symbol == f"copy_{build.key}"
            assert kernel.shared_bytes == 4 * int(dict(build.defines)["BLOCK"])

    @pytest.mark.parametrize(
        ("source", "macros", "said"),
        [
            (C_NAMES, {"BAD": "2"}, 'host.cu:5: "BLOCK is set by the spec: put #ifndef'),
            (FILES["host.cu"], {}, "host.cu:13: sizes.h: No such file"),
            (HEAD + b"{ o = x; }", {}, 'host.cu:1: identifier "x"'),
            (
                HEAD + b"{ __shared__ int x[20000]; x[n] = 1; *o = x[*i]; }",
                {},
                "Entry function 'copy(int*, int*, int)' uses too much shared data",
            ),
        ],
    )
    def test_a_message_names_file_and_line_of_the_user(self, tmp_path, source, macros, said):
        spec = changed(SPEC, **macros)
        for name in ("BLOCK", "UNROLL"):
            spec["tunables"][name]["values"] = [128]
        folder = write(tmp_path / "host", spec, {"host.cu": source})
        with pytest.raises(UserError) as caught:
            compiled(folder, {"n": 1000})
        assert not (folder / "x.cubins").exists()
        line = str(caught.value)
        assert said in line
        # Neither names that a build adds nor paths of copies.
        assert not re.search(r"[0-9a-f]{16}|tmpxft|launchwise-units|kernel\.cu", line)

    def test_a_message_about_an_instantiation_names_the_kernel(self, tmp_path):
        spec = template_spec()
        spec["variants"]["only"]["kernels"][0]["kernel"] = "gemm<BM, BM>"
        spec["tunables"]["BM"]["values"] = [32]
        folder = write(tmp_path / "host", spec, {"host.cu": TEMPLATES})
        with pytest.raises(UserError, match=r'host.cu:9: .*template "mine::gemm" is'):
            compiled(folder, {"n": 1000, "dtype": "float32"})
