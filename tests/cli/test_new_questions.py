"""``launchwise new``: what it asks about a kernel, word by word, and what a person confirms."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_new import written


def line(tmp_path: Path, key: str, name: str = "mine") -> str:
    """The line of a key in the spec that was written."""
    lines = (tmp_path / name / "spec.yaml").read_text().splitlines()
    return next(each.strip() for each in lines if each.strip().startswith(f"{key}:"))


SHIFTED = """\
__global__ void slope(float *out, const float *in, int n, int last)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        ("bool inner = i + 1 < n; out[i] = inner ? in[i + 1] : 0;", ""),
        ("float next = 0; if (i < n - 1) next = in[i + 1]; out[i] = next;", ""),
        ("out[i] = i < n - 1 ? in[i + 1] : 0;", ""),
        ("if (i < n - 1 || last) out[i] = in[i];", ""),
        ("out[i] = 0; if (i > 0 && i < n - 1) { out[i] = in[i + 1]; }", ""),
        ("if (i > 0 && i < n - 1) out[i] = in[i + 1] - in[i - 1];", "ceil_div(n - 1, B)"),
        ("if (i == 0 || i >= n - 1) return; out[i] = in[i + 1];", "ceil_div(n - 1, B)"),
        ("if (i < n) { out[i] = in[i]; if (i < n - 1) out[i] += in[i + 1]; }", "ceil_div(n, B)"),
    ],
)
def test_a_bound_of_a_neighbour_is_no_bound_of_the_grid(
    tmp_path: Path, body: str, grid: str
) -> None:
    written(tmp_path, SHIFTED.replace("BODY", body))
    said = line(tmp_path, "grid").replace("block_size_x", "B")
    question = '  # ? x: the kernel has no bound; where sizes must fit, constraints: ["n % B == 0"]'
    assert said == (f'grid: ["{grid}"]' if grid else f'grid: ["ceil_div(n, B)"]{question}')


WALK = """\
template <int GX, int GY, int PM, int PN>
__global__ void twice(int m, int n, float *c)
{
    extern __shared__ float room[];
    for (int j = threadIdx.y; j < PN; j += GY)
        for (int i = threadIdx.x; i < PM; i += GX) {
            int row = blockIdx.x * PM + i, col = blockIdx.y * PN + j;
            room[j * PM + i] = 2;
            if (row < m && col < n) c[col * m + row] *= room[j * PM + i];
        }
}
template <int GX, int GY, int PM, int PN>
void launch(int rows, int columns, float *c)
{
    HOST
}
"""
MEMBERS = """\
dim3 blockDim;
    blockDim.x = GX;
    blockDim.y = GY;
    dim3 grid((rows + PM - 1) / PM, (columns + PN - 1) / PN);
    size_t bytes = PM * PN * sizeof(float);
    twice<GX, GY, PM, PN><<<grid, blockDim, bytes, 0>>>(rows, columns, c);"""
DIM3 = """\
dim3 threads(GX, GY), grid((rows + PM - 1) / PM, (columns + PN - 1) / PN);
    twice<GX, GY, PM, PN><<<grid, threads, PM * PN * sizeof(float)>>>(rows, columns, c);"""
SUMMED = DIM3.replace("PM * PN * sizeof(float)>", "room>").replace(
    "dim3", "size_t room = 0; room += (PM + 1) * 4; room += PN * sizeof(double); dim3"
)
NUMBERS = """\
dim3 threads(8, 16), grid((rows + 31) / 32, (columns + 31) / 32);
    twice<8, 16, 32, 32><<<grid, threads, threads.x * rows>>>(rows, columns, c);"""


@pytest.mark.parametrize(
    ("host", "shared"),
    [
        (MEMBERS, "PM * PN * 4"),
        (DIM3, "PM * PN * 4"),
        (SUMMED, "(PM + 1) * 4 + PN * 8"),
        (NUMBERS, "GX * m"),
        ("", ""),
    ],
)
def test_the_block_of_host_code_is_that_of_the_spec(tmp_path: Path, host: str, shared: str) -> None:
    spec = written(tmp_path, WALK.replace("HOST", host))
    (variant,) = spec["variants"].values()
    assert variant["block"] == ["GX", "GY"]
    assert variant["grid"] == ["ceil_div(m, PM)", "ceil_div(n, PN)"]
    assert "?" not in line(tmp_path, "block") + line(tmp_path, "grid")
    said = line(tmp_path, "shared_bytes")
    assert said == f'shared_bytes: "{shared}"' if shared else said.endswith("__shared__ array")
    if host == NUMBERS:
        assert [spec["baseline"][name] for name in ("GX", "GY", "PM", "PN")] == [8, 16, 32, 32]


@pytest.mark.parametrize(
    ("type_", "size"), [("double", 8), ("float4", 16), ("unsigned char", 1), ("long long", 8)]
)
def test_shared_memory_of_the_scope_of_the_file_is_asked_for(
    tmp_path: Path, type_: str, size: int
) -> None:
    text = """\
extern __shared__ TYPE kept[];
__global__ void turned(double *out, const double *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kept[threadIdx.x] = in[i];
    if (i < n) out[i] = kept[threadIdx.x];
}
__global__ void plain(double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1;
}
"""
    text = text.replace("TYPE", type_).replace("double", type_)
    written(tmp_path, text, "--kernel", "turned")
    said = line(tmp_path, "shared_bytes")
    assert said == (
        f'shared_bytes: "{size} * block_size_x"  # ? bytes of the extern __shared__ array'
    )
    (variant,) = written(tmp_path, text, "--kernel", "plain", name="other")["variants"].values()
    assert "shared_bytes" not in variant


KEPT = """\
__device__ int next(int *counter) { int place = atomicAdd(counter, 1); return place; }
__global__ void kept(float *out, int *counter, float *all, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    all[i] = in[i];
    if (in[i] > 0) {
        BODY
    }
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "out[atomicAdd(counter, 1)] = in[i];",
        "int first; first = atomicAdd(counter, 1); int place = first + 0; out[place] = in[i];",
        "const int place = next(counter); out[place] = in[i];",
        "int at = 0; if (i % 32 == 0) at = atomicAdd_block(counter, 32); "
        "at = __shfl_sync(~0u, at, 0); out[at + i % 32] = in[i];",
    ],
)
def test_an_output_whose_places_a_counter_gives_asks_for_its_length(
    tmp_path: Path, body: str
) -> None:
    written(tmp_path, KEPT.replace("BODY", body))
    assert "; a counter gives the places: length: data, and compare" in line(tmp_path, "out")
    assert "counter gives" not in line(tmp_path, "all") + line(tmp_path, "counter")


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


@pytest.mark.parametrize("guarded", [True, False])
def test_the_side_of_the_block_is_that_of_the_rows(tmp_path: Path, guarded: bool) -> None:
    source = ROWS if guarded else ROWS.replace("#ifndef ROWS\n", "").replace("#endif\n", "", 1)
    spec = written(tmp_path, source)
    (variant,) = spec["variants"].values()
    side = "ROWS" if guarded else "64"
    assert variant["block"] == [side]
    assert variant["grid"] == [f"ceil_div(n, {side})"]
    assert "block_size_x" not in spec["tunables"]


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
