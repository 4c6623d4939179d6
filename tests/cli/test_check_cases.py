"""``launchwise check`` on the workloads of ``data/checks.yaml``: each mistake is one line."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchwise.base.places import ROOT
from launchwise.cli.app import main

DATA: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "data" / "checks.yaml").read_text())
EXAMPLES = ROOT / "docs" / "tutorial" / "example"


def lacking(case: dict[str, Any]) -> str:
    """A program that a case needs and that this machine lacks; '' for none."""
    texts = case.get("files", {}).values()
    if any("import triton" in text for text in texts) and not importlib.util.find_spec("triton"):
        return "triton"
    needed = {"g++": "--cpu" in case.get("words", ()), "nvcc": case.get("needs") == "nvcc"}
    return next((name for name, is_it in needed.items() if is_it and not shutil.which(name)), "")


def written(case: dict[str, Any], folder: Path) -> Path:
    """The folder of a case with its files."""
    base = case.get("of", "")
    if base and base not in DATA["bases"]:
        files = {path.name: path.read_text() for path in (EXAMPLES / base).glob("*.*")}
    else:
        files = dict(DATA["bases"].get(base, {}))
    files |= case.get("files", {})
    for name, changes in case.get("change", {}).items():
        for old, new in changes.items():
            assert old in files[name], old
            files[name] = files[name].replace(old, new)
    workload = yaml.safe_load(files["spec.yaml"])["workload"]
    (folder / workload).mkdir()
    for name, text in files.items():
        (folder / workload / name).write_text(text)
    return folder / workload


@pytest.mark.parametrize("case", DATA["cases"], ids=[each["name"] for each in DATA["cases"]])
def test_a_mistake_is_told(
    case: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if missing := lacking(case):
        pytest.skip(f"{missing} is missing")
    if case.get("needs") != "nvcc":
        request.getfixturevalue("without_nvcc" if case.get("apart") else "in_one_process")
    code = main(["check", str(written(case, tmp_path)), *case.get("words", ())]) or 0
    out = capsys.readouterr()
    assert code == case.get("code", 2), out.err
    for said in case.get("said", ()):
        assert said in out.out + out.err
    for said in case.get("never", ()):
        assert said not in out.out + out.err
    assert out.err.count("\n") == (code != 0)
    assert "Traceback" not in out.err
