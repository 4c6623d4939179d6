"""``launchwise new``: drafts of templates, blocks and shapes that a person confirms."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_new import written
from test_new_questions import line

ROWS = """\
#ifndef ROWS
#define ROWS 64
#endif
template <int WIDTH, bool CLAMP, bool USE_CACHE>
__global__ void row_sums(float *out, const float *in, int n)
{
    __shared__ float part[WIDTH];
    const int first = blockIdx.x * ROWS;
    const int row = first + threadIdx.x;
    for (int i = threadIdx.x; i < WIDTH; i += blockDim.x) part[i] = in[i];
    __syncthreads();
    if (row < n) {
        float sum = 0;
        for (int i = 0; i < WIDTH; i++) sum += part[i] * in[row * WIDTH + i];
        out[row] = CLAMP ? fminf(sum, 1.0f) : sum;
    }
}

template <int W>
static void launch(float *out, const float *in, int n, bool clamp)
{
    if (clamp) row_sums<W, true, true><<<(n + ROWS - 1) / ROWS, ROWS>>>(out, in, n);
    else row_sums<W, false, true><<<(n + ROWS - 1) / ROWS, ROWS>>>(out, in, n);
}

void sums(float *out, const float *in, int n, int width, bool clamp)
{
    if (width == 48) launch<48>(out, in, n, clamp);
    else launch<96>(out, in, n, clamp);
}
"""

CHANGES = "# ? tunes nothing if it changes the result: then make it a problem parameter with values"


def test_a_flag_of_a_template_is_asked_about(tmp_path: Path) -> None:
    spec = written(tmp_path, ROWS)
    assert spec["tunables"]["CLAMP"]["values"] == [0, 1]
    assert line(tmp_path, "CLAMP").endswith(CHANGES)
    # Its name says how it computes.
    assert "#" not in line(tmp_path, "USE_CACHE")


def test_a_number_of_a_template_has_the_values_of_the_launches(tmp_path: Path) -> None:
    spec = written(tmp_path, ROWS)
    assert spec["tunables"]["WIDTH"]["values"] == [48, 96]
    assert spec["baseline"]["WIDTH"] == 48
    assert line(tmp_path, "WIDTH").endswith(CHANGES)


def test_a_flag_that_if_reads_is_asked_about(tmp_path: Path) -> None:
    written(
        tmp_path,
        """\
#ifndef MIRROR
#define MIRROR 0
#endif
#ifndef UNROLLED
#define UNROLLED 1
#endif
__global__ void copy(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if UNROLLED
#pragma unroll
#endif
    for (int k = 0; k < 1; ++k)
#if MIRROR
        if (i < n) out[i] = in[n - 1 - i];
#else
        if (i < n) out[i] = in[i];
#endif
}
""",
    )
    assert line(tmp_path, "MIRROR").endswith(CHANGES)
    assert "#" not in line(tmp_path, "UNROLLED")


@pytest.mark.parametrize("guarded", [True, False])
def test_the_side_of_the_block_is_that_of_the_rows(tmp_path: Path, guarded: bool) -> None:
    source = ROWS if guarded else ROWS.replace("#ifndef ROWS\n", "").replace("#endif\n", "", 1)
    spec = written(tmp_path, source)
    (variant,) = spec["variants"].values()
    side = "ROWS" if guarded else "64"
    assert variant["block"] == [side]
    assert variant["grid"] == [f"ceil_div(n, {side})"]
    assert "block_size_x" not in spec["tunables"]


def test_threads_that_walk_through_rows_leave_the_block_open(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """\
__global__ void halve(float *out, const float *in, int n)
{
    for (int r = threadIdx.x; r < 64; r += blockDim.x) {
        int row = blockIdx.x * 64 + r;
        if (row < n) out[row] = in[row] / 2;
    }
}
""",
    )
    (variant,) = spec["variants"].values()
    assert variant["block"] == ["block_size_x"]


@pytest.mark.parametrize(
    "body",
    [
        "int first = t * items; for (int i = first; i < first + items; i++) if (i < n) out[i] = 1;",
        "int i = blockIdx.x * items + threadIdx.x; if (i < n) out[i] = 1;",
    ],
)
def test_a_grid_that_leaves_out_the_items_of_a_thread_is_asked_about(
    tmp_path: Path, body: str
) -> None:
    written(
        tmp_path,
        f"""\
__global__ void ones(int *out, int n, int items)
{{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    {body}
}}
""",
    )
    assert "# ? x: " in line(tmp_path, "grid")


def test_a_pitch_is_no_question_of_the_grid(tmp_path: Path) -> None:
    written(
        tmp_path,
        """\
__global__ void ones(int *out, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int i = y * width + x;
    if (x < width && y < height) out[i] = 1;
}
""",
    )
    assert "#" not in line(tmp_path, "grid")


REACHED = """\
struct pair { float a, b; };
__device__ void exchange(float &a, float &b) { float t = a; a = b; b = t; }
__device__ float total(const float &a, const float &b) { float t = a; t += b; return t; }
__global__ void walk(float *values, float *seen, const int *first, const int *node_idx, int *found,
                     int *most, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, last = first[0];
    for (int v = i * 2; v < last; v++) {
        if (first[v + 1] - first[v] > *most) *found = 1;
        if (node_idx[v] < i) exchange(values[i], values[node_idx[v]]);
        float both = total(seen[i], seen[v]);
        if (both > 1) most[0] = 2;
    }
}
"""


def test_one_element_references_ranges_and_indices(tmp_path: Path) -> None:
    arguments = written(tmp_path, REACHED)["arguments"]
    assert arguments["values"]["role"] == "inout"
    assert arguments["seen"].get("role", "input") == "input"
    assert arguments["found"]["shape"] == arguments["most"]["shape"] == [1]
    assert arguments["found"]["role"] == "output"
    assert line(tmp_path, "found").endswith("Where not every launch writes it, it is inout")
    assert arguments["first"]["shape"] == ["n + 1"]
    assert arguments["node_idx"]["fill"] == "iota"
    assert "fill: what do the indices reach?" in line(tmp_path, "node_idx")


def test_an_array_that_a_sum_changes_is_not_added_by_numpy(tmp_path: Path) -> None:
    source = """\
__global__ void add(float *sum, const float *more, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] += more[i];
}
"""
    assert written(tmp_path, source)["reference"]["file"] == "reference.py:expected"
