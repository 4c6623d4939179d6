"""What cannot be compiled is told with file and line; kept libraries follow their sources."""

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


# Messages


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("\n__global__ void f(int *out) { *out = valeu; }", r"^f\.cu:2: 'valeu' was not declared"),
        ('#include "part.h"\n__global__ void f(int *out) {}', r"^part\.h:3: expected"),
        ("#include <nothing.h>\n", r"^f\.cu:1: nothing\.h: No such file or directory"),
        ('\nstatic_assert(TILE % 32 == 0, "whole warps");', r"^f\.cu:2: static .*: whole warps"),
        ("__global__ void f(float4 *out) { out->v = 1; }", r"^f\.cu:1: .*float4.* has no member"),
        ("\n__global__ void f(int *out) {\n", r"^f\.cu:\d: expected '}'"),
        (
            "int g();\n__global__ void f(int *out) { *out = g(); }",
            r"^f\.cu: g\(\) is declared, but",
        ),
    ],
)
def test_the_first_error_of_the_compiler_is_told(tmp_path, source, said):
    device = device_for(tmp_path, {"f.cu": source, "part.h": "\n\n__device__ int x = ;\n"})
    for kernels in ([], ["f"]):
        with pytest.raises(CannotCompile, match=said) as raised:
            value(device, build=Build.of("f.cu", {"TILE": 24}, kernels))
        assert "\n" not in str(raised.value)


def test_errors_of_three_lines_are_told(tmp_path):
    lines = ["*out = one;", "*out = one;", "*out = two;", "out = 1.5;", "*out = three;"]
    source = "__global__ void f(int *out) {\n" + "\n".join(lines) + "\n}\n"
    with pytest.raises(CannotCompile) as raised:
        value(device_for(tmp_path, {"f.cu": source}))
    first, second, third = str(raised.value).split("; ")
    assert first == "f.cu:2: 'one' was not declared in this scope"
    assert second.startswith("f.cu:4: 'two' was not declared")
    assert third.startswith("f.cu:5: cannot convert 'double' to 'int*'")


REFUSED = {
    "inline PTX": 'asm volatile("mov.u32 %0, %%laneid;" : "=r"(*out));',
    "tensor cores": "nvcuda::wmma::fill_fragment(a, 0);",
    "asynchronous copies": "__pipeline_memcpy_async(out, out, 4);",
    "textures": "*out = tex2D<int>(image, 1, 2);",
    "a launch in the source": "g<<<1, 32>>>(out);",
    "a call of the CUDA runtime": "cudaDeviceSynchronize();",
    "thread block clusters": "auto cluster = cooperative_groups::this_cluster();",
    "a warp operation without _sync": "*out = __shfl_xor(*out, 1);",
    "libcu": "cuda::atomic_ref<int> one(*out);",
    "SIMD": "*out = __vadd4(1, 2);",
}


@pytest.mark.parametrize("construct", REFUSED)
def test_what_the_cpu_cannot_run_is_named_with_its_line(tmp_path, construct):
    source = '#include "part.cuh"\n__global__ void f(int *out) { part(out); }\n'
    part = f"__device__ void part(int *out) {{\n    // asm\n    {REFUSED[construct]}\n}}\n"
    device = device_for(tmp_path, {"f.cu": source, "part.cuh": part})
    with pytest.raises(
        CannotCompile, match=rf"^part\.cuh:3: the CPU device cannot run .*{construct}"
    ):
        value(device)


def test_a_path_for_the_cpu_takes_the_place_of_what_is_refused(tmp_path):
    source = f"""
#ifdef __CUDACC__
#include <cuda_fp16.h>
__device__ void part(int *out) {{ {REFUSED["inline PTX"]} }}
#else
__device__ void part(int *out) {{ *out = 8; }}
#endif
__global__ void f(int *out) {{ part(out); }}
"""
    assert value(device_for(tmp_path, {"f.cu": source})) == 8


LIBRARIES = {
    "mma.h": ("nvcuda::wmma::mma_sync(a, b);", "tensor cores"),
    "cub/cub.cuh": ("cub::BlockReduce<float, 32> reduce;", "a library of CUDA's"),
    "curand_kernel.h": ("curandState state; curand_init(1, 2, 3, &state);", "a library of CUDA's"),
}


@pytest.mark.parametrize("header", LIBRARIES)
def test_libraries_of_the_toolkit_are_named_where_a_kernel_uses_them(tmp_path, header):
    text, said = LIBRARIES[header]
    source = f"\n#include <{header}>\n__global__ void f(int *out) {{\n"
    for kernels in ([], ["f"]):
        build = Build.of("f.cu", {}, kernels)
        device = device_for(tmp_path, {"f.cu": source + text + " }"})
        with pytest.raises(CannotRun, match=rf"^f\.cu:4: the CPU device cannot run {said}"):
            value(device, build=build)
        # Host code of the same file may use it.
        host = f"*out = 6; }}\nint main() {{ {text} return 0; }}"
        assert value(device_for(tmp_path, {"f.cu": source + host}), build=build) == 6


def test_a_missing_name_is_told_with_the_library_that_may_have_it(tmp_path):
    source = "#include <cub/cub.cuh>\n__global__ void f(int *out) { BlockReduce<int> reduce; }"
    said = r"^f\.cu:2: 'BlockReduce' was not .*; f\.cu:1: the CPU device .* \(<cub/cub\.cuh>\)"
    with pytest.raises(CannotRun, match=said):
        value(device_for(tmp_path, {"f.cu": source}))


def test_words_in_texts_are_not_refused(tmp_path):
    source = '__global__ void f(int *out) { if (*out) printf("asm tex2D<int> <<<"); *out = 1; }'
    assert value(device_for(tmp_path, {"f.cu": source})) == 1


# Kernels, arguments, variables


def test_kernels_are_found_as_they_are_written(tmp_path):
    source = """
static __global__ void plain(int *out);
extern "C" __global__ void __launch_bounds__(128) KERNEL(macro)(int *out) { *out = 1; }
extern "C" { __global__ void c_name(int *out) { *out = 2; } }
static __global__ void plain(int *out) { *out = 3; }
namespace { __global__ void unnamed(int *out) { *out = 4; } }
namespace one { namespace two { __device__ int braces() { return "}"[0] + '{'; }
__global__ void inner(int *out) { *out = 5; } } }
namespace one::two { __global__ __attribute__((aligned(16))) void other(int *out) { *out = 6; } }
template <typename T, int N>
__global__ void many(T *out) { *out = N; }
template __global__ void many<int, 7>(int *);
template <int N> __global__ void never(int *out) { *out = N; }
"""
    device = device_for(tmp_path, {"f.cu": source})
    names = ["macro", "c_name", "plain", "unnamed", "inner", "other", "many"]
    assert [value(device, name) for name in names] == [1, 2, 3, 4, 5, 6, 7]
    for name in ("never", "nothing"):
        listed = "c_name, inner, macro, many, other, plain, unnamed"
        said = rf"f\.cu has no __global__ function {name} \(it has: {listed}\)"
        with pytest.raises(LaunchFailed, match=said):
            value(device, name)


def test_a_file_that_names_its_kernels_in_the_build_stays_as_it_is(tmp_path):
    source = """
#include <map>
#include <cuda_runtime.h>
__device__ int nine() { return std::map<int, int>{{1, 9}}.at(1); }
__global__ void f(int *out) { *out = nine(); }
namespace inner { __global__ void g(int *out) { *out = 10; } }
"""
    device = device_for(tmp_path, {"f.cu": source})
    build = Build.of("f.cu", {}, ["f", "g"])
    assert [value(device, name, build) for name in ("f", "g")] == [9, 10]
    with pytest.raises(LaunchFailed, match=r"no __global__ function h \(it has: f, g\)"):
        value(device, "h", build)


SIGNATURE = """
struct Pair { int a, b; };
__global__ void f(
    float *out, const float *in, int w, long long h, float scale, bool on, Pair pair) {
    *out = *in + w + h + scale + on + pair.a + pair.b;
}
"""
PAIR = np.array([(5, 6)], [("a", np.int32), ("b", np.int32)])[0]
RIGHT = [
    np.zeros(1, np.float32), np.ones(1, np.float32),
    np.int32(1), np.int64(2), np.float32(3), np.bool_(True), PAIR,
]  # fmt: skip


def test_arguments_have_the_types_of_the_parameters(tmp_path):
    device = device_for(tmp_path, {"f.cu": SIGNATURE})
    build = Build.of("f.cu", {})
    assert launch(device, build, "f", ONE, ONE, RIGHT)[0][0] == 19
    for number, wrong, said in (
        (3, np.int64(1), "argument 3 is int64, the parameter an integer of 4 B"),
        (4, np.int32(1), "argument 4 is int32, the parameter an integer of 8 B"),
        (5, np.float64(1), "argument 5 is float64, the parameter a floating-point number of 4 B"),
        (5, np.int32(1), "argument 5 is int32, the parameter a floating-point number of 4 B"),
        (3, np.zeros(1), "argument 3 is a buffer, the parameter an integer"),
        (2, np.float64(0), "argument 2 is float64, the parameter a buffer of 8 B"),
    ):
        arguments = [*RIGHT[: number - 1], wrong, *RIGHT[number:]]
        with pytest.raises(LaunchFailed, match=f"^f: {said}"):
            launch(device, build, "f", ONE, ONE, arguments)
    with pytest.raises(LaunchFailed, match="f: 6 arguments, it has 7 parameters"):
        launch(device, build, "f", ONE, ONE, RIGHT[:-1])


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
