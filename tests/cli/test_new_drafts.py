"""``launchwise new`` on small kernels in many styles: ``data/drafts.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_new import check

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.workloads.arguments import TYPES

CASES: dict[str, Any] = read_yaml(Path(__file__).parent / "data" / "drafts.yaml")
KNOWS_NEW_WORDS = {"bfloat16", "bool", "complex64"} <= {*TYPES}
"""Whether the models of a spec read templates, structures and the newer types."""


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the CUDA file, with one above it for headers outside."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_drafts(name: str, make: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    text = case["source"].replace("\n", "\r\n") if case.get("crlf") else case["source"]
    (make / "kernel.cu").write_bytes(text.encode())
    for file, content in case.get("files", {}).items():
        (make / file).parent.mkdir(parents=True, exist_ok=True)
        (make / file).write_text(content)
    assert main(["new", "mine", "--from", "kernel.cu"]) == 0
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
    assert list(spec["arguments"]) == case.get("names", list(spec["arguments"]))
    for part in ("arguments", "problem", "baseline", "macros", "reference"):
        for key, wanted in case.get(part, {}).items():
            assert spec[part][key] == wanted, f"{part}.{key}"
    assert asked >= {*case.get("open", ())}
    assert not asked & {*case.get("closed", ())}
    notes = [line for line in lines if line.startswith("# ?")]
    assert len(notes) == len(case.get("notes", ()))
    said = capsys.readouterr().out
    if "hints" in case:
        hints = [line.removeprefix("# To tune ") for line in lines if line.startswith("# To tune")]
        assert [line.split(",")[0] for line in hints] == case["hints"]
    for part in case.get("notes", ()):
        assert any(part in note for note in notes)
        assert part in said
    for file in case.get("files", {}):
        if not file.startswith(".."):
            assert (make / "mine" / file).read_bytes() == (make / file).read_bytes()
    if KNOWS_NEW_WORDS or not case.get("new_words"):
        check(make / "mine")


def test_a_file_that_is_not_utf_8_is_read_as_latin_1(make: Path) -> None:
    (make / "kernel.cu").write_bytes(
        b'// r\xe9guli\xe8re\n#include "two.h"\n'
        b"__global__ void k(float *x, int n) { x[blockIdx.x] = TWO; }\n"
    )
    (make / "two.h").write_bytes(b"#define TWO 2 // \xb5m\n")
    assert main(["new", "mine", "--from", "kernel.cu"]) == 0
    assert (make / "mine" / "two.h").read_bytes() == (make / "two.h").read_bytes()
    assert list(read_yaml(make / "mine" / "spec.yaml")["tunables"]) == ["block_size_x"]


def test_a_header_in_the_folder_that_differs_is_kept(
    make: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (make / "kernel.cu").write_text('#include "two.h"\n__global__ void k(float *x, int n) {}\n')
    (make / "two.h").write_text("#define TWO 2\n")
    (make / "mine").mkdir()
    (make / "mine" / "two.h").write_text("another")
    assert main(["new", "mine", "--from", "kernel.cu"]) == 2
    assert capsys.readouterr().err == "launchwise: mine/two.h: exists and differs from two.h\n"
    assert (make / "mine" / "two.h").read_text() == "another"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("template <class F> __global__ void k(float *x, F f) { x[0] = f(1); }", "is a function"),
        ("template <typename... A> __global__ void k(A... a) {}", "no single type or number"),
        ("__global__ void k(const int &n) {}", "a kernel takes no reference"),
        ("struct S { float m[9]; }; __global__ void k(S s) {}", "not all its fields are numbers"),
    ],
)
def test_what_no_spec_can_say_is_one_line(
    text: str, said: str, make: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (make / "kernel.cu").write_text(text)
    assert main(["new", "mine", "--from", "kernel.cu"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("launchwise: kernel.cu: k: ")
    assert error.count("\n") == 1
    assert said in error


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (
            "#define HALF\n#ifndef HALF\n__global__ void first(int *x) {}\n#endif\n",
            ["--kernel", "first"],
            "--kernel: first stands under #ifndef HALF, which line 1 defines",
        ),
        (
            "#if 0\n__global__ void first(int *x) {}\n#else\n#endif\n",
            ["--kernel", "first"],
            "--kernel: first stands under #if 0",
        ),
        (
            "__global__ void first(int *x) { x[0] = _SIDE_; }\n",
            [],
            "first: needs _SIDE_, and no name of a spec begins with an underscore: rename it",
        ),
        (
            "#define A x x x x\n#define B A A A A A A A A\n#define C B B B B B B B B\n"
            "#define D C C C C C C C C C C C C\n#define E D D D D D D D D D D\n"
            "__global__ void first(int *x) { E; }\n",
            [],
            "has an expression of more than 20,000 characters",
        ),
    ],
)
def test_what_cannot_be_drafted_says_why(
    text: str, options: list[str], said: str, make: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "__global__ void second(int *x) {}\n"
    (make / "kernel.cu").write_text(text + other)
    assert main(["new", "mine", "--from", "kernel.cu", *options]) == 2
    assert capsys.readouterr().err == f"launchwise: kernel.cu: {said}\n"


def test_an_extension_of_pytorch_is_told_with_what_to_cut(
    make: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = "__global__ void k(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 0; }\n"
    (make / "plain.cu").write_text(kernel)
    (make / "kernel.cu").write_text(
        f"// torch\n#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n{kernel}"
    )
    assert main(["new", "other", "--from", "plain.cu"]) == 0
    assert "PyTorch" not in capsys.readouterr().out
    assert main(["new", "mine", "--from", "kernel.cu"]) == 0
    said = capsys.readouterr().out
    assert "mine/kernel.cu is an extension of PyTorch" in said
    assert "cut lines 2, 3 and the host code that names torch::" in said
