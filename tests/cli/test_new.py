"""``launchwise new``: what it writes, and how much of it a person must edit."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import launchwise

from launchwise.base.expressions import evaluate, names_in
from launchwise.base.typed import read_yaml
from launchwise.cli.app import main

DATA = Path(__file__).parent / "data"
KEYS = {
    *("workload", "title", "problem", "tunables", "arguments", "reference", "variants"),
    "baseline",
}


def written(tmp_path: Path, text: str, *options: str, name: str = "mine") -> dict[str, Any]:
    """Spec that is written for a CUDA file with this text."""
    file = tmp_path / "kernel.cu"
    file.write_text(text)
    assert main(["new", str(tmp_path / name), "--from", str(file), *options]) == 0
    found: dict[str, Any] = read_yaml(tmp_path / name / "spec.yaml")
    check(found)
    return found


def check(spec: dict[str, Any]) -> None:
    """Insist that every name of a spec means something."""
    assert set(spec) == KEYS
    (name,) = spec["variants"]
    variant = spec["variants"][name]
    assert set(variant["tunables"]) == set(spec["tunables"])
    assert spec["baseline"]["variant"] == name
    sizes = dict.fromkeys(spec["problem"], 100)
    chosen = {key: spec["baseline"][key] for key in spec["tunables"]}
    for key, tunable in spec["tunables"].items():
        assert set(tunable) == {"kind", "values"}
        assert chosen[key] in tunable["values"]
    assert 1 <= len(variant["grid"]) == len(variant["block"]) <= 3
    launch = [*variant["grid"], *variant["block"], variant.get("shared_bytes", "1")]
    for text in [*launch, *variant.get("constraints", [])]:
        assert evaluate(str(text), {**sizes, **chosen}) >= 1
    for argument in spec["arguments"].values():
        assert ("shape" in argument) != ("value" in argument)
        for text in argument.get("shape", []):
            assert evaluate(str(text), {**sizes, **chosen}) >= 1
        if "value" in argument:
            assert names_in(str(argument["value"])) <= set(sizes)
        if argument.get("role", "input") != "output" and "shape" in argument:
            assert argument["fill"] in ("normal", "uniform", "iota")
    (way,) = set(spec["reference"]) & {"call", "file"}
    assert set(spec["reference"]) == {way, "given", "tolerance"}
    for text in spec["reference"]["given"]:
        assert names_in(text) <= set(spec["arguments"])


@pytest.mark.parametrize(("name", "lines"), [("convolution", 45), ("transpose", 30)])
def test_at_most_ten_lines_of_a_new_spec_need_edits(tmp_path: Path, name: str, lines: int) -> None:
    done = launchwise("new", name, "--from", str(DATA / f"{name}.cu"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    guessed = (tmp_path / name / "spec.yaml").read_text()
    check(yaml.safe_load(guessed))
    edited = (DATA / f"{name}.yaml").read_text()
    check(yaml.safe_load(edited))
    changes = list(difflib.ndiff(guessed.splitlines(), edited.splitlines()))
    assert sum(line.startswith("+ ") for line in changes) <= 10
    assert sum(line.startswith("- ") for line in changes) <= 10
    assert guessed.count("  # ? ") <= 10
    assert len(edited.splitlines()) <= lines
    # The kernel is taken as it is.
    assert (tmp_path / name / f"{name}.cu").read_bytes() == (DATA / f"{name}.cu").read_bytes()


def test_questions_stand_where_a_person_decides(tmp_path: Path) -> None:
    done = launchwise("new", "c", "--from", str(DATA / "convolution.cu"), folder=tmp_path)
    lines = (tmp_path / "c" / "spec.yaml").read_text().splitlines()
    asked = {line.split(":")[0].strip(): line for line in lines if "  # ? " in line}
    assert set(asked) == {"w", "h", "output", "input", "call"}
    assert "only read" in asked["input"]
    assert "5 lines with a question" in done.stdout


def test_sizes_arrays_and_numbers_of_a_vector_kernel(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        __global__ void vector_add(float *c, const float *a, float const *__restrict__ b, int n) {
            int i = blockIdx.x * block_size_x + threadIdx.x;
            if (i < n) c[i] = a[i] + b[i];
        }
        """,
    )
    assert spec["problem"] == {"n": {"type": "integer", "minimum": 1024, "maximum": 2**28}}
    assert spec["arguments"] == {
        "c": {"type": "float32", "shape": ["n"], "role": "output"},
        "a": {"type": "float32", "shape": ["n"], "fill": "normal"},
        "b": {"type": "float32", "shape": ["n"], "fill": "normal"},
        "n": {"type": "int32", "value": "n"},
    }
    assert spec["reference"]["call"] == "numpy.add"
    assert spec["reference"]["given"] == ["a", "b"]
    variant = spec["variants"]["vector_add"]
    assert variant["block"] == ["block_size_x"]
    assert variant["grid"] == ["ceil_div(n, block_size_x)"]
    assert all(value & (value - 1) == 0 for value in spec["tunables"]["block_size_x"]["values"])


def test_a_kernel_without_block_macros_gets_launch_tunables(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        extern "C" __global__ void scale(double *x, double alpha, int rows, int cols) {
            extern __shared__ double tile[];
            int i = blockIdx.y * blockDim.y + threadIdx.y;
            int j = blockIdx.x * blockDim.x + threadIdx.x;
            x[i * cols + j] *= alpha;
        }
        """,
    )
    assert {name: one["kind"] for name, one in spec["tunables"].items()} == {
        "block_size_x": "launch",
        "block_size_y": "launch",
    }
    variant = spec["variants"]["scale"]
    assert variant["grid"] == ["ceil_div(cols, block_size_x)", "ceil_div(rows, block_size_y)"]
    assert variant["shared_bytes"] == "4 * block_size_x * block_size_y"
    assert spec["arguments"]["x"] == {
        **{"type": "float64", "shape": ["rows", "cols"], "role": "inout", "fill": "normal"}
    }
    assert spec["arguments"]["alpha"] == {"type": "float64", "value": 1.0}
    assert spec["reference"] == {
        **{"file": "reference.py:expected", "given": ["x"], "tolerance": 1e-12}
    }


def test_matrices_of_a_product_have_their_shapes(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        #ifndef TILE_DIM
        #define TILE_DIM 24
        #endif
        __global__ void sgemm(int M, int N, int K, const float *A, const float *B, float *C) {
            __shared__ float a[TILE_DIM][TILE_DIM];
            int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
            C[y * N + x] = A[y * K] * B[x];
        }
        """,
    )
    shapes = {name: spec["arguments"][name]["shape"] for name in "ABC"}
    assert shapes == {"A": ["M", "K"], "B": ["K", "N"], "C": ["M", "N"]}
    assert spec["reference"]["call"] == "numpy.matmul"
    # The file's own value is the baseline's.
    assert spec["baseline"]["TILE_DIM"] == 24
    assert spec["variants"]["sgemm"]["block"] == ["TILE_DIM", "TILE_DIM"]
    assert spec["variants"]["sgemm"]["grid"] == ["ceil_div(N, TILE_DIM)", "ceil_div(M, TILE_DIM)"]


def test_tunables_by_their_names(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        __global__ void k(float *out, int n) {
            #pragma unroll loop_unroll_factor
            for (int i = threadIdx.x; i < n; i += BLOCK_SIZE * items_per_thread) {
                #if use_shuffle == 1
                out[i] = vector * num_blocks;
                #endif
            }
        }
        """,
    )
    values = {name: one["values"] for name, one in spec["tunables"].items()}
    assert list(values) == [
        *("BLOCK_SIZE", "num_blocks", "items_per_thread"),
        *("vector", "loop_unroll_factor", "use_shuffle"),
    ]
    assert values["use_shuffle"] == [0, 1]
    assert values["items_per_thread"] == values["loop_unroll_factor"] == [1, 2, 4]
    assert spec["variants"]["k"]["grid"] == ["num_blocks"]


def test_a_file_that_sets_its_size_gives_shapes(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        #define image_height 2048
        #define image_width 4096
        #define filter_width 17
        #define pitch (image_width + filter_width - 1)
        __constant__ float d_filter[filter_width*filter_width];
        __global__ void blur(float *output, float *input) {
            int x = blockIdx.x * block_size_x + threadIdx.x, y = blockIdx.y;
            output[y * image_width + x] = input[y * pitch + x] * d_filter[0];
        }
        """,
    )
    assert spec["problem"]["n"]["values"] == [4096]
    assert spec["arguments"]["output"]["shape"] == [2048, 4096]
    assert spec["arguments"]["filter"] == {
        **{"type": "float32", "shape": [17, 17], "fill": "normal", "constant": "d_filter"}
    }


def test_names_that_a_spec_cannot_have_are_changed(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        "__global__ void k(float *out, const float *in, const float *_from, int count, int rank,"
        " int seed_count) { out[threadIdx.x] = in[0] + _from[0]; }",
    )
    assert list(spec["arguments"]) == [
        "out",
        "in_array",
        "from_array",
        "count",
        "rank",
        "seed_count",
    ]
    # `rank` is no size, and no problem parameter could have that name.
    assert list(spec["problem"]) == ["count", "seed_count"]


Refused = Callable[..., str]


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Refused:
    """Runs a command in ``tmp_path`` and gives the one line of its complaint."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        assert main(arguments) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        return said.err.removeprefix("launchwise: ").rstrip("\n")

    return run


SEVERAL = """
template <typename T> __global__ void general(T *x) {}
__global__ void first(float *x, int n) { x[threadIdx.x] = BLOCK_SIZE; }
__global__ void second(int *y, int n) { y[threadIdx.x] = n; }
__global__ void third(float **y) {}
"""


def test_of_several_kernels_all_are_listed_and_the_first_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(written(tmp_path, SEVERAL)["variants"]) == ["first"]
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].startswith("kernel general: is a template")
    assert listed[1:3] == ["kernel first: chosen", "kernel second: take it with --kernel second"]
    assert listed[3].startswith("kernel third: 'float * * y' is a pointer to pointers")
    other = written(tmp_path, SEVERAL, "--kernel", "second", name="other")
    assert other["variants"]["second"]["kernel"] == "second"
    assert set(other["tunables"]) == {"block_size_x"}


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (SEVERAL, ["--kernel", "frst"], "--kernel: unknown kernel 'frst', did you mean 'first'?"),
        (SEVERAL, ["--kernel", "general"], "general: is a template"),
        (SEVERAL, ["--kernel", "third"], "third: 'float * * y' is a pointer to pointers"),
        ("int main() {}", [], "has no kernel"),
        ("// __global__ void k(float *x) {}", [], "has no kernel"),
        ("__global__ void KERNEL(k)(float *x) {}", [], "KERNEL(k): its name is made by a macro"),
        ("__global__ void k(float &x) {}", [], "k: 'float & x' is neither"),
        ("__global__ void k(float *) {}", [], "k: 'float *' has no name"),
        ("__global__ void k(int a) {} __global__ void k(float a) {}", [], "k: is defined several"),
        ("struct S { int a; }; __global__ void k(S s) {}", [], "k: 'S s' is passed by value and"),
        ("__global__ void k(cudaTextureObject_t t) {}", [], "k: 'cudaTextureObject_t t' is passed"),
    ],
)
def test_what_cannot_be_described_is_told_in_one_line(
    text: str, options: list[str], said: str, refused: Refused
) -> None:
    Path("k.cu").write_text(text)
    assert refused("new", "mine", "--from", "k.cu", *options).startswith(f"k.cu: {said}")
    assert not Path("mine").exists()


def test_nothing_is_overwritten(tmp_path: Path, refused: Refused) -> None:
    def new(folder: str, file: str = "k.cu") -> str:
        return refused("new", folder, "--from", file)

    (tmp_path / "k.cu").write_text("__global__ void k(int *x, int n) {}")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "k.cu").write_text("another")
    assert new("mine") == "mine/k.cu: exists and differs from k.cu"
    (tmp_path / "mine" / "spec.yaml").write_text("")
    assert new("mine").startswith("mine/spec.yaml: exists; remove it first")
    assert (tmp_path / "mine" / "spec.yaml").read_text() == ""
    assert new("My-Kernel").endswith("such as my_kernel")
    assert new("mine", "missing.cu").startswith("missing.cu: cannot be read")
    (tmp_path / "taken").write_text("")
    assert new("taken").startswith("taken: cannot be written")


def test_a_file_in_its_folder_stays_where_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "k.cu").write_text("__global__ void k(int *x, int n) {}")
    assert launchwise("new", ".", "--from", "k.cu", folder=folder).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["k.cu", "spec.yaml"]
    assert read_yaml(folder / "spec.yaml")["workload"] == "mine"
