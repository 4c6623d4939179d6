"""``launchwise new``: what it writes for kernels in many styles, and what a person edits."""

import difflib
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from command_line import launchwise, line_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.cli.new.signature import choose, read_source
from launchwise.cli.new.spec_text import spec_text
from launchwise.workloads.declared.content import Source, shape_of
from launchwise.workloads.declared.expected import called
from launchwise.workloads.spec import load_spec

DATA = Path(__file__).parent / "data"
KEYS = {
    *("workload", "title", "problem", "tunables", "arguments", "reference", "variants"),
    "baseline",
}


def written(tmp_path, text, *options, name="mine"):
    """Spec that is written for a CUDA file with this text."""
    file = tmp_path / "kernel.cu"
    file.write_text(text)
    assert main(["new", str(tmp_path / name), "--from", str(file), *options]) == 0
    found = read_yaml(tmp_path / name / "spec.yaml")
    check(tmp_path / name)
    return found


def check(folder):
    """Insist that the spec of a folder can be loaded and its baseline be launched."""
    spec = load_spec(folder)
    raw = read_yaml(folder / "spec.yaml")
    assert KEYS <= set(raw) <= {*KEYS, "macros", "compiler_options"}
    problem = {name: (one.values or [100])[0] for name, one in spec.problem.items()}
    baseline = {name: tunable.neutral for name, tunable in spec.tunables.items()} | spec.baseline
    (variant,) = spec.variants.values()
    assert set(variant.tunables) == set(spec.tunables)
    for text in (*variant.block, *variant.grid):
        assert spec.value(text, problem, baseline) >= 1
    for text in variant.constraints:
        assert spec.value(text, problem, baseline, GPU)
    for argument in spec.arguments.values():
        for text in argument.shape or []:
            assert spec.value(text, problem, baseline) >= 1


GPU = {
    **{"gpu_memory_bytes": 10**10, "gpu_max_threads_per_block": 1024},
    **{"gpu_shared_per_block_bytes": 48 * 1024},
}


@pytest.mark.parametrize(("name", "lines"), [("convolution", 45), ("transpose", 30)])
def test_at_most_ten_lines_of_a_new_spec_need_edits(tmp_path, name, lines):
    done = launchwise("new", name, "--from", str(DATA / f"{name}.cu"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    drafted = (tmp_path / name / "spec.yaml").read_text()
    asked = drafted.count("  # ? ")
    assert f"{asked} lines with a question" in done.stdout
    check(tmp_path / name)
    edited = (DATA / f"{name}.yaml").read_text()
    changes = list(difflib.ndiff(drafted.splitlines(), edited.splitlines()))
    assert sum(line.startswith("+ ") for line in changes) <= 10
    assert sum(line.startswith("- ") for line in changes) <= 10
    assert 0 < asked <= 10
    assert len(edited.splitlines()) <= lines
    (tmp_path / name / "spec.yaml").write_text(edited)
    check(tmp_path / name)
    spec = load_spec(tmp_path / name)
    problem = dict(zip(spec.problem, (40, 24), strict=True))
    inputs = Source(tmp_path / name, spec).content(problem, problem, 7).arrays
    expected = np.asarray(called(Path(), spec, problem, inputs))
    (output,) = (each for each in spec.arguments.values() if each.is_written)
    assert expected.shape == shape_of(spec, output, problem)
    # The kernel is taken as it is.
    assert (tmp_path / name / f"{name}.cu").read_bytes() == (DATA / f"{name}.cu").read_bytes()


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Runs a command in ``tmp_path`` and gives the one line of its complaint."""
    monkeypatch.chdir(tmp_path)
    return partial(line_of, capsys)


SEVERAL = """
template <typename... T> __global__ void general(T *...x) {}
__global__ void first(float *x, int n) { x[threadIdx.x] = BLOCK_SIZE; }
__global__ void second(int *y, int n) { y[threadIdx.x] = n; }
__global__ void third(float **y) {}
"""


def test_of_several_kernels_all_are_listed_and_the_first_is_taken(tmp_path, capsys):
    assert list(written(tmp_path, SEVERAL)["variants"]) == ["first"]
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].startswith("kernel general: its template parameter")
    assert listed[1:3] == ["kernel first: chosen", "kernel second: take it with --kernel second"]
    assert listed[3].startswith("kernel third: 'float **y' is a pointer to pointers")
    other = written(tmp_path, SEVERAL, "--kernel", "second", name="other")
    assert other["variants"]["second"]["kernel"] == "second"
    assert set(other["tunables"]) == {"block_size_x"}


KERNEL = "'extern \"C\" __global__ void k(float *x, int n) { x[blockIdx.x * B] = n; }'"
REFUSED = read_yaml(DATA / "refused.yaml")
DEEP = {
    "brackets": ("k = " + "(" * 300 + ")" * 300, "line 1: no Python: too many nested"),
    "operators": ("k = " + "-" * 100_000 + "1", "cannot be read as Python: nested too deep"),
    "a chain": ("k = 1" + " + 1" * 60_000, "cannot be read as Python: nested too deep"),
    "a huge file": ("x = 1\n" * 50_000, "is longer than 262,144 bytes"),
}
REFUSED["py"] |= {name: {"text": text, "said": said} for name, (text, said) in DEEP.items()}


EVERY = {f"{kind}: {name}": case for kind, cases in REFUSED.items() for name, case in cases.items()}


@pytest.mark.parametrize("name", EVERY)
def test_what_cannot_be_described_is_told_in_one_line(name, refused):
    case, file = EVERY[name], f"kernel.{name.partition(':')[0]}"
    Path(file).write_text(case["text"].replace("(KERNEL", f"({KERNEL}"))
    told = refused("new", "mine", "--from", file, *case.get("words", "").split()) + "\n"
    assert told.startswith(f"{file}: {case['said']}")
    assert not Path("mine").exists()


def test_nothing_is_overwritten(tmp_path, refused):
    def new(folder, file="k.cu"):
        return refused("new", folder, "--from", file)

    (tmp_path / "k.cu").write_text('#include "two.h"\n__global__ void k(int *x, int n) {}')
    (tmp_path / "two.h").write_text("#define TWO 2\n")
    (tmp_path / "mine").mkdir()
    for name in ("k.cu", "two.h"):
        (tmp_path / "mine" / name).write_text("another")
        assert new("mine") == f"mine/{name}: exists and differs from {name}"
        (tmp_path / "mine" / name).unlink()
    (tmp_path / "mine" / "spec.yaml").write_text("")
    assert new("mine").startswith("mine/spec.yaml: exists; remove it first")
    assert (tmp_path / "mine" / "spec.yaml").read_text() == ""
    assert new("My-Kernel").endswith("such as my_kernel")
    assert new("mine", "missing.cu").startswith("missing.cu: cannot be read")
    (tmp_path / "taken").write_text("")
    assert new("taken") == "taken/k.cu: cannot be written: File exists"


def test_a_file_in_its_folder_stays_where_it_is(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "k.cu").write_text("__global__ void k(int *x, int n) {}")
    assert launchwise("new", ".", "--from", "k.cu", folder=folder).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["k.cu", "spec.yaml"]
    assert read_yaml(folder / "spec.yaml")["workload"] == "mine"


CASES = read_yaml(Path(__file__).parent / "data" / "drafts.yaml")


@pytest.fixture
def make(tmp_path, monkeypatch):
    """A folder for the CUDA file, with one above it for headers outside."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_drafts(name, make, capsys):
    case = CASES[name]
    text = CASES[case["of"]]["source"] if "of" in case else case["source"]
    for old, new in case.get("change", {}).items():
        assert old in text
        text = text.replace(old, new)
    text = text.replace("\n", "\r\n") if case.get("crlf") else text
    (make / "kernel.cu").write_bytes(text.encode())
    for file, content in case.get("files", {}).items():
        (make / file).parent.mkdir(parents=True, exist_ok=True)
        (make / file).write_text(content)
    assert main(["new", "mine", "--from", "kernel.cu", *case.get("words", ())]) == 0
    spec = read_yaml(make / "mine" / "spec.yaml")
    lines = (make / "mine" / "spec.yaml").read_text().splitlines()
    asked = {line.split(":")[0].strip() for line in lines if "  # ? " in line}
    (variant,) = spec["variants"].values()

    for key in ("grid", "block", "kernel", "shared_bytes"):
        assert variant.get(key) == case.get(key, variant.get(key))
    if "tunables" in case:
        found = [(tunable, one["values"]) for tunable, one in spec["tunables"].items()]
        wanted = list(case["tunables"].items())
        assert (found == wanted) if case.get("ordered") else (sorted(found) == sorted(wanted))
    assert spec.get("compiler_options", []) == case.get("options", [])
    assert list(spec["arguments"]) == case.get("names", list(spec["arguments"]))
    for part in ("arguments", "problem", "baseline", "macros", "reference"):
        for key, wanted in case.get(part, {}).items():
            assert spec[part][key] == wanted, f"{part}.{key}"
    for key, part in case.get("asks", {}).items():
        assert any(line.strip().startswith(f"{key}:") and part in line for line in lines), key
    for key, part in case.get("quiet", {}).items():
        assert not any(line.strip().startswith(f"{key}:") and part in line for line in lines), key
    assert all(part in "\n".join(lines) for part in case.get("says", ()))
    assert asked >= {*case.get("open", ())}
    assert not asked & {*case.get("closed", ())}
    notes = [line for line in lines if line.startswith("# ?") and " includes " in line]
    assert len(notes) == len(case.get("notes", ()))
    said = capsys.readouterr().out
    for part in case.get("notes", ()):
        assert any(part in note for note in notes)
        assert part in said
    for file in case.get("files", {}):
        if not file.startswith(".."):
            assert (make / "mine" / file).read_bytes() == (make / file).read_bytes()
    check(make / "mine")


def test_a_file_that_is_not_utf_8_is_read_as_latin_1(make):
    (make / "kernel.cu").write_bytes(
        b'// r\xe9guli\xe8re\n#include "two.h"\n'
        b"__global__ void k(float *x, int n) { x[blockIdx.x] = TWO; }\n"
    )
    (make / "two.h").write_bytes(b"#define TWO 2 // \xb5m\n")
    assert main(["new", "mine", "--from", "kernel.cu"]) == 0
    assert (make / "mine" / "two.h").read_bytes() == (make / "two.h").read_bytes()
    assert list(read_yaml(make / "mine" / "spec.yaml")["tunables"]) == ["block_size_x"]


PIECES = st.sampled_from(
    [
        *("__global__ ", "void ", "k", "(", ")", "{", "}", "[", "]", "<", ">", ";", ",", "*", "&"),
        *("float ", "int ", "x", "=", '"', "'", "/*", "*/", "//", "\n", "#define A ", "#if "),
        *("#ifndef A", "#endif\n", "template <typename T>", "__constant__ ", "typedef ", "using "),
        *("namespace a ", 'extern "C" ', "enum ", "1", "::", "...", "\\\n"),
        *("k<<<", ">>>(", "dim3 ", "blockIdx.x ", "threadIdx.x ", "if (x < 1)", "atomicAdd(&x"),
    ]
)


@settings(max_examples=50)
@given(st.lists(PIECES, max_size=40).map("".join))
@example("__constant__ __global__ __global__ ,;")
@example("void __constant__ ;")
@example("__global__ void ::")
def test_whatever_a_file_holds_is_read_or_refused_in_words(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cu"
        path.write_text(text + "\n__global__ void last(float *x) {}")
        try:
            source = read_source(path)
            kernel = choose(source, None, path)
        except UserError:
            return
        spec = Path(folder) / "spec.yaml"
        spec.write_text(spec_text("mine", "k.cu", source, kernel))
        assert read_yaml(spec)["variants"]
