"""Variants in Triton on the CPU: checked by Triton's interpreter, and swept beside CUDA."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from mistakes import planted
from supervising import rows_of, sweep

from launchwise.cli.app import main
from launchwise.cli.check import cpu_runs
from launchwise.measuring.repeats import rows_to_table
from launchwise.workloads.spec import load_spec
from tests.measuring import test_triton as compiling
from tests.measuring.conftest import MISTAKES
from tests.measuring.test_triton import build_of, only_triton

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU"),
]
folder, compiled, _asked_anew = compiling.folder, compiling.compiled, compiling._asked_anew


@pytest.fixture
def check(folder, capsys, monkeypatch):
    """Exit code of a check on the CPU, its lines about Triton there, and what it complains of. The
    PATH has g++ alone: what is compiled is no part of the question."""

    def run(*words, folder=folder):
        monkeypatch.setenv("PATH", str(Path(str(shutil.which("g++"))).parent))
        status = main(["check", str(folder), *words, "--cpu"]) or 0
        said = capsys.readouterr()
        return status, [line for line in said.out.splitlines() if "cpu: triton" in line], said.err

    return run


def test_a_null_pointer_is_none(folder, compiled, check):
    given = "    arguments: [y, x, nullptr, n, factor]\n    tunables: [B"
    planted(folder, "spec.yaml", "    tunables: [B", given)
    planted(folder, "twice.py", "def twice(y, x, n", "def twice(y, x, bias, n")
    bias = "    if bias is not None:\n        value += tl.load(bias + i)\n    tl.store"
    planted(folder, "twice.py", "    tl.store", bias)
    build = build_of(folder, 4096)
    kernel = compiled([build]).kernel(build, "twice")
    assert kernel.launch["arguments"] == [0, 1, 3, 4]
    status, lines, _ = check("n=100", "dtype=float32")
    assert (status, lines[0].partition(" num")[0]) == (0, "ok       cpu: triton BLOCK=64")


@pytest.mark.parametrize("macro", ["dtype == 'float16'", "'tl.float16'", "'None'"])
def test_a_constexpr_may_be_a_condition_a_type_or_nothing(folder, macro, compiled, check):
    planted(folder, "spec.yaml", "1 if dtype == 'float16' else 0", macro)
    # Right for False, a type of 16 bits, and None; wrong for their texts.
    chosen = {"'tl.float16'": "HALVES.primitive_bitwidth == 16", "'None'": "HALVES is None"}
    test = f"    if not ({chosen.get(macro, 'not HALVES')}):\n        value += 1\n    tl.store"
    planted(folder, "twice.py", "    tl.store", test)
    build = build_of(folder, 4096)
    assert compiled([build]).kernel(build, "twice").registers > 0
    status, lines, _ = check("n=100", "dtype=float32")
    assert status == 0
    assert any(line.startswith("ok       cpu: triton BLOCK=64") for line in lines), lines


def test_a_sweep_measures_it_beside_cuda(folder, make_shard):
    usual = make_shard([{"n": 300, "dtype": "float16"}])
    shard = replace(usual, spec=load_spec(folder), folder=folder)
    path = folder.parent / "journal.jsonl"
    sweep(shard, path)
    rows = rows_of(path)
    assert Counter((row["variant"], row["status"]) for row in rows) == {
        ("cuda", "ok"): 1,
        ("triton", "ok"): 4,
    }
    table = rows_to_table(rows, [], shard.spec)
    assert (table["max_error"] <= table["tolerance"]).all()


@pytest.mark.parametrize(("kind", "status"), [("int64", 0), ("int32", 2)])
def test_numbers_have_the_types_of_the_spec_on_the_cpu(folder, check, kind, status):
    planted(folder, "spec.yaml", "n: {type: int32", f"n: {{type: {kind}")
    planted(folder, "twice.cu", "int n", "long long n" if kind == "int64" else "int n")
    # 3e9 for n = 1000: beyond 32 bits.
    planted(folder, "twice.py", "mask=i < n)\n", "mask=(i < n) & (i < n * 3000000))\n")
    assert check("n=1000", "dtype=float32")[0] == status


def test_wrong_results_in_bfloat16_are_the_interpreters_and_are_left_out(folder, check):
    planted(folder, "spec.yaml", "values: [float32, float16]", "values: [float32, bfloat16]")
    planted(folder, "spec.yaml", "'__half'", "'__nv_bfloat16'")
    planted(folder, "parts.py", "factor * ", "tl.load(x + i, mask=i < n) + ")
    planted(folder, "twice.cu", "__global__", "#include <cuda_bf16.h>\n__global__")
    status, lines, _ = check("n=100", "dtype=bfloat16")
    assert (status, bool(lines)) == (0, True)
    assert all(line.startswith("left out") for line in lines), lines
    assert all("Triton's interpreter does not compute in bfloat16" in line for line in lines), lines


def test_small_sizes_have_a_type_that_the_interpreter_computes_in(folder, check):
    planted(folder, "spec.yaml", "values: [float32, float16]", "values: [float16, bfloat16]")
    only_triton(folder)
    status, lines, _ = check()
    assert status == 0
    assert sum(line.startswith("ok") and "dtype=float16" in line for line in lines) > 5, lines
    assert sum("dtype=bfloat16" in line for line in lines) == 1, lines


@pytest.mark.parametrize("mistake", MISTAKES["triton, on the CPU"])
def test_the_interpreter_finds_a_mistake(folder, check, mistake):
    *change, said = MISTAKES["triton, on the CPU"][mistake]
    planted(folder, *change)
    status, _, told = check("n=1000", "dtype=float32")
    (line,) = told.splitlines()
    assert status == 2
    assert said in line


@pytest.mark.parametrize("always", [False, True])
def test_a_run_that_takes_the_interpreter_too_long_is_left_out(folder, check, monkeypatch, always):
    monkeypatch.setattr(cpu_runs, "SILENCE_S", 4.0)
    # The odd size is 14; no larger one is tried after it.
    turns = f"    if {'n > 0' if always else 'n == 14'}:\n        time.sleep(60)\n    tl.store"
    planted(folder, "twice.py", "    tl.store", turns)
    planted(folder, "twice.py", "import triton\n", "import time\n\nimport triton\n")
    only_triton(folder)
    status, lines, told = check()
    assert status == (2 if always else 1)
    reason = "did not finish within 4 s"
    if always:
        assert f"failed on the CPU: {reason} (triton BLOCK=64" in told
    else:
        assert "nothing above the smallest sizes was verified on the CPU" in told
        slow = [line for line in lines if " at n=14, " in line]
        assert slow
        assert all(line.startswith("left out cpu: triton BLOCK") for line in slow), slow
        assert any(f"{reason}: too much work for the CPU device" in line for line in slow)
