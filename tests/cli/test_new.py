"""``launchwise new``: what it writes, and how much of it a person must edit."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import launchwise

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.workloads.declared.content import Source, shape_of
from launchwise.workloads.references import called
from launchwise.workloads.spec import load_spec

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
    check(tmp_path / name)
    return found


def check(folder: Path) -> None:
    """Insist that the spec of a folder can be loaded and its baseline be launched."""
    spec = load_spec(folder)
    raw = read_yaml(folder / "spec.yaml")
    assert KEYS <= set(raw) <= {*KEYS, "macros"}
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
def test_at_most_ten_lines_of_a_new_spec_need_edits(tmp_path: Path, name: str, lines: int) -> None:
    done = launchwise("new", name, "--from", str(DATA / f"{name}.cu"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    drafted = (tmp_path / name / "spec.yaml").read_text()
    check(tmp_path / name)
    edited = (DATA / f"{name}.yaml").read_text()
    changes = list(difflib.ndiff(drafted.splitlines(), edited.splitlines()))
    assert sum(line.startswith("+ ") for line in changes) <= 10
    assert sum(line.startswith("- ") for line in changes) <= 10
    assert drafted.count("  # ? ") <= 10
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
    assert variant["shared_bytes"] == "8 * block_size_x * block_size_y"
    assert spec["arguments"]["x"] == {
        **{"type": "float64", "shape": ["rows", "cols"], "role": "inout", "fill": "normal"}
    }
    assert spec["arguments"]["alpha"] == {"type": "float64", "value": 1.0}
    assert spec["reference"] == {"file": "reference.py:expected", "tolerance": 1e-12}


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


def test_a_side_of_the_block_has_values_of_a_side(tmp_path: Path) -> None:
    body = "int i = blockIdx.y * T + threadIdx.y, j = blockIdx.x * T + threadIdx.x;"
    for name, values in (("TILE_DIM", [8, 16, 32]), ("BLOCK_SIZE", [8, 16, 32])):
        text = f"__global__ void k(float *x, int w) {{ {body.replace('T +', f'{name} +')} }}"
        spec = written(tmp_path, text, name=name.lower())
        assert spec["tunables"][name]["values"] == values
        assert spec["variants"]["k"]["block"] == [name, name]
        assert spec["baseline"][name] == 16


def test_tiles_with_rows_of_threads(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        __global__ void transpose(float *out, const float *in, int width, int height) {
            __shared__ float tile[TILE_DIM][TILE_DIM + 1];
            int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
            for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
                tile[threadIdx.y + j][threadIdx.x] = in[y];
            out[x] = tile[threadIdx.x][threadIdx.y];
        }
        """,
    )
    variant = spec["variants"]["transpose"]
    assert variant["block"] == ["TILE_DIM", "BLOCK_ROWS"]
    assert variant["grid"] == ["ceil_div(width, TILE_DIM)", "ceil_div(height, TILE_DIM)"]
    assert min(spec["tunables"]["TILE_DIM"]["values"]) >= 16


@pytest.mark.parametrize("turned", [False, True])
def test_indices_say_which_macro_is_which_side(tmp_path: Path, turned: bool) -> None:
    row, column = "blockIdx.y * TILE_M + threadIdx.y", "blockIdx.x * TILE_N + threadIdx.x"
    if turned:
        row, column = "threadIdx.y + blockIdx.y * TILE_M", "threadIdx.x + blockIdx.x * TILE_N"
    spec = written(
        tmp_path,
        f"""
        __global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K) {{
            __shared__ float a[TILE_M][TILE_K], b[TILE_K][TILE_N];
            int row = {row};
            int column = {column};
            C[row * N + column] = A[row * K] * B[column];
        }}
        """,
    )
    variant = spec["variants"]["matmul"]
    assert variant["block"] == ["TILE_N", "TILE_M"]
    assert variant["grid"] == ["ceil_div(N, TILE_N)", "ceil_div(M, TILE_M)"]
    assert max(spec["tunables"]["TILE_N"]["values"]) > 16
    assert spec["tunables"]["TILE_K"]["values"] == [1, 2, 4]


def test_items_of_a_thread_divide_the_grid(tmp_path: Path) -> None:
    text = """
        __global__ void k(float *x, int w, int h) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            int j = (blockIdx.y * blockDim.y + threadIdx.y) * ROWS;
            for (int r = 0; r < ROWS; ++r) x[(j + r) * w + i] = 0;
        }
        """
    variant = written(tmp_path, text)["variants"]["k"]
    assert variant["grid"] == ["ceil_div(w, block_size_x)", "ceil_div(h, block_size_y * ROWS)"]


@pytest.mark.parametrize(
    ("type_", "size"), [("double", 8), ("float", 4), ("long long", 8), ("unsigned char", 1)]
)
def test_shared_memory_has_the_size_of_its_type(tmp_path: Path, type_: str, size: int) -> None:
    text = f"""
        __global__ void k(float *x, int n) {{
            extern __shared__ {type_} part[];
            x[threadIdx.x + blockIdx.x * blockDim.x] = part[threadIdx.x];
        }}
        """
    assert written(tmp_path, text)["variants"]["k"]["shared_bytes"] == f"{size} * block_size_x"


def test_a_grid_may_have_more_dimensions_than_the_block(tmp_path: Path) -> None:
    text = "__global__ void k(float *x, int w, int h) { x[blockIdx.y * w + threadIdx.x] = 0; }"
    variant = written(tmp_path, text)["variants"]["k"]
    assert variant["block"] == ["block_size_x"]
    # blockIdx.x is not read: another block in x would repeat the first.
    assert variant["grid"] == ["1", "h"]


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


def test_sizes_and_types_that_are_compiled_in_are_macros(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """
        __constant__ double weights[2 * RADIUS + 1];
        __global__ void k(double *out, int n) {
            real sum = 0;
            for (int i = 0; i <= 2 * RADIUS; i++) sum += weights[i] * TILE;
            out[blockIdx.x * block_size_x + threadIdx.x] = sum;
        }
        """,
    )
    assert spec["macros"] == {"real": "'float'", "RADIUS": "5"}
    assert list(spec["tunables"]) == ["block_size_x", "TILE"]
    assert spec["arguments"]["weights"]["shape"] == [11]


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
template <typename... T> __global__ void general(T *...x) {}
__global__ void first(float *x, int n) { x[threadIdx.x] = BLOCK_SIZE; }
__global__ void second(int *y, int n) { y[threadIdx.x] = n; }
__global__ void third(float **y) {}
"""


def test_of_several_kernels_all_are_listed_and_the_first_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(written(tmp_path, SEVERAL)["variants"]) == ["first"]
    listed = capsys.readouterr().out.splitlines()
    assert listed[0].startswith("kernel general: its template parameter")
    assert listed[1:3] == ["kernel first: chosen", "kernel second: take it with --kernel second"]
    assert listed[3].startswith("kernel third: 'float **y' is a pointer to pointers")
    other = written(tmp_path, SEVERAL, "--kernel", "second", name="other")
    assert other["variants"]["second"]["kernel"] == "second"
    assert set(other["tunables"]) == {"block_size_x"}


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (SEVERAL, ["--kernel", "frst"], "--kernel: unknown kernel 'frst', did you mean 'first'?"),
        (SEVERAL, ["--kernel", "general"], "general: its template parameter"),
        (SEVERAL, ["--kernel", "third"], "third: 'float **y' is a pointer to pointers"),
        ("int main() {}", [], "has no kernel"),
        ("// __global__ void k(float *x) {}", [], "has no kernel"),
        ("__global__ void KERNEL(k)(float *x) {}", [], "KERNEL(k): its name is made by a macro"),
        ("__global__ void k(float &x) {}", [], "k: 'float &x' is neither"),
        ("__global__ void k(int a) {} __global__ void k(float a) {}", [], "k: is defined several"),
        (
            "struct S { int a[2]; }; __global__ void k(S s) {}",
            [],
            "k: 'S s' is passed by value and",
        ),
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
