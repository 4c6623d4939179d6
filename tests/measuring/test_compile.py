"""The compile stage: what ptxas and nvcc say, what nvcc refuses, which sources decide."""

import contextlib
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.measuring import compile
from launchwise.measuring.bundle import Bundle, refusal, write_bundle
from launchwise.measuring.compile import Compiler, compile_bundle, nvcc_release, parse_resources
from launchwise.measuring.source_states import digest_of_sources, earlier_fingerprints, fingerprint
from launchwise.workloads.builds import Build, by_source
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order
from tests.measuring.conftest import DATA
from tests.support.nvcc import kept_nvcc, needs_nvcc
from tests.support.samples import SAXPY, STENCIL


def test_registers_spills_and_shared_memory_are_read_kernel_by_kernel():
    found = parse_resources((DATA / "ptxas_resources.txt").read_text())
    assert found["block3d_0a1b"] == {"registers": 40, "spill_bytes": 0, "shared_bytes": 0}
    assert found["linear_0a1b"]["registers"] == 255
    assert found["linear_0a1b"]["shared_bytes"] == 4096
    # Those of a function that a kernel calls are added to the kernel's own.
    assert found["linear_0a1b"]["spill_bytes"] == 24 + 36 + 4 + 8
    assert set(found) == {"block3d_0a1b", "linear_0a1b"}
    assert parse_resources("") == {}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'Cuda compilation tools, release 12.4, V12.4.131'", ""),
        ("echo broken >&2; exit 1", "compile: nvcc: does not report its release: broken"),
        (None, "compile: nvcc: is not on the PATH: install the CUDA toolkit"),
    ],
)
def test_the_release_is_what_nvcc_says(monkeypatch, tmp_path, script, said):
    nvcc = tmp_path / "nvcc"
    if script is not None:
        nvcc.write_text(f"#!/bin/sh\n{script}\n")
        nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    if not said:
        assert nvcc_release() == "12.4"
        return
    with pytest.raises(UserError) as caught:
        nvcc_release()
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (STENCIL, ("linear.cu", "stencil.cuh", "spec.yaml")),
        (SAXPY, ("saxpy.cu", "host/workload.py", "spec.yaml")),
    ],
    ids=["declared", "with host code"],
)
def test_the_fingerprint_follows_every_source_and_the_compiler(tmp_path, workload, names):
    folder = tmp_path / workload.name
    shutil.copytree(workload, folder)
    seen = {fingerprint(folder, "13.0"), fingerprint(folder, "12.4")}
    for name in names:
        with open(folder / name, "a") as file:
            file.write("\n")
        seen.add(fingerprint(folder, "13.0"))
    assert len(seen) == 2 + len(names)
    (folder / "README.md").write_text("changed")
    assert fingerprint(folder, "13.0") in seen


def test_a_predecessor_has_the_fingerprint_that_its_folder_had(tmp_path):
    folder = tmp_path / "stencil"
    shutil.copytree(STENCIL, folder)
    before, sources = fingerprint(folder, "13.0"), digest_of_sources(folder)
    state = f"- {{sources: {sources}, commit: abc1234, why: a comment}}\n"
    (folder / "predecessors.yaml").write_text(state)
    with open(folder / "linear.cu", "a") as file:
        file.write("// a comment\n")
    assert fingerprint(folder, "13.0") != before
    assert earlier_fingerprints(folder, "13.0") == [before]
    assert earlier_fingerprints(folder, "12.4") != [before]
    for text, said in [
        ("sources: x\n", "must be a list"),
        ("- {sources: xyz, commit: abc1234, why: no}\n", "sources: must match pattern"),
        ("- {sources: 0123456789abcdef, commit: abc1234}\n", "why: is missing"),
    ]:
        (folder / "predecessors.yaml").write_text(text)
        with pytest.raises(UserError, match=said):
            earlier_fingerprints(folder, "13.0")


def test_of_a_hundred_thousand_errors_the_first_are_told(tmp_path):
    """As of a header that includes itself twice: each behind the other would take hours."""
    errors = [
        f"loop.h({n}): error: nested too deep\n        {'again' * 20}" for n in range(100_000)
    ]
    said = refusal("\n".join(errors), RuntimeError(), tmp_path)
    assert said.startswith("nvcc failed: loop.h:0: nested too deep: again")
    assert "loop.h:2: " in said
    assert "loop.h:3: " not in said


class TestOneArchitecture:
    """What need not be tried on all of them."""

    pytestmark = needs_nvcc

    def test_two_compilations_give_the_same_bytes(self, tmp_path, stencil_spec):
        workload = load_workload(STENCIL, stencil_spec)
        builds = builds_in_order(workload, [{"n": 64, "dtype": "float32", "order": 2}])
        # Of every source some, in several groups.
        builds = [build for own in by_source(builds).values() for build in own[:2]]
        for name in "ab":
            path = tmp_path / name
            compile_bundle(STENCIL, stencil_spec, builds, "sm_90", path, 2)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_an_architecture_that_nvcc_does_not_know_is_one_line(self, tmp_path, stencil_spec):
        workload = load_workload(STENCIL, stencil_spec)
        builds = builds_in_order(workload, [{"n": 64, "dtype": "float32", "order": 2}])
        with pytest.raises(UserError, match=r"nvcc failed: .*sm_20"):
            compile_bundle(STENCIL, stencil_spec, builds, "sm_20", tmp_path / "x", 2)

    def test_a_unit_that_grows_without_end_is_refused(self, tmp_path, stencil_spec, monkeypatch):
        """Here: to more than 512 bytes of preprocessed source."""
        monkeypatch.setattr(compile, "MOST_BLOCKS", 1)
        workload = load_workload(STENCIL, stencil_spec)
        builds = builds_in_order(workload, [{"n": 64, "dtype": "float32", "order": 2}])
        with pytest.raises(UserError, match=r"nvcc failed: .*"):
            compile_bundle(STENCIL, stencil_spec, builds[-1:], "sm_90", tmp_path / "x", 2)

    def test_an_nvcc_that_is_ended_by_a_signal_refuses_nothing(self, stencil_spec):
        workload = load_workload(STENCIL, stencil_spec)
        build = builds_in_order(workload, [{"n": 64, "dtype": "float32", "order": 2}])[0]
        with Compiler(STENCIL, stencil_spec, "sm_90") as compiler, ThreadPoolExecutor(1) as pool:
            compiled = pool.submit(compiler.compile, [build])
            ended = end_the_first_nvcc()
            assert not compiled.result().refused
            assert [build] in [group for group, _ in compiled.result().cubins]
        assert ended


def end_the_first_nvcc(patience_s=30):
    """Send SIGTERM to the first nvcc below this process, and to what it started; their numbers."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.name() == "nvcc":
                    ended = [process, *process.children(recursive=True)]
                    for each in ended:
                        # What it started may have ended with it; another nvcc must not be ended.
                        with contextlib.suppress(psutil.NoSuchProcess):
                            each.terminate()
                    return [each.pid for each in ended]
        time.sleep(0.01)
    return []


DESCRIBED = ROOT / "docs" / "tutorial" / "example" / "convolution"


class TestDescribed:
    """A workload of one file."""

    pytestmark = kept_nvcc

    def test_a_build_without_its_kernel_is_refused(self, tmp_path):
        folder = Path(shutil.copytree(DESCRIBED, tmp_path / "convolution"))
        spec = load_spec(folder)
        source = folder / "convolution.cu"
        text = source.read_text()
        source.write_text(text.replace("__global__ void conv", "static __device__ void conv"))
        builds = builds_in_order(load_workload(folder, spec), [{"w": 64, "h": 48}])[:2]
        with pytest.raises(UserError, match=r"compiles to no kernel convolution_k"):
            compile_bundle(folder, spec, builds, "sm_90", tmp_path / "x.cubins", 1)


def test_a_bundle_holds_what_was_refused_and_nothing_else(tmp_path):
    builds = [Build.of("kernels.cu", {"N": str(n)}) for n in range(3)]
    index = {"arch": "sm_90", "toolkit": "", "fingerprint": "", "cubins": []}
    index |= {"builds": {builds[0].key: {}}, "refused": {builds[1].key: "why"}}
    write_bundle(tmp_path / "x", index, {})
    assert [*map(Bundle(tmp_path / "x").holds, builds)] == [True, True, False]


def test_messages_of_several_lines_and_of_several_errors_are_one_line():
    said = refusal((DATA / "nvcc_errors.txt").read_text(), RuntimeError(), Path("/made/up"))
    overloaded, twice, missing = said.split("; ")
    assert overloaded == (
        'nvcc failed: half.cu:7: more than one instance of overloaded function "max" matches the '
        'argument list: function "max(int, int)", function "max(int, unsigned int)", '
        'function "max(long, long)", 1 more, argument types are: (int, long)'
    )
    assert twice == (
        'half.cu:9: no instance of function "twice" matches the argument list: '
        "argument types are: (float *)"
    )
    assert missing == 'part.cuh:3: expected a ";"'
