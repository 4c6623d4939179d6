"""``launchwise check --cpu``: which runs it makes, and what ends them."""

import json
import shutil

import pytest
import yaml
from mistakes import planted
from test_check import EXAMPLES, written

from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check import cpu_runs
from launchwise.cli.check.cases import MEMORY_BYTES, Cases
from launchwise.cli.check.checking import listed_problems
from launchwise.cli.check.command import Step, summary
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")


@pytest.fixture
def folder(tmp_path, without_nvcc):
    """A transpose in shared memory, with blocks of two dimensions and a barrier."""
    return written({"of": "turn"}, tmp_path)


@pytest.fixture
def sums(tmp_path, without_nvcc):
    """Sums of rows by blocks of eight warps."""
    return written({"of": "sums"}, tmp_path)


@pytest.fixture
def impatient(monkeypatch):
    """Runs have half a second each, and the first that does not end is the last."""
    for name, value in {"SILENCE_S": 0.5, "WIDE_S": 0.5, "MOST_DEATHS": 1}.items():
        monkeypatch.setattr(cpu_runs, name, value)


def change(folder, old, new):
    """Replace a part of the kernel."""
    planted(folder, f"{folder.name}.cu", old, new)


def waits(folder, condition):
    """Let a kernel never end where a condition holds."""
    change(folder, SUM, f"{SUM}    for (volatile int x = 0; {condition} && x < 1;);\n")


SUM = "    float sum = 0;\n"


@pytest.mark.usefixtures("in_one_process")
def test_a_right_kernel_passes_at_odd_sizes(folder, capsys):
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


@pytest.mark.usefixtures("impatient")
def test_a_kernel_that_never_ends_is_ended(folder, capsys):
    change(folder, "__syncthreads();", "for (volatile int x = 0; x < 1;);")
    assert main(["check", str(folder), "--cpu"]) == 2
    said = capsys.readouterr().err
    assert "failed on the CPU: did not finish within 0.5 s (tiled tile=8 at rows=1, cols=1)" in said


@pytest.mark.usefixtures("in_one_process")
def test_what_the_cpu_cannot_run_is_left_out_with_its_reason(folder, capsys):
    change(folder, "__syncthreads();", '__syncthreads();\n    asm volatile("bar.sync 0;");')
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


def test_every_configuration_is_run_and_told(folder, capsys):
    # Blocks of 16 compute nonsense, and one of 8 at the odd size crashes.
    crash = "if (tile == 8 && rows == 14 && cols < 99) __trap();"
    change(folder, "= input[row", "= (tile == 16) + input[row")
    change(folder, "    int row", f"    {crash}\n    int row")
    assert main(["check", str(folder), "--cpu"]) == 2
    said = capsys.readouterr()
    statuses = [line[:8].strip() for line in said.out.splitlines() if " cpu: " in line]
    assert statuses == ["ok", "wrong", "failed", "wrong", *["ok", "wrong"] * 3]
    assert said.err.count("\n") == 1
    assert "wrong on the CPU: output" in said.err
    assert "(tiled tile=16 at rows=1, cols=1); 5 others are wrong or fail" in said.err


@pytest.mark.usefixtures("in_one_process")
def test_host_code_runs_on_the_cpu_too(capsys):
    assert main(["check", str(EXAMPLES / "saxpy"), "--cpu"]) == 0
    runs = [line for line in capsys.readouterr().out.splitlines() if " cpu: " in line]
    # The smallest problem of its sweep.yaml, of each type.
    assert any("dtype=float64" in line for line in runs)
    assert all(line.startswith("ok") for line in runs)


def test_small_problems_are_small():
    for folder in sorted((ROOT / "kernels").glob("*/spec.yaml")):
        spec = load_spec(folder.parent)
        cases = Cases(spec, UNKNOWN_GPU)
        cases.plan(listed_problems(folder.parent, spec))
        assert spec.value(spec.work.footprint_bytes, cases.runs[0].problem) <= MEMORY_BYTES


def test_without_a_compiler_it_says_so(folder, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    assert main(["check", str(folder), "--cpu"]) == 2
    assert "check: --cpu: g++ is not on the PATH" in capsys.readouterr().err


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
def test_sizes_above_a_block_are_drawn_where_blocks_loop_over_them(sums, problem, wide):
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


@pytest.mark.usefixtures("impatient")
def test_a_size_above_a_block_that_takes_too_long_is_left_out(sums, capsys):
    waits(sums, "columns == 1069")
    assert main(["check", str(sums), "--cpu"]) == 0
    said = capsys.readouterr().out
    reason = "did not finish within 0.5 s: too much work for the CPU device"
    assert f"left out cpu: plain at rows=14, columns=1069: {reason}" in said


@pytest.mark.usefixtures("impatient")
def test_a_large_problem_of_a_sweep_that_takes_too_long_is_left_out_for_small_ones(sums, capsys):
    sizes = {"problems": [{"rows": [300], "columns": [1000]}, {"rows": [301], "columns": [1000]}]}
    (sums / "sweep.yaml").write_text(yaml.safe_dump(sizes))
    waits(sums, "columns == 1000")
    assert main(["check", str(sums), "--cpu"]) == 0
    said = capsys.readouterr().out
    reason = "did not finish within 0.5 s: too much work for the CPU device"
    assert f"left out cpu: plain at rows=300, columns=1000: {reason}" in said
    assert "ok       cpu: plain at rows=1, columns=4: largest error" in said
    # One that never ends does not end at the smallest size either.
    change(sums, "columns == 1000", "columns > 0")
    assert main(["check", str(sums), "--cpu"]) == 2
    said = capsys.readouterr().err
    assert "failed on the CPU: did not finish within 0.5 s (plain at rows=1, columns=4)" in said


@pytest.mark.usefixtures("impatient")
def test_a_named_problem_that_takes_too_long_is_left_out_alone(sums, capsys):
    waits(sums, "columns > 0")
    assert main(["check", str(sums), "rows=300", "columns=1000", "--cpu"]) == 1
    said = capsys.readouterr().err
    assert "1 of 1 runs are left out: did not finish within 0.5 s: too much work" in said
    assert main(["check", str(sums), "rows=3", "columns=10", "--cpu"]) == 2


@pytest.mark.usefixtures("in_one_process")
def test_runs_that_were_not_tried_are_counted_with_their_own_reason(sums, capsys, monkeypatch):
    monkeypatch.setattr(cpu_runs, "TOTAL_S", -1.0)
    assert main(["check", str(sums), "--cpu"]) == 1
    said = capsys.readouterr()
    (line,) = [one for one in said.out.splitlines() if one.startswith("left out cpu: ")]
    count = int(line.split()[3])
    assert count > 1
    assert line.startswith(f"left out cpu: {count} runs from rows=1, columns=4 on: not tried: ")
    assert f"cpu: {count} of {count} runs are left out: not tried: time limit" in said.out


def test_reasons_are_counted_apart():
    told = [
        Step("cpu", "ok", "a at n=1: largest error 0, allowed 0"),
        Step("cpu", "left out", "a at n=9: did not finish within 5 s", "a"),
        Step("cpu", "left out", "13 runs from n=9 on: not tried: time limit", runs=13),
    ]
    assert summary(told) == (
        "14 of 15 runs are left out: 13: not tried: time limit; 1: did not finish within 5 s"
    )
