"""``launchwise check --cpu``: right kernels pass, and each planted mistake is told in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check import cpu_runs, steps
from launchwise.cli.check.cases import MEMORY_BYTES, Cases
from launchwise.cli.check.checking import listed_problems
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")

EXAMPLES = ROOT / "docs" / "tutorial" / "example"
SPEC = """\
workload: turn
title: transposed matrix
problem:
  rows: {type: integer, minimum: 1, maximum: 4096}
  cols: {type: integer, minimum: 1, maximum: 4096}
tunables:
  tile: {kind: build, values: [8, 16]}
arguments:
  output: {type: float32, shape: [cols, rows], role: output}
  input: {type: float32, shape: [rows, cols]}
  rows: {type: int32, value: rows}
  cols: {type: int32, value: cols}
reference: {call: numpy.transpose, given: [input]}
variants:
  tiled:
    source: turn.cu
    kernel: turn
    tunables: [tile]
    block: [tile, tile]
    grid: ["ceil_div(cols, tile)", "ceil_div(rows, tile)"]
baseline: {variant: tiled, tile: 8}
"""
KERNEL = """\
__global__ void turn(float *output, const float *input, int rows, int cols)
{
    __shared__ float part[tile][tile + 1];
    int row = blockIdx.y * tile + threadIdx.y, col = blockIdx.x * tile + threadIdx.x;
    if (row < rows && col < cols)
        part[threadIdx.y][threadIdx.x] = input[row * cols + col];
    __syncthreads();
    row = blockIdx.y * tile + threadIdx.x, col = blockIdx.x * tile + threadIdx.y;
    if (row < rows && col < cols)
        output[col * rows + row] = part[threadIdx.x][threadIdx.y];
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A transpose in shared memory, with blocks of two dimensions and a barrier."""
    # Compilation by nvcc has tests of its own.
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = tmp_path / "turn"
    path.mkdir()
    (path / "spec.yaml").write_text(SPEC)
    (path / "turn.cu").write_text(KERNEL)
    return path


def complaint(folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str) -> str:
    """What is said of a mistake in the kernel, on one line."""
    text = (folder / "turn.cu").read_text()
    assert old in text
    (folder / "turn.cu").write_text(text.replace(old, new))
    assert main(["check", str(folder), "--cpu"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert "spec.yaml: variants.tiled: " in said
    return said


def test_a_right_kernel_passes_at_odd_sizes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(folder), "--cpu", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)
    runs = [step["said"] for step in steps if step["name"] == "cpu"]
    assert all(step["passed"] for step in steps if step["name"] == "cpu")
    assert [said.partition(": ")[0] for said in runs] == [
        "tiled tile=8 at rows=1, cols=1",
        "tiled tile=16 at rows=1, cols=1",
        "tiled tile=8 at rows=14, cols=27",
        "tiled tile=16 at rows=14, cols=27",
        # Two blocks of the largest tile along each side.
        "tiled tile=8 at rows=27, cols=29",
        "tiled tile=16 at rows=27, cols=29",
        # One size above the 256 threads of the largest block.
        "tiled tile=8 at rows=301, cols=27",
        "tiled tile=16 at rows=301, cols=27",
        "tiled tile=8 at rows=14, cols=301",
        "tiled tile=16 at rows=14, cols=301",
    ]
    assert all("largest error 0, allowed 1e-05" in said for said in runs)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("__syncthreads();", "", "wrong on the CPU: output"),
        (
            "col < cols)\n        output",
            "true)\n        output",
            "failed on the CPU: turn: writes byte 4, beyond the end of a buffer of 4 B",
        ),
        (
            "output[col * rows + row] =",
            "output[col * rows + row - 1] =",
            "failed on the CPU: turn: writes byte -1, beyond the start of a buffer of 4 B",
        ),
        ("= input[row * cols + col]", "= input[row * cols + col + 1]", "wrong on the CPU: output"),
        ("output[col * rows + row] =", "output[col * rows + row] = 1 +", "wrong on the CPU: "),
        ("output[col * rows + row]", "output[row * cols + col]", "at rows=14, cols=27"),
        ("output[col", "output[(1 << 28) + col", "failed on the CPU: turn: accesses memory"),
        ("__syncthreads();", "__trap();", "failed on the CPU: "),
    ],
    ids=[
        *("no barrier", "no guard", "before it", "reads beyond it", "wrong value", "not turned"),
        *("far away", "trap"),
    ],
)
def test_a_mistake_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    assert said in complaint(folder, capsys, old, new)


def test_a_block_whose_last_warp_is_not_full_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "spec.yaml"
    assert "not full" not in complaint(folder, capsys, "__syncthreads();", "")
    (folder / "turn.cu").write_text(KERNEL)
    path.write_text(path.read_text().replace("values: [8, 16]", "values: [5, 16]"))
    path.write_text(path.read_text().replace("tile: 8}", "tile: 5}"))
    said = complaint(folder, capsys, "__syncthreads();", "")
    assert "; the block has 25 threads, no multiple of 32: its last warp is not full" in said


def test_a_kernel_that_never_ends_is_ended(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_runs, "SILENCE_S", 0.5)
    said = complaint(folder, capsys, "__syncthreads();", "for (volatile int x = 0; x < 1;);")
    assert "failed on the CPU: did not finish within 0.5 s (tiled tile=8 at rows=1, cols=1)" in said


def test_what_the_cpu_cannot_run_is_left_out_with_its_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "turn.cu").read_text()
    old = "    __syncthreads();"
    (folder / "turn.cu").write_text(text.replace(old, f'{old}\n    asm volatile("bar.sync 0;");'))
    assert main(["check", str(folder), "--cpu"]) == 1
    said = capsys.readouterr()
    lines = [line for line in said.out.splitlines() if "cpu: " in line]
    # What is left out for one reason is told once, and counted.
    first, last = lines
    assert first.startswith("left out cpu: tiled tile=8 at rows=1, cols=1: turn.cu:8")
    assert "cpu: 10 of 10 runs are left out: turn.cu:8" in last
    # Nothing verified is no success.
    assert said.err.startswith(
        "launchwise: nothing was verified on the CPU, 10 of 10 runs are left out:"
    )
    assert "turn.cu:8" in said.err


def test_every_configuration_is_run_and_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "turn.cu").read_text()
    # Blocks of 16 compute nonsense, and one of 8 at the odd size crashes.
    text = text.replace("= input[row", "= (tile == 16) + input[row").replace(
        "    int row", "    if (tile == 8 && rows == 14 && cols < 99) __trap();\n    int row"
    )
    (folder / "turn.cu").write_text(text)
    assert main(["check", str(folder), "--cpu"]) == 2
    said = capsys.readouterr()
    statuses = [line[:8].strip() for line in said.out.splitlines() if " cpu: " in line]
    assert statuses == ["ok", "wrong", "failed", "wrong", *["ok", "wrong"] * 3]
    assert said.err.count("\n") == 1
    assert "wrong on the CPU: output" in said.err
    assert "(tiled tile=16 at rows=1, cols=1); 5 others are wrong or fail" in said.err


def test_what_is_left_out_is_counted_where_others_ran(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "turn.cu").read_text()
    old = "    __syncthreads();"
    some = '#if tile == 16\n    asm volatile("bar.sync 0;");\n#endif\n'
    (folder / "turn.cu").write_text(text.replace(old, some + old))
    assert main(["check", str(folder), "--cpu"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "cpu: 5 of 10 runs are left out: turn.cu:" in last


def test_a_mistake_of_the_reference_is_the_users(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "spec.yaml"
    path.write_text(
        path.read_text().replace(
            "{call: numpy.transpose, given: [input]}", '{file: "right.py:expected"}'
        )
    )
    (folder / "right.py").write_text("def expected(input, **others):\n    return input[1, 2, 3]\n")
    assert main(["check", str(folder), "--cpu"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "right.py" in said
    assert "IndexError" in said


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("input", "reference.py:expected gives shape (14, 27) for output, whose shape is (27, 14)"),
        ("input.T", ""),
        ("input.T.ravel()", ""),
        ("input.T[:, None, :, None]", ""),
        ("input.T.ravel()[:-1]", "for output, whose shape is (1, 1)"),
    ],
)
def test_an_expected_array_in_another_order_of_elements_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], result: str, said: str
) -> None:
    path = folder / "spec.yaml"
    call = "call: numpy.transpose, given: [input]"
    path.write_text(path.read_text().replace(call, 'file: "reference.py:expected"'))
    (folder / "reference.py").write_text(f"def expected(input):\n    return {result}\n")
    assert (main(["check", str(folder), "--cpu"]) or 0) == (2 if said else 0)
    assert said in capsys.readouterr().err


def test_host_code_runs_on_the_cpu_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert main(["check", str(EXAMPLES / "saxpy"), "--cpu"]) == 0
    runs = [line for line in capsys.readouterr().out.splitlines() if " cpu: " in line]
    # The smallest problem of its sweep.yaml, of each type.
    assert any("dtype=float64" in line for line in runs)
    assert all(line.startswith("ok") for line in runs)


def test_small_problems_are_small() -> None:
    for folder in sorted((ROOT / "kernels").glob("*/spec.yaml")):
        spec = load_spec(folder.parent)
        cases = Cases(spec, UNKNOWN_GPU)
        cases.plan(listed_problems(folder.parent, spec))
        assert spec.value(spec.work.footprint_bytes, cases.runs[0].problem) <= MEMORY_BYTES


def test_without_a_compiler_it_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    assert main(["check", str(folder), "--cpu"]) == 2
    assert "check: --cpu: g++ is not on the PATH" in capsys.readouterr().err


SUMS = """\
__global__ void sums(float *total, const float *input, int columns)
{
    __shared__ float parts[8];
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += 256)
        sum += input[blockIdx.x * columns + i];
    for (int step = 16; step; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int warp = 0; warp < 8; warp++)
        sum += parts[warp];
    if (threadIdx.x == 0)
        total[blockIdx.x] = sum;
}
"""
SPEC_OF_SUMS = """\
workload: sums
title: sums of rows
problem:
  rows: {type: integer, minimum: 1, maximum: 4096}
  columns: {type: integer, minimum: 4, maximum: 4096}
tunables: {}
arguments:
  total: {type: float32, shape: [rows], role: output}
  input: {type: float32, shape: [rows, columns]}
  columns: {type: int32, value: columns}
reference: {call: numpy.sum, given: [input, 1], tolerance: 1.0e-4}
variants:
  plain: {source: sums.cu, kernel: sums, tunables: [], block: [256], grid: [rows]}
baseline: {variant: plain}
"""


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sums of rows by blocks of eight warps."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = tmp_path / "sums"
    path.mkdir()
    (path / "spec.yaml").write_text(SPEC_OF_SUMS)
    (path / "sums.cu").write_text(SUMS)
    return path


def test_sizes_above_a_block_run(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(sums), "--cpu"]) == 0
    assert "plain at rows=14, columns=1069: largest error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("warp < 8", "warp < 2"),
        ("i += 256", "i += 512"),
        (
            "for (int i = threadIdx.x; i < columns; i += 256)",
            "for (int i = 2 * threadIdx.x; i + 1 < columns; i += 768)",
        ),
        ("    __syncthreads();\n", ""),
    ],
    ids=[
        "two of eight warps",
        "step of a loop inside a block",
        "step of pairs",
        "barrier between warps",
    ],
)
def test_a_mistake_beyond_one_warp_shows(
    sums: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    assert old in SUMS
    (sums / "sums.cu").write_text(SUMS.replace(old, new))
    assert main(["check", str(sums), "--cpu"]) == 2
    assert "at rows=14, columns=1069" in "".join(
        line for line in capsys.readouterr().out.splitlines(keepends=True) if "wrong" in line
    )


@pytest.mark.parametrize(
    ("problem", "wide"),
    [
        # Counts launches only; an exponent, whose largest value is too much work.
        ({"columns": (4, 4096), "rounds": (1, 4096)}, [{"columns": 1069, "rounds": 27}]),
        ({"rows": (1, 4096), "exponent": (3, 24)}, []),
        ({"rows": (1, 4096), "columns": (4, 700)}, [{"rows": 14, "columns": 700}]),
        ({"rows": (1, 4096), "columns": (2048, 4096)}, []),
    ],
    ids=["repetitions", "exponent", "largest below", "smallest above"],
)
def test_sizes_above_a_block_are_drawn_where_blocks_loop_over_them(
    sums: Path, problem: dict[str, tuple[int, int]], wide: list[dict[str, int]]
) -> None:
    path = sums / "spec.yaml"
    raw = yaml.safe_load(path.read_text())
    raw["problem"] = {
        name: {"type": "integer", "minimum": low, "maximum": high}
        for name, (low, high) in problem.items()
    }
    rows, columns = "rows", "columns"
    if "rounds" in problem:
        rows = "7"
        raw["variants"]["plain"]["repeat"] = {"round": "rounds"}
    if "exponent" in problem:
        columns = "2 ** exponent"
    raw["arguments"]["total"]["shape"] = [rows]
    raw["arguments"]["input"]["shape"] = [rows, columns]
    raw["arguments"]["columns"]["value"] = columns
    raw["variants"]["plain"]["grid"] = [rows]
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    spec = load_spec(sums)
    cases = Cases(spec, UNKNOWN_GPU)
    cases.plan()
    assert [one.problem for one in cases.runs if one.wide] == wide


def test_a_size_above_a_block_that_is_too_much_work_is_left_out(
    sums: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sums / "spec.yaml"
    text = path.read_text().replace("shape: [rows, columns]", "shape: [40000, columns]")
    path.write_text(text.replace("call: numpy.sum, given: [input, 1]", "file: right.py:expected"))
    (sums / "right.py").write_text(
        "def expected(input, rows):\n    return input[:rows].sum(axis=1)\n"
    )
    assert main(["check", str(sums), "--cpu"]) == 0
    said = capsys.readouterr().out
    assert "rows=14, columns=1069: needs 171 MB, too much for the CPU device" in said


def test_a_write_beyond_a_buffer_names_the_size_that_fills_no_block(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = complaint(folder, capsys, "if (row < rows && col < cols)\n        output", "output")
    assert "beyond the end of a buffer of 4 B" in said
    assert "; cols = 1 is no multiple of tile = 8: the kernel needs a bound, or the spec" in said
    assert 'constraints: ["cols % tile == 0"]' in said


def test_too_little_shared_memory_names_its_key(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = "__shared__ float part[tile][tile + 1];"
    new = "extern __shared__ float room[]; float (*part)[tile + 1] = (float (*)[tile + 1])room;"
    said = complaint(folder, capsys, old, new)
    assert "writes beyond the 0 bytes of dynamic shared memory of its launch" in said
    assert "; shared_bytes of variants.tiled sets them" in said


def test_a_comparison_of_ones_own_agrees_or_says_why(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "spec.yaml"
    call = "call: numpy.transpose, given: [input]"
    path.write_text(path.read_text().replace(call, 'compare: "own.py:same"'))
    (folder / "own.py").write_text(
        "def same(found, input):\n"
        "    away = (found['output'] != input.T).sum()\n"
        "    return f'{away} elements differ' if away else ''\n"
    )
    assert main(["check", str(folder), "--cpu"]) == 0
    said = capsys.readouterr().out
    assert "tiled tile=8 at rows=1, cols=1: own.py:same agrees\n" in said
    assert "largest error" not in said
    said = complaint(folder, capsys, "= input[row", "= 1 + input[row")
    assert "wrong on the CPU: own.py:same: 1 elements differ (" in said


def test_a_comparison_of_ones_own_is_asked_in_every_order_of_threads(
    sums: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sums / "spec.yaml"
    given = "call: numpy.sum, given: [input, 1], tolerance: 1.0e-4"
    path.write_text(path.read_text().replace(given, "compare: own.py:same"))
    (sums / "own.py").write_text(
        "def same(found, input):\n"
        "    return bool((abs(found['total'] - input.sum(axis=1)) < 1e-3).all())\n"
    )
    # From the last thread to the first, all parts are there when thread 0 adds them.
    text = SUMS.replace("    __syncthreads();\n", "")
    (sums / "sums.cu").write_text(text)
    assert main(["check", str(sums), "--cpu"]) == 2
    said = capsys.readouterr().err
    assert "own.py:same returns False; right in another order of threads" in said


def test_named_sizes_run_in_place_of_small_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(folder), "rows=70", "cols=9,33", "--cpu"]) == 0
    runs = [line for line in capsys.readouterr().out.splitlines() if " cpu: " in line]
    assert [line.partition(" at ")[2].partition(":")[0] for line in runs] == [
        *["rows=70, cols=9"] * 2,
        *["rows=70, cols=33"] * 2,
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rows=70", "cols=9"], "check: rows=70: problems run on the CPU alone: add --cpu"),
        (["rows=70", "--cpu"], "check: cols: needs a value, such as cols="),
        (["rows=0", "cols=9", "--cpu"], "check: rows=0: "),
        (["rows", "--cpu"], "check: rows: must be NAME=VALUE"),
    ],
)
def test_sizes_that_cannot_run_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["check", str(folder), *words]) == 2
    said_there = capsys.readouterr().err
    assert said in said_there
    assert said_there.count("\n") == 1


def test_a_size_above_a_block_that_takes_too_long_is_left_out(
    sums: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_runs, "WIDE_S", 0.5)
    old = "    float sum = 0;\n"
    new = f"{old}    for (volatile int x = 0; columns == 1069 && x < 1;);\n"
    (sums / "sums.cu").write_text(SUMS.replace(old, new))
    assert main(["check", str(sums), "--cpu"]) == 0
    said = capsys.readouterr().out
    reason = "did not finish within 0.5 s: too much work for the CPU device"
    assert f"left out cpu: plain at rows=14, columns=1069: {reason}" in said


def test_a_large_problem_of_a_sweep_that_takes_too_long_is_left_out_for_small_ones(
    sums: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_runs, "SILENCE_S", 3.0)
    sizes = {"problems": [{"rows": [300], "columns": [1000]}, {"rows": [301], "columns": [1000]}]}
    (sums / "sweep.yaml").write_text(yaml.safe_dump(sizes))
    old = "    float sum = 0;\n"
    new = f"{old}    for (volatile int x = 0; columns == 1000 && x < 1;);\n"
    (sums / "sums.cu").write_text(SUMS.replace(old, new))
    assert main(["check", str(sums), "--cpu"]) == 0
    said = capsys.readouterr().out
    reason = "did not finish within 3 s: too much work for the CPU device"
    assert f"left out cpu: plain at rows=300, columns=1000: {reason}" in said
    assert "ok       cpu: plain at rows=1, columns=4: largest error" in said
    monkeypatch.setattr(cpu_runs, "SILENCE_S", 0.5)
    # One that never ends does not end at the smallest size either.
    (sums / "sums.cu").write_text(SUMS.replace(old, new.replace("columns == 1000 && ", "")))
    assert main(["check", str(sums), "--cpu"]) == 2
    said = capsys.readouterr().err
    assert "failed on the CPU: did not finish within 0.5 s (plain at rows=1, columns=4)" in said


def test_a_named_problem_that_takes_too_long_is_left_out_alone(
    sums: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_runs, "SILENCE_S", 0.5)
    old = "    float sum = 0;\n"
    new = f"{old}    for (volatile int x = 0; x < 1;);\n"
    (sums / "sums.cu").write_text(SUMS.replace(old, new))
    assert main(["check", str(sums), "rows=300", "columns=1000", "--cpu"]) == 1
    said = capsys.readouterr().err
    assert "1 of 1 runs are left out: did not finish within 0.5 s: too much work" in said
    assert main(["check", str(sums), "rows=3", "columns=10", "--cpu"]) == 2


def test_runs_that_were_not_tried_are_counted_with_their_own_reason(
    sums: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_runs, "TOTAL_S", -1.0)
    assert main(["check", str(sums), "--cpu"]) == 1
    said = capsys.readouterr()
    (line,) = [one for one in said.out.splitlines() if one.startswith("left out cpu: ")]
    count = int(line.split()[3])
    assert count > 1
    assert line.startswith(f"left out cpu: {count} runs from rows=1, columns=4 on: not tried: ")
    assert f"cpu: {count} of {count} runs are left out: not tried: time limit" in said.out


def test_reasons_are_counted_apart() -> None:
    told = [
        steps.Step("cpu", "ok", "a at n=1: largest error 0, allowed 0"),
        steps.Step("cpu", "left out", "a at n=9: did not finish within 5 s", "a"),
        steps.Step("cpu", "left out", "13 runs from n=9 on: not tried: time limit", runs=13),
    ]
    assert steps.summary(told) == (
        "14 of 15 runs are left out: 13: not tried: time limit; 1: did not finish within 5 s"
    )
