"""What an exported file of answers says of the launches of its Triton kernel."""

import json

import pytest
from samples import ROOT
from triton_examples import KERNEL, SPEC, scaled_answers

from launchwise.base.typed import read_yaml

ARGUMENT = "  n: {type: int32, value: n}\n"
TUNED = "@triton.autotune([], key=[{}])\n@triton.jit"


def content_of(folder, spec=SPEC, kernel=KERNEL):
    """The exported file."""
    _, path = scaled_answers(folder, spec, kernel)
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("names", "key", "wanted"), read_yaml(ROOT / "tests/exporting/data/strides.yaml")
)
def test_a_stride_is_taken_for_no_size(tmp_path, names, key, wanted):
    own = names.split()
    spec = SPEC.replace(ARGUMENT, "".join(ARGUMENT.replace("n:", f"{one}:") for one in own))
    kernel = KERNEL.replace("rows, n, factor", f"rows, {', '.join(own)}, factor")
    if key:
        kernel = kernel.replace("@triton.jit", TUNED.format(key))
    problem = content_of(tmp_path, spec, kernel)["problem"]
    assert problem == {"rows": "rows", "n": wanted, "dtype": "y.dtype"}


def test_a_stride_states_a_size_where_nothing_else_does(tmp_path):
    spec = SPEC.replace(ARGUMENT, ARGUMENT.replace("n:", "stride_y:"))
    spec = spec.replace("shape: [rows, n]", 'shape: ["rows * n"]')
    kernel = KERNEL.replace("rows, n, factor", "rows, stride_y, factor")
    assert content_of(tmp_path, spec, kernel)["problem"]["n"] == "stride_y"


def test_a_file_holds_no_macro_that_reads_the_problem(tmp_path):
    macros = (
        "macros: {HALF: 'BLOCK // 2', EVEN: 'n % BLOCK == 0', WIDE: 'n > 512', KIND: \"'a'\", "
        "TYPE: \"'tl.float16' if BLOCK > 64 else 'tl.float32'\"}"
    )
    spec = SPEC.replace('macros: {HALF: "BLOCK // 2"}', macros)
    names = ("HALF", "EVEN", "WIDE", "KIND", "TYPE")
    listed = ", ".join(f"{name}: tl.constexpr" for name in names)
    content = content_of(tmp_path, spec, KERNEL.replace("HALF: tl.constexpr", listed))
    assert content["fallback"] == {"BLOCK": 64, "num_warps": 1, "HALF": 32}
    assert content["computed"] == {
        "EVEN": "n % BLOCK == 0",
        "WIDE": "n > 512",
        "KIND": "'a'",
        "TYPE": "'tl.float16' if BLOCK > 64 else 'tl.float32'",
    }
