"""``launchwise new``: what it asks about a kernel, word by word."""

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


def test_a_kernel_without_bounds_asks_for_multiples_of_its_block(tmp_path: Path) -> None:
    written(
        tmp_path,
        """\
__global__ void flip(unsigned char *out, const unsigned char *in, int width, int height)
{
    int x = blockIdx.x * TILE_X + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    out[y * width + x] = 255 - in[y * width + x];
}
""",
    )
    said = line(tmp_path, "grid")
    assert 'constraints: ["width % TILE_X == 0"]; y: ' in said
    assert said.endswith('constraints: ["height % 4 == 0"]')


def test_a_name_that_ifdef_alone_reads_stays_undefined(tmp_path: Path) -> None:
    spec = written(
        tmp_path,
        """\
__global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(OTHER_VENDOR) && !defined(PLAIN)
    i ^= 1;
#endif
#ifdef SAFE
    if (i < 0) return;
#endif
    if (i < n) x[i] *= 2;
}
""",
    )
    assert list(spec["tunables"]) == ["block_size_x"]
    assert "macros" not in spec
    lines = (tmp_path / "mine" / "spec.yaml").read_text().splitlines()
    (said,) = (each for each in lines if "undefined" in each)
    assert said == (
        "# Left undefined, as #ifdef alone reads it: OTHER_VENDOR, PLAIN, SAFE. "
        "Define a name under macros."
    )
