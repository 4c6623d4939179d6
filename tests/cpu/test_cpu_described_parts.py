"""What a workload in one file can say, run on the CPU: kernels in sequence, constants, in-out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from declared_workloads import WORKLOADS, written

from launchwise.cli.app import main

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")


@pytest.fixture(autouse=True)
def without_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilation by nvcc has tests of its own."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.mark.parametrize("name", WORKLOADS)
def test_it_runs_rightly(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(written(name, tmp_path)), "--cpu", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)
    runs = [step for step in steps if step["name"] == "cpu"]
    assert len(runs) >= 4
    assert all(step["passed"] for step in runs), runs


@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        ("steps", "steps.cu", "factor * values[i]", "factor + values[i]"),
        ("steps", "steps.cu", "        __syncthreads();\n", ""),
        ("steps", "spec.yaml", "threads_of_sum * (8 if", "threads_of_sum / 2 * (8 if"),
        ("steps", "spec.yaml", 'value: "2"', 'value: "3"'),
        ("steps", "reference.py", "2 * values", "2 * values + 1"),
        ("constant", "blocked.cu", "__syncthreads();", ""),
        ("constant", "blocked.cu", "d_weights[k]", "d_weights[0]"),
    ],
)
def test_a_mistake_in_it_is_found(
    name: str,
    file: str,
    old: str,
    new: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(name, tmp_path) / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    code = main(["check", str(path.parent), "--cpu"])
    said = capsys.readouterr()
    assert code == 2, said.out
    assert said.err.count("\n") == 1
    assert "on the CPU" in said.err
