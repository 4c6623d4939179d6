"""Templates by name: resolved for each configuration, refused in one line."""

import copy
import re
import shutil

import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.cli.check.signatures import check_signatures
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.builds import Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.templates import functions_of_c, macro_names, resolved_kernel
from tests.support.spec_changes import with_changes

GEMM = ROOT / "tests" / "workloads" / "data" / "gemm"
SOURCE = (GEMM / "gemm.cu").read_text()
SPEC, CASES = (yaml.safe_load((GEMM / f"{name}.yaml").read_text()) for name in ("spec", "cases"))
PROBLEM = {"n": 256, "dtype": "float64"}
CHOICE = {"variant": "tiled", "BM": 64, "BN": 8, "UNROLL": 4, "OTHER": 1, "threads": 64}


def loaded(tmp_path, kernel, source=SOURCE, changes=None):
    """Folder of the workload with another kernel, and its spec."""
    folder = tmp_path / "gemm"
    folder.mkdir()
    content = {"variants.tiled.kernel": kernel, **(changes or {})}
    spec = with_changes(copy.deepcopy(SPEC), content)
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    (folder / "gemm.cu").write_bytes(source.encode("latin-1"))
    return folder, load_spec(folder)


@pytest.mark.parametrize(("kernel", "expected"), CASES["resolved"].items())
def test_template_arguments_are_resolved(tmp_path, kernel, expected):
    _, spec = loaded(tmp_path, kernel)
    assert resolved_kernel(spec, kernel, PROBLEM, CHOICE) == expected


@pytest.mark.parametrize(("kernel", "said"), CASES["refused"].items())
def test_what_is_no_template_argument_is_one_line(tmp_path, kernel, said):
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, kernel)
    line = str(caught.value)
    assert "gemm/spec.yaml: variants.tiled.kernel: " in line
    assert said in line


def test_a_template_parameter_is_no_macro(tmp_path):
    folder, spec = loaded(tmp_path, "gemm<BM, BN, dtype>")
    assert macro_names(folder, spec, spec.variants["tiled"]) == ["UNROLL", "REAL", "ROWS"]
    build = load_workload(folder, spec).build(PROBLEM, CHOICE)
    assert build.kernels == ("gemm<64, 8, double>",)
    assert dict(build.defines) == {"UNROLL": "4", "REAL": "double", "ROWS": "128"}


def test_a_template_argument_that_the_file_reads_as_a_macro_is_one(tmp_path):
    source = "#if BN > 8\n#endif\n" + SOURCE.replace("int BM, int BN", "int M, int N")
    folder, spec = loaded(tmp_path, "gemm<BM, BN, dtype>", source)
    named = macro_names(folder, spec, spec.variants["tiled"])
    assert named == ["BN", "UNROLL", "REAL", "ROWS"]


def test_a_macro_of_the_spec_that_names_a_template_parameter_is_none(tmp_path):
    macros = {"T": SPEC["macros"]["REAL"]}
    folder, spec = loaded(tmp_path, "gemm<BM, BN, T>", changes={"macros": macros})
    check_signatures(folder, spec)
    build = load_workload(folder, spec).build(PROBLEM, CHOICE)
    assert build == Build.of("gemm.cu", {"UNROLL": 4}, ["gemm<64, 8, double>"])


def test_the_symbol_of_an_instantiation_has_the_name_of_its_template():
    build = Build.of("gemm.cu", {}, ["gemm<64, float>", "plain"])
    assert build.kernel_of(f"plain_{build.key}") == "plain"
    assert build.kernel_of(f"_Z22plain_{build.key}Pf") == "plain"
    space = f"_ZN22build_{build.key}"
    assert build.kernel_of(f"{space}4gemmILi64EfEEvPT0_") == "gemm<64, float>"
    other = Build.of("gemm.cu", {"n": 1}, ["gemm<64, float>"])
    assert other.kernel_of(f"{space}4gemmILi64EfEEvPT0_") is None
    assert build.kernel_of(f"{space}21gemm_{build.key}ILi64EfEEvPT0_") == "gemm<64, float>"
    assert build.kernel_of(f"{space}36_GLOBAL__N__9bfb7019_4_c_cu_6b61f5cd5plainEPf") == "plain"
    assert build.kernel_of(f"{space}4gemm5plainEPf") == "plain"
    assert build.kernel_of(f"{space}8my5plainEPf") is None
    two = Build.of("gemm.cu", {}, ["gemm<64>", "gemm<32>"])
    assert two.kernel_of(f"_ZN22build_{two.key}4gemmILi64EEEvPT0_") is None


@pytest.mark.parametrize(("line", "told"), CASES["overriding"].items())
def test_what_overrides_a_tunable_is_told(tmp_path, line, told):
    source = f"// J\xfcrgen\n{line}\n{SOURCE}"
    if not told:
        loaded(tmp_path, "gemm<BM, BN, dtype>", source)
        return
    with pytest.raises(UserError, match=rf"variants.tiled.tunables: gemm.cu:\d {told}"):
        loaded(tmp_path, "gemm<BM, BN, dtype>", source)


@pytest.mark.parametrize("parameters", CASES["fitting"])
def test_arguments_that_fit_a_template_are_no_complaint(tmp_path, parameters):
    head = "typedef unsigned int index; using real = REAL; struct Matrix { };\n"
    source = head + SOURCE.replace("T *c, const T *a, const T *b, int n", parameters)
    folder, spec = loaded(tmp_path, "gemm<BM, BN, dtype>", source)
    check_signatures(folder, spec)


@pytest.mark.parametrize(("old", "new", "said"), CASES["misfits"])
def test_arguments_that_do_not_fit_a_template_are_told(tmp_path, old, new, said):
    declared = "T *c, const T *a, const T *b, int n"
    source = SOURCE.replace(declared, declared.replace(old, new, 1))
    folder, spec = loaded(tmp_path, "gemm<BM, BN, dtype>", f"using index = long long;\n{source}")
    with pytest.raises(UserError) as caught:
        check_signatures(folder, spec)
    assert said in str(caught.value)


def test_the_example_of_the_documents_is_a_workload(tmp_path):
    page = (ROOT / "docs" / "how-to" / "add_a_kernel.md").read_text()
    section = page.partition("## A template by name")[2].partition("\n## ")[0]
    blocks = dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))
    folder = tmp_path / "scale"
    folder.mkdir()
    (folder / "scale.cu").write_text(blocks["cpp"])
    (folder / "spec.yaml").write_text(blocks["yaml"])
    spec = load_spec(folder)
    check_signatures(folder, spec)
    problem = {"rows": 100, "columns": 80, "dtype": "float64"}
    choice = {"variant": "by_tiles", "BM": 16, "BN": 64}
    build = load_workload(folder, spec).build(problem, choice)
    assert build == Build.of("scale.cu", {}, ["scale<16, 64, double>"])
    if shutil.which("nvcc") is not None:
        path = tmp_path / "x.cubins"
        compile_bundle(folder, spec, [build], "sm_90", path, 1)
        assert Bundle(path).kernel(build, "scale<16, 64, double>").registers > 0


def test_functions_of_c_are_those_of_blocks_and_none_of_macros():
    block = 'extern "C" { int two() { return 1; } }'
    text = f'extern "C" void one(int);\n{block}\n#define F(name) extern "C" void name()\nint x();'
    assert functions_of_c(text) == {"one", "two"}
