"""The examples of "Call tuned kernels from other code": each reads a real answer."""

import importlib.util
import json
import runpy
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from exported import needs_gxx, said_by_cpp
from hostile import table_of
from samples import ROOT, SAXPY

from launchwise.cli.recommending import as_json_text, as_text
from launchwise.exporting.exports import write_answers
from launchwise.exporting.formulas import ExportedFormulas
from launchwise.exporting.languages import macros_text
from launchwise.exporting.table import table_of as table_of_study
from launchwise.learning.answers import MEASURED, Answer, Suggestion
from launchwise.learning.features import Domain
from launchwise.workloads.cost import Cost, KernelCost
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.parts import Variant
from launchwise.workloads.space import used
from launchwise.workloads.spec import load_spec

CALLERS = ROOT / "docs" / "how-to" / "callers"
SMOOTH = ROOT / "docs" / "tutorial" / "example" / "smooth"
BEST = {"variant": "smooth", "block_size_x": 64, "block_size_y": 4, "tile_size_y": 2}
WIDTH, HEIGHT = 1000, 300


@pytest.fixture(scope="module")
def answer():
    """An answer for the kernel of the tutorial."""
    best = Suggestion(1, BEST, 0.01, None, None, None, None, None, is_usual=False)
    usual = {**BEST, "items": 8}
    return Answer("h200", {"width": WIDTH, "height": HEIGHT}, MEASURED, [best], usual, "measured")


@pytest.fixture(scope="module")
def printed(answer):
    """What ``launchwise recommend --json`` prints."""
    return as_json_text(answer, load_spec(SMOOTH))


@pytest.fixture(scope="module")
def macros(answer):
    """What ``launchwise recommend --macros`` prints."""
    return macros_text(answer, load_spec(SMOOTH))


def smoothed(image):
    return runpy.run_path(str(SMOOTH / "reference.py"))["expected"](image)


def needs(name):
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing, reason=f"{name} is not installed")


# CuPy


def test_cupy_gets_macros_grid_and_block(printed):
    example = runpy.run_path(str(CALLERS / "cupy_smooth.py"))
    options, grid, block, shared_bytes = example["options_and_launch"](json.loads(printed))
    (launch,) = json.loads(printed)["suggestions"][0]["launches"]
    assert launch["kernel"] == "smooth"
    assert options == ("-Dblock_size_x=64", "-Dblock_size_y=4", "-Dtile_size_y=2")
    assert grid == (16, 38, 1)
    assert block == (64, 4, 1)
    assert shared_bytes == 0


GEMM = load_spec(ROOT / "tests" / "strangers" / "tiled_gemm")


def default_of_gemm(basis=MEASURED, gain=None):
    """The default of a template's study as its answer."""
    best = Suggestion(1, GEMM.baseline, 1.0, None, gain, None, None, None, is_usual=gain is None)
    sizes = {"M": 64, "N": 64, "K": 8, "dtype": "float64"}
    return Answer("h200", sizes, basis, [best], GEMM.baseline, "")


def test_a_template_is_named_with_its_arguments():
    (launch,) = json.loads(as_json_text(default_of_gemm(), GEMM))["suggestions"][0]["launches"]
    assert launch["kernel"] == "gemm<32, 32, 8, double>"
    assert "launch gemm<32, 32, 8, double>: block 32 x 8 x 1" in as_text(default_of_gemm(), GEMM)


@pytest.mark.parametrize("stated", [True, False])
def test_an_answer_names_a_launch_of_host_code_where_the_spec_states_it(stated):
    spec = load_spec(SAXPY)
    left_out = set() if stated else {"shared_bytes"}
    own = spec.variants["strided"].model_dump(exclude_unset=True, exclude=left_out)
    spec = spec.model_copy(update={"variants": {"strided": Variant.model_validate(own)}})
    best = Suggestion(1, spec.baseline, 1.0, None, None, None, None, None, is_usual=True)
    found = Answer("h200", {"n": 5000, "dtype": "float32"}, MEASURED, [best], spec.baseline, "")
    (listed,) = json.loads(as_json_text(found, spec))["suggestions"]
    assert [each["grid"] for each in listed["launches"]] == ([[20, 1, 1]] if stated else [])
    assert ("launch decided by the host program" in as_text(found, spec)) != stated
    assert bool(ExportedFormulas.of(Domain(spec, {})).launches) == stated


@needs_gxx
@pytest.mark.parametrize(
    ("argument", "named"),
    [("scalar_t", "double"), ("BM - 54", "-22"), ("BM == 32", "true"), ("char", "char")],
)
def test_exported_code_names_a_template_with_its_arguments(tmp_path, argument, named):
    changed = {"kernel": f"gemm<BM, BN, BK, {argument}>", "block": ["BN", "BM // 4", "1"]}
    tiles = GEMM.variants["tiles"].model_dump(exclude_unset=True)
    tiles = Variant.model_validate({**tiles, **changed})
    spec = GEMM.model_copy(update={"variants": {"tiles": tiles}})
    listed = {"workload": "gemm", "parameters": tuple(spec.problem), "configurations": ()}
    stored = table_of("x").stored.model_copy(update={**listed, "devices": (), "entries": ()})
    write_answers(tmp_path / "out", table_of_study(Domain(spec, {}), "gemm", stored))
    (answer,) = default_of_gemm().suggestions
    problem, chosen = default_of_gemm().problem, {"variant": "tiles", **answer.configuration}
    (launch,) = launch_shapes(spec, problem, chosen)
    assert launch.kernel == f"gemm<32, 32, 8, {named}>"
    python = runpy.run_path(str(tmp_path / "out" / "gemm.py"))
    (own,) = python["launches_of"](problem, chosen)
    program = """
        #include "out/gemm.hpp"
        #include <iostream>
        int main() {
            const launchwise::gemm::problem asked{64, 64, 8, "float64"};
            const auto run = launchwise::gemm::launches_of(asked, {"tiles", 32, 32, 8});
            std::cout << std::string_view(run.kernels[0].kernel);
        }
    """
    assert {own["kernel"], said_by_cpp(tmp_path, program)} == {launch.kernel}


@pytest.mark.parametrize(("basis", "said"), [(MEASURED, ""), ("within", ", limits not known")])
def test_a_model_that_gives_no_limits_says_so(basis, said):
    lines = as_text(default_of_gemm(basis, 1.5), GEMM).splitlines()
    assert f"   time 1.000 ms{said}" in lines
    assert f"   1.5 times as fast as the usual choice{said}" in lines


def test_how_much_slower_a_measured_configuration_is_has_limits():
    found = default_of_gemm()
    first = found.suggestions[0]
    other = replace(first, rank=2, expected_ms=1.2, interval_ms=(0.9, 1.5))
    said = as_text(replace(found, suggestions=[first, other]), GEMM)
    assert "   time 1.200 ms, +20 % (95 % interval -10 to +50 %)" in said.splitlines()


def test_a_launch_of_several_runs_is_told_with_what_its_time_is_of():
    pair = KernelCost(launches="1 / 2", least_bytes="8 * M", uses={})
    twice = GEMM.model_copy(update={"cost": Cost(kernels={"pair": pair})})
    said = "does 2 runs: its times and limits are per run"
    assert [said in as_text(default_of_gemm(), one) for one in (GEMM, twice)] == [False, True]


@pytest.mark.gpu
@needs("cupy")
def test_cupy_launches_the_answer(printed):
    import cupy

    example = runpy.run_path(str(CALLERS / "cupy_smooth.py"))
    image = np.random.default_rng(1).random((HEIGHT, WIDTH), dtype=np.float32)
    source = (SMOOTH / "smooth.cu").read_text()
    found = example["smooth"](cupy.asarray(image), json.loads(printed), source)
    np.testing.assert_allclose(cupy.asnumpy(found), smoothed(image), rtol=1e-5)


# PyTorch


def test_the_extension_defines_every_macro_before_it_is_used(macros):
    example = runpy.run_path(str(CALLERS / "torch_smooth.py"))
    source = example["extension_source"](macros, (SMOOTH / "smooth.cu").read_text())
    assert "#pragma once" not in source
    for name in ("block_size_x", "block_size_y", "tile_size_y"):
        assert source.index("#include <torch") < source.index(f"#define {name} {BEST[name]}\n")
        assert source.index(f"#define {name}") == source.index(name) - len("#define ")


@pytest.mark.gpu
@needs("torch")
def test_pytorch_launches_the_answer(macros, tmp_path, monkeypatch):
    import torch

    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    example = runpy.run_path(str(CALLERS / "torch_smooth.py"))
    module = example["extension"](macros, (SMOOTH / "smooth.cu").read_text())
    image = np.random.default_rng(1).random((HEIGHT, WIDTH), dtype=np.float32)
    found = module.launch_smooth(torch.from_numpy(image).cuda()).cpu().numpy()
    np.testing.assert_allclose(found, smoothed(image), rtol=1e-5)


# CMake


def run(*words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is not installed")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_project_of_cmake_finds_the_answers(table, tmp_path):
    write_answers(tmp_path / "export", table)
    # Spaces in the path: nothing may fall apart.
    project = tmp_path / "a project"
    shutil.copytree(CALLERS / "cmake", project)
    shutil.copytree(tmp_path / "export" / "cmake", project / "tiles.cmake")
    run("cmake", "-S", ".", "-B", "build", "-DCMAKE_CXX_COMPILER=g++", folder=project)
    run("cmake", "--build", "build", folder=project)
    asked = [(one, dict(zip(table.parameters, one.problem, strict=True))) for one in table.entries]
    asked = [one for one in asked if one[1]["dtype"] == "float32"]
    for entry, problem in (asked[0], asked[-1]):
        device = table.devices[entry.device].name
        said = run(project / "build" / "program", device, str(problem["n"]), folder=project)
        chosen = used(table.configuration(entry.choice), table.spec)
        (launch,) = launch_shapes(table.spec, problem, chosen)
        sizes = (" ".join(map(str, size)) for size in (launch.block, launch.grid))
        assert said == "block {} grid {}\n".format(*sizes)


# Fortran


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is not installed")
def test_fortran_reads_the_tunables_of_an_answer(printed, tmp_path):
    (tmp_path / "answer.json").write_text(printed)
    flags = ("-std=f2008", "-Wall", "-Wextra", "-Werror")
    run("gfortran", *flags, CALLERS / "read_answer.f90", "-o", "read_answer", folder=tmp_path)
    for name, value in BEST.items():
        if name != "variant":
            said = run("./read_answer", "answer.json", name, folder=tmp_path)
            assert said == f"{value}\n"
    # Only the usual choice has items.
    for name in ("items", "tile_size"):
        words = ["./read_answer", "answer.json", name]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "no such tunable" in done.stderr
