"""``launchwise check`` on the workloads of ``data/checks.yaml``: each mistake is told."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchwise.cli.app import main

CASES = yaml.safe_load((Path(__file__).parent / "data" / "checks.yaml").read_text())


def lacking(case: dict[str, Any]) -> str:
    """A program that a case needs and that this machine lacks; '' for none."""
    in_triton = any(name.endswith(".py") for name in case["files"] if name != "reference.py")
    if in_triton and importlib.util.find_spec("triton") is None:
        return "triton"
    needed = {"g++": "--cpu" in case["words"], "nvcc": case.get("needs") == "nvcc"}
    return next((name for name, is_it in needed.items() if is_it and not shutil.which(name)), "")


@pytest.mark.parametrize("case", CASES, ids=[each["name"] for each in CASES])
def test_a_mistake_is_told(
    case: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if missing := lacking(case):
        pytest.skip(f"{missing} is missing")
    if case.get("needs") != "nvcc":
        # Compilation by nvcc has tests of its own.
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
    folder = tmp_path / yaml.safe_load(case["files"]["spec.yaml"])["workload"]
    folder.mkdir()
    for name, text in case["files"].items():
        (folder / name).write_text(text)
    code = main(["check", str(folder), *case["words"]])
    out = capsys.readouterr()
    # Without nvcc and without a run on the CPU nothing is verified.
    verified = code if "--cpu" in case["words"] or code == 2 else case["code"]
    assert verified == case["code"], out.err
    for said in case["said"]:
        assert said in out.out + out.err
    assert out.err.count("\n") == (1 if out.err else 0)
