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
from tests.support.nvcc import kept_nvcc

HOST = """\
// Author: J\xfcrgen
#include "cuda_runtime.h"
#include <cassert>
#include <chrono>
#include <cooperative_groups.h>
#include <cstdio>
#include <iostream>
#include <mma.h>
#include <vector>
#ifdef _WIN32
#include <windows.h>
#endif
#include "sizes.h"
#include "deep/once.cuh"

#define CHECK(call) do { cudaError_t status = (call); if (status) return 1; } while (0)
#ifndef BLOCK
#define BLOCK 128
#endif
#if BLOCK > 64
#define WIDE 1
#endif
#define STEPS (UNROLL * 2)

namespace cg = cooperative_groups;
using namespace nvcuda;

struct Params { float a; int n; };
__constant__ float weights[4];
static __constant__ float hidden[4];
__device__ int counter;

namespace {
__device__ float twice(float x) { return 2 * x; }
}

/* Called `copy`, as std::copy is. */
static __global__ void __launch_bounds__(BLOCK) copy(float *out, const float *in, int n)
{
    namespace groups = cooperative_groups;
    auto block = groups::this_thread_block();
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    float sum = 0;
#pragma unroll UNROLL
    for (int k = 0; k < 16; ++k) sum += in[(i + k) % n];
#pragma unroll(UNROLL / 2) // half
    for (int k = 0; k < 16; ++k) sum += in[(i + 2 * k) % n];
    _Pragma("unroll STEPS")
    for (int k = 0; k < 16; ++k) sum += in[(i + 3 * k) % n];
    block.sync();
    assert(n > 0);
#ifdef WIDE
    __shared__ float wide[256];
    wide[threadIdx.x] = sum;
    __syncthreads();
    sum = wide[BLOCK - 1 - threadIdx.x];
#endif
    if (i < n) out[i] = twice(sum) * weights[0] + hidden[1] + OFFSET + once();
    if (i == 0) atomicAdd(&counter, 1);
}

int main(int argc, char **argv)
{
    std::vector<float> values(1 << 10);
    std::copy(values.begin(), values.end(), values.begin());
    auto began = std::chrono::steady_clock::now();
    float *device;
    CHECK(cudaMalloc(&device, values.size() * sizeof(float)));
    copy<<<4, BLOCK>>>(device, device, 1 << 10);
    std::cout << (std::chrono::steady_clock::now() - began).count() << argc << argv[0];
    return 0;
}
"""

FILES = {
    "host.cu": HOST.encode("latin-1"),
    "sizes.h": b"#ifndef SIZES_H\n#define SIZES_H\n"
    b"#define OFFSET 3\nstruct Size { int n; };\n#endif\n",
    "deep/once.cuh": b'#pragma once\n#include "../sizes.h"\n'
    b"__device__ inline float once() { Size s{OFFSET}; return s.n; }\n",
}

SPEC = {
    "workload": "host",
    "title": "a file with everything",
    "problem": {"n": {"type": "integer", "minimum": 1, "maximum": 1048576}},
    "tunables": {
        "BLOCK": {"kind": "build", "values": [32, 128]},
        "UNROLL": {"kind": "build", "values": [0, 1, 4]},
    },
    "arguments": {
        "out": {"type": "float32", "shape": ["n"], "role": "output"},
        "in": {"type": "float32", "shape": ["n"]},
        "w": {"type": "float32", "shape": ["4"], "constant": "hidden"},
        "n": {"type": "int32", "value": "n"},
    },
    "reference": {"file": "reference.py:expected"},
    "variants": {
        "only": {
            "source": "host.cu",
            "kernel": "copy",
            "arguments": ["out", "in", "n"],
            "tunables": ["BLOCK", "UNROLL"],
            "block": ["BLOCK"],
            "grid": ["ceil_div(n, BLOCK)"],
        }
    },
    "baseline": {"variant": "only", "BLOCK": 128},
}


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


TEMPLATES = """\
#include <cuda_bf16.h>
enum class Mode { sum, product };
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
using real = float;
constexpr int WIDE = 96;

namespace mine {
template <int BM, int BN, typename T, bool SAFE = true>
__global__ void gemm(T *out, const T *__restrict__ in, int n)
{
    __shared__ T tile[BM * BN];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (SAFE && i >= n) return;
#pragma unroll BN
    for (int k = 0; k < BM * BN; k += 8) tile[k] = in[i];
    out[i] = tile[i % BN];
}
template __global__ void gemm<5, 5, float, false>(float *, const float *, int);
namespace {
template <typename T> __global__ void hidden(T *out, const T *in, int n)
{
    __shared__ T tile[24];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
__global__ void alone(float *out, const float *in, int n) { out[threadIdx.x] = in[n - 1]; }
}
}

template <Mode M, class Op, char C> __global__ void reduce(float *out, const float *in, int n)
{
    out[threadIdx.x] = M == Mode::sum ? Op()(in[n - 1], C) : 0;
}

template <int N> static __global__ void scale(float *out, const float *in, int n)
{
    __shared__ float tile[N];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
template __global__ void scale<32>(float *, const float *, int);
__global__ void plain(float *out, const float *in, int n) { out[threadIdx.x] = in[n - 1]; }
#ifdef __EDITOR__  // Not the compiler's any more
#define __global__
#endif
"""


def template_spec():
    """A spec whose variant launches several templates by name."""
    launched = {"block": ["32"], "grid": ["1"], "arguments": ["out", "in", "n"]}
    kernels = [
        "gemm<BM, BM / TM, dtype>",
        "mine::gemm<BM, TM, float, false>",
        "reduce<Mode::sum, Plus, 'c'>",
        "scale<16>",
        "scale<WIDE>",
        "scale<32u>",
        "plain",
        "mine::hidden<float>",
        "mine::alone",
    ]
    types = {"type": "category", "values": ["float32", "bfloat16"]}
    return {
        **changed(SPEC),
        "problem": {**SPEC["problem"], "dtype": types},
        "tunables": {
            "BM": {"kind": "build", "values": [32, 64]},
            "TM": {"kind": "build", "values": [8]},
        },
        "variants": {
            "only": {
                "source": "host.cu",
                "kernels": [{"kernel": kernel, **launched} for kernel in kernels],
                "tunables": ["BM", "TM"],
                "block": ["32"],
                "grid": ["1"],
            }
        },
        "baseline": {"variant": "only", "BM": 32},
    }


class TestTemplates:
    """Templates by name, several instantiations in one build."""

    pytestmark = kept_nvcc

    def test_each_instantiation_is_compiled_and_found(self, tmp_path):
        folder = write(tmp_path / "host", template_spec(), {"host.cu": TEMPLATES.encode()})
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


C_NAMES = """\
#include <functional>
#ifdef TUNED
#define LIMIT 4
#else
#undef BLOCK
#endif
struct Key { int k; };
namespace std {
template <> struct hash<Key> { size_t operator()(const Key &key) const { return key.k; } };
}
extern "C" void called(float *x) { x[0] = 1; }
extern "C" __global__ void other(float *out) { out[0] = 1; }
extern "C" __global__ void __launch_bounds__(BLOCK) copy(float *out, const float *in, int n)
{
    __shared__ float tile[BLOCK];
    tile[threadIdx.x] = in[n - 1];
    out[threadIdx.x] = tile[BLOCK - 1 - threadIdx.x] + BAD;
}
"""


class TestAlone:
    """Files that no two builds can share a unit with, and files that nvcc refuses."""

    pytestmark = kept_nvcc

    def test_a_file_that_no_namespace_can_hold_is_compiled_as_it_is(self, tmp_path):
        spec = changed(SPEC, TUNED="1", BAD="2")
        spec["tunables"]["UNROLL"]["values"] = [4]
        folder = write(tmp_path / "host", spec, {"host.cu": C_NAMES.encode()})
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
            (HOST, {}, "host.cu:13: sizes.h: No such file"),
            (
                "__global__ void copy(int *o, int *i, int n) { o = x; }",
                {},
                'host.cu:1: identifier "x"',
            ),
            (
                "\n\n__global__ void copy(int *o, int *i, int n) { "
                "__shared__ int x[20000]; x[n] = 1; "
                "*o = x[*i]; }",
                {},
                "Entry function 'copy(int*, int*, int)' uses too much shared data",
            ),
        ],
    )
    def test_a_message_names_file_and_line_of_the_user(self, tmp_path, source, macros, said):
        spec = changed(SPEC, **macros)
        for name in ("BLOCK", "UNROLL"):
            spec["tunables"][name]["values"] = [128]
        files = {"host.cu": source.encode("latin-1")}
        folder = write(tmp_path / "host", spec, files)
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
        folder = write(tmp_path / "host", spec, {"host.cu": TEMPLATES.encode()})
        with pytest.raises(UserError, match=r'host.cu:9: .*template "mine::gemm" is'):
            compiled(folder, {"n": 1000, "dtype": "float32"})
