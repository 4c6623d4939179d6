"""Workloads in one file that use, together, everything that such a file can say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from samples import ROOT

STEPS = {
    "spec.yaml": """\
workload: steps
title: two kernels one after the other, on a buffer that is read and written
problem:
  n: {type: integer, minimum: 1, maximum: 1048576}
  dtype: {type: category, values: [float32, float64]}
tunables:
  threads: {kind: launch, values: [32, 128]}
macros: {REAL: "'double' if dtype == 'float64' else 'float'"}
arguments:
  values: {type: dtype, shape: [n], role: inout, fill: iota}
  sums: {type: dtype, shape: ["ceil_div(n, threads_of_sum)"], role: output}
  factor: {type: float64, value: "2"}
  n: {type: int64, value: n}
derived: {threads_of_sum: "64"}
reference: {file: "reference.py:expected", tolerance: {float32: 1.0e-5, float64: 1.0e-13}}
variants:
  both:
    source: steps.cu
    tunables: [threads]
    kernels:
      - kernel: scale
        block: [threads]
        grid: ["ceil_div(n, threads)"]
        arguments: [values, factor, n]
      - kernel: sum
        block: [threads_of_sum]
        grid: ["ceil_div(n, threads_of_sum)"]
        shared_bytes: "threads_of_sum * (8 if dtype == 'float64' else 4)"
        arguments: [sums, values, n]
        main: true
baseline: {variant: both, threads: 32}
""",
    "steps.cu": """\
extern "C" __global__ void scale(REAL *values, double factor, long long n)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] = (REAL)(factor * values[i]);
}

__global__ void sum(REAL *sums, const REAL *values, long long n)
{
    extern __shared__ unsigned char raw[];
    REAL *part = reinterpret_cast<REAL *>(raw);
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? values[i] : REAL(0);
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
""",
    "reference.py": """\
import numpy as np


def expected(n, values, **others):
    doubled = 2 * values
    padded = np.pad(doubled, (0, -n % 64))
    return {"values": doubled, "sums": padded.reshape(-1, 64).sum(axis=1)}
""",
}

CONSTANT = {
    "spec.yaml": """\
workload: constant
title: filter in constant memory, content of a file, one variant right by another
problem:
  n: {type: integer, minimum: 8, maximum: 1048576}
tunables:
  block_size_x: {kind: build, values: [32, 64]}
arguments:
  output: {type: float32, shape: [n], role: output}
  input: {type: float32, shape: ["n + 2"], fill: {uniform: [0, 1]}}
  weights: {type: float32, shape: [3], fill: {file: weights.npy}, constant: d_weights}
  start: {type: uint8, value: "1"}
  n: {type: int32, value: n}
reference: {variant: plain, tolerance: 1.0e-6}
variants:
  plain:
    source: plain.cu
    kernel: filter
    block: [32]
    grid: ["ceil_div(n, 32)"]
  blocked:
    source: blocked.cu
    kernel: filter
    tunables: [block_size_x]
    block: [block_size_x]
    grid: ["ceil_div(n, block_size_x)"]
baseline: {variant: plain}
""",
    "plain.cu": """\
__constant__ float d_weights[3];

__global__ void filter(float *output, const float *input, unsigned char start, int n)
{
    const int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    float sum = start - 1.0f;
    for (int k = 0; k < 3; ++k) sum += d_weights[k] * input[i + k];
    output[i] = sum;
}
""",
    "blocked.cu": """\
__constant__ float d_weights[3];

__global__ void filter(float *output, const float *input, unsigned char start, int n)
{
    __shared__ float part[block_size_x + 2];
    const int first = blockIdx.x * block_size_x, i = first + threadIdx.x;
    for (int k = threadIdx.x; k < block_size_x + 2 && first + k < n + 2; k += block_size_x)
        part[k] = input[first + k];
    __syncthreads();
    if (i >= n) return;
    float sum = start - 1.0f;
    for (int k = 0; k < 3; ++k) sum += d_weights[k] * part[threadIdx.x + k];
    output[i] = sum;
}
""",
}

WORKLOADS = {"steps": STEPS, "constant": CONSTANT}
SMALL = {"steps": ["n=1000", "dtype=float32,float64"], "constant": ["n=1000"]}
"""Problems for a run, as the command line has them."""


def written(name: str, place: Path) -> Path:
    """The folder of a workload, made below ``place``."""
    folder = place / name
    folder.mkdir(parents=True)
    for file, text in WORKLOADS[name].items():
        (folder / file).write_text(text)
    if name == "constant":
        np.save(folder / "weights.npy", np.array([0.25, 0.5, 0.25], np.float32))
    return folder


def from_guide(page: str, folder: Path) -> Path:
    """The workload whose files a page of ``docs/how-to`` shows, each under its name."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    files = re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    assert files, page
    folder.mkdir()
    for name, content in files:
        (folder / name).write_text(content)
    return folder
