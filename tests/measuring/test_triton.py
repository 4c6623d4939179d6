"""Variants in Triton: builds from the spec, compiled without a GPU."""

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest
from mistakes import planted
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.cli.app import main
from launchwise.measuring import triton_compiler
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle, left_out
from launchwise.measuring.job import compilable
from launchwise.measuring.source_states import fingerprint, source_state
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Launch
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.spec import load_spec
from tests.measuring.conftest import DATA, MISTAKES

HERE = {"n": 1000, "dtype": "float32"}


@pytest.fixture
def folder(tmp_path):
    """A workload of one variant in CUDA and one in Triton."""
    return Path(shutil.copytree(DATA / "twice_triton", tmp_path / "twice"))


@pytest.fixture(autouse=True)
def _asked_anew():
    triton_compiler.release.cache_clear()
    yield
    triton_compiler.release.cache_clear()


def only_triton(folder):
    """Leave out the variant in CUDA."""
    before, _, after = (folder / "spec.yaml").read_text().partition("  cuda:\n")
    text = before + "  triton:\n" + after.partition("  triton:\n")[2]
    (folder / "spec.yaml").write_text(text.replace("variant: cuda", "variant: triton"))


def build_of(folder, n, **more):
    """Build of the variant in Triton for n elements."""
    problem = {**HERE, "n": n}
    configuration = {"variant": "triton", "BLOCK": 64, "num_warps": 4, **more}
    return load_workload(folder, load_spec(folder)).build(problem, configuration)


SPECIALISED = {
    "a multiple of 16": (4096, "", "i32:16"),
    "no multiple": (4104, "", "i32"),
    "one": (1, "", "1"),
    "one, in general": (1, '(do_not_specialize=["n"])', "i32"),
    "a multiple, in general": (4096, '(do_not_specialize=["n"])', "i32"),
    "not by alignment": (4096, '(do_not_specialize_on_alignment=["n"])', "i32"),
    "one, not by alignment": (1, '(do_not_specialize_on_alignment=["n"])', "1"),
}


@pytest.mark.parametrize("case", SPECIALISED)
def test_types_follow_from_the_spec_as_triton_specialises(folder, case):
    n, how, kind = SPECIALISED[case]
    planted(folder, "twice.py", "@triton.jit", f"@triton.jit{how}")
    assert dict(build_of(folder, n).defines) == {
        **{"y": "*fp32:16", "x": "*fp32:16", "n": kind, "factor": "fp32"},
        **{"BLOCK": "64", "num_warps": "4", "HALVES": "0"},
    }


def test_the_block_is_that_of_its_warps(folder):
    configuration = {"variant": "triton", "BLOCK": 64, "num_warps": 4}
    (shape,) = launch_shapes(load_spec(folder), HERE, configuration)
    assert (shape.block, shape.grid, shape.shared_bytes) == ((128, 1, 1), (16, 1, 1), None)


def test_only_what_a_kernel_prints_is_refused(folder):
    decorator = "@triton.heuristics({'HALVES': lambda given: print(given)})\n@triton.jit"
    planted(folder, "twice.py", "@triton.jit", decorator)
    assert load_spec(folder).variants["triton"].kernel == "twice"


@pytest.mark.parametrize("mistake", MISTAKES["triton"])
def test_a_mistake_is_told_in_one_line(folder, capsys, mistake):
    *change, said = MISTAKES["triton"][mistake]
    planted(folder, *change)
    assert main(["check", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_its_sources_belong_to_its_variant_alone(folder):
    before = source_state(folder, load_spec(folder))
    planted(folder, "parts.py", "import triton\n", "import triton\n\n")
    after = source_state(folder, load_spec(folder))
    assert before.agrees(after, "cuda")
    assert not before.agrees(after, "triton")


@pytest.fixture
def compiled(folder, monkeypatch):
    """Bundle of builds of Triton, which needs no nvcc."""

    def compile_builds(builds, folder=folder):
        monkeypatch.setattr("launchwise.measuring.compile.nvcc_release", lambda: "13.0")
        path = folder.parent / "x.cubins"
        compile_bundle(folder, load_spec(folder), builds, "sm_90", path, 1)
        return Bundle(path)

    return compile_builds


@pytest.mark.triton
def test_another_release_of_triton_makes_other_kernels(folder, monkeypatch):
    before = fingerprint(folder, "13.0")
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.0.0")
    assert fingerprint(folder, "13.0") != before
    (folder / "twice.py").write_text("no source of Triton\n")
    (folder / "parts.py").unlink()
    alone = fingerprint(folder, "13.0")
    monkeypatch.undo()
    assert fingerprint(folder, "13.0") == alone


def old_triton(path, monkeypatch):
    """A package of that name without the calls of later releases."""
    (path / "triton").mkdir()
    (path / "triton" / "__init__.py").write_text("__version__ = '2.1.0'\n")
    monkeypatch.syspath_prepend(path)
    monkeypatch.setenv("PYTHONPATH", f"{path}:{ROOT}")


@pytest.mark.parametrize("which", ["none", "an old one"])
def test_without_triton_the_variant_is_left_out_in_one_line(
    folder, which, tmp_path, caplog, monkeypatch, compiled
):
    if which == "none":
        monkeypatch.setattr(triton_compiler.importlib.util, "find_spec", lambda name: None)
        said = "triton is missing: pip install 'triton>=3.6'"
    else:
        old_triton(tmp_path, monkeypatch)
        said = "triton 2.1.0 lacks what launchwise calls: No module named 'triton.backends'"
    build = build_of(folder, 16)
    missing = left_out([build], "sm_90")
    with caplog.at_level(logging.WARNING):
        assert list(compilable(load_spec(folder), missing).variants) == ["cuda"]
        bundle = compiled([build])
    of_sweep, of_stage = caplog.messages
    assert of_sweep.startswith(f"twice: variant triton is left out: {said}")
    assert of_stage == f"twice: twice.py is left out: {missing['twice.py']}"
    assert bundle.left_out == missing
    assert bundle.refused.keys() == {build.key}


def test_without_triton_a_check_says_it_once_and_has_compiled_nothing(folder, capsys, monkeypatch):
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc compiles the other variant")
    monkeypatch.setattr(triton_compiler.importlib.util, "find_spec", lambda name: None)
    said = "twice.py: triton is missing: pip install 'triton>=3.6'"
    assert main(["check", str(folder)]) in (0, None)
    told = [line for line in capsys.readouterr().out.splitlines() if " compile: " in line]
    assert told == [f"left out compile: {said}", "ok       compile: 4 builds compile for sm_90"]
    only_triton(folder)
    assert main(["check", str(folder)]) == 1
    told = capsys.readouterr()
    assert [line for line in told.out.splitlines() if " compile: " in line] == [
        f"left out compile: {said}"
    ]
    assert told.err == f"launchwise: nothing was compiled: {said}\n"


@pytest.mark.triton
def test_a_build_has_a_cubin_and_what_its_launch_needs(folder, compiled):
    builds = [build_of(folder, 4096), build_of(folder, 1, num_warps=1)]
    bundle = compiled(builds)
    assert bundle.compilers.keys() == {"triton"}
    arguments = ("y", "x", np.int32(1), np.float32(2))
    for build, warps, given in (
        (builds[0], 4, arguments),
        # The integer 1 is no parameter any more.
        (builds[1], 1, ("y", "x", np.float32(2))),
    ):
        kernel = bundle.kernel(build, "twice")
        assert kernel.registers > 0
        assert bundle.cubin(kernel.cubin).startswith(b"\x7fELF")
        assert kernel.symbol.encode() in bundle.cubin(kernel.cubin)
        launch = kernel.completed(Launch(build, "twice", (7, 1, 1), (9, 1, 1), arguments))
        assert (launch.grid, launch.block) == ((7, 1, 1), (32 * warps, 1, 1))
        assert launch.arguments[: len(given)] == given
        assert set(launch.arguments[len(given) :]) == {np.uint64(0)}


@pytest.mark.triton
@pytest.mark.parametrize("case", MISTAKES["triton, refused"])
def test_what_triton_refuses_is_one_line(folder, case, compiled):
    *change, said = MISTAKES["triton, refused"][case]
    planted(folder, *change)
    with pytest.raises(UserError) as told:
        compiled([build_of(folder, 4096)])
    assert said in str(told.value)


@pytest.mark.triton
def test_a_configuration_that_triton_refuses_is_one_refused_build(folder, compiled):
    builds = [build_of(folder, 4096, BLOCK=size) for size in (96, 128)]
    bundle = compiled(builds)
    (said,) = bundle.refused.values()
    assert said == "triton failed: twice.py:9: arange's range must be a power of 2"
    assert bundle.kernel(builds[1], "twice").registers > 0


@pytest.mark.triton
def test_blocks_of_a_program_instance_multiply_the_grid(folder, compiled):
    planted(folder, "spec.yaml", "BLOCK, num_warps]", "BLOCK, num_warps, num_ctas]")
    planted(
        folder,
        "spec.yaml",
        "tunables:\n  B",
        "tunables:\n  num_ctas: {kind: build, values: [1, 2]}\n  B",
    )
    build = build_of(folder, 4096, num_ctas=2)
    kernel = compiled([build]).kernel(build, "twice")
    launch = Launch(build, "twice", (7, 3, 1), (128, 1, 1), ("y", "x", 4096, 2.0))
    assert kernel.completed(launch).grid == (14, 3, 1)


@pytest.mark.triton
def test_a_limit_of_registers_may_be_none(folder, compiled):
    planted(folder, "spec.yaml", "BLOCK, num_warps]", "BLOCK, num_warps, maxnreg]")
    maxnreg = "tunables:\n  maxnreg: {kind: build, values: [0, 24]}\n  B"
    planted(folder, "spec.yaml", "tunables:\n  B", maxnreg)
    planted(folder, "spec.yaml", "values: [64, 128]}", "values: [64, 4096]}")
    builds = [build_of(folder, 4096, BLOCK=4096, num_warps=1, maxnreg=n) for n in (0, 24)]
    bundle = compiled(builds)
    free, limited = (bundle.kernel(build, "twice").registers for build in builds)
    assert free > 24 >= limited


@pytest.mark.triton
def test_a_build_may_need_more_shared_memory_than_a_card_has(tmp_path, compiled):
    # It is no refusal: the launch on a card of that size is a row that failed.
    folder = tmp_path / "matmul"
    data = ROOT / "tests" / "cli" / "data"
    assert main(["new", str(folder), "--from", str(data / "triton" / "matmul.py")]) == 0
    shutil.copy(data / "triton_references" / "matmul.py", folder / "reference.py")
    spec = load_spec(folder)
    large = {**spec.baseline, "BLOCK_SIZE_K": 64, "num_stages": 5}
    build = load_workload(folder, spec).build({"M": 512, "N": 512, "K": 512}, large)
    bundle = compiled([build], folder)
    launch = bundle.kernel(build, "matmul_kernel").launch
    assert not bundle.refused
    assert launch["shared_bytes"] > 232_448
