"""``launchwise check``: what host code and compilers say; mistakes are ``data/checks.yaml``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check import checking
from launchwise.workloads.spec import load_spec

CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"
SAXPY = ROOT / "docs" / "tutorial" / "example" / "saxpy"

FEW = {"block_size_x": [16], "block_size_y": [16], "tile_size_x": [1, 4], "tile_size_y": [1]}
"""Values that make two configurations."""

needs_nvcc = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The convolution in one file, to change."""
    return Path(shutil.copytree(CONVOLUTION, tmp_path / "convolution"))


def complaint(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a check says on standard error."""
    assert main(["check", str(folder)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    assert "Traceback" not in said
    return said


def of_spec(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """A change of ``spec.yaml``."""

    def changed(folder: Path) -> None:
        path = folder / "spec.yaml"
        raw = yaml.safe_load(path.read_text())
        change(raw)
        path.write_text(yaml.safe_dump(raw, sort_keys=False))

    return changed


def of_source(old: str, new: str) -> Callable[[Path], None]:
    """A change of the CUDA file."""

    def changed(folder: Path) -> None:
        path = folder / "convolution.cu"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return changed


@pytest.mark.parametrize(("value", "text"), [(True, "1"), (False, "0"), (2, "2")])
def test_a_value_may_be_true(folder: Path, value: Any, text: str) -> None:
    of_spec(lambda raw: raw["arguments"]["w"].update(value=value))(folder)
    assert load_spec(folder).arguments["w"].value == text


def test_an_exception_in_host_code_is_the_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(SAXPY, tmp_path / "saxpy"))
    path = folder / "host" / "workload.py"
    text = path.read_text()
    assert '"ITEMS": configuration["items"]' in text
    path.write_text(text.replace('configuration["items"]', 'configuration["itms"]'))
    said = complaint(folder, capsys)
    assert "workload.py" in said
    assert "KeyError: 'itms'" in said
    assert "report it" not in said


def test_a_syntax_error_in_host_code_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(SAXPY, tmp_path / "saxpy"))
    path = folder / "host" / "workload.py"
    path.write_text(path.read_text() + "\ndef broken(:\n")
    said = complaint(folder, capsys)
    assert "workload.py: line" in said
    assert "SyntaxError" in said


def test_a_folder_that_cannot_name_a_workload_is_told_with_a_name_near_to_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "spec.yaml").read_text()
    for workload in (folder.name, "my-sums"):
        other = folder.with_name("my-sums")
        shutil.copytree(folder, other, dirs_exist_ok=True)
        named = text.replace(f"workload: {folder.name}", f"workload: {workload}")
        (other / "spec.yaml").write_text(named)
        assert main(["check", str(other)]) == 2
        assert capsys.readouterr().err == (
            f"launchwise: {other}: names the workload: lower-case letters, digits and _, "
            "a letter first; such as my_sums\n"
        )


class TestWithNvcc:
    """What only a compiler finds."""

    pytestmark = needs_nvcc

    @pytest.fixture
    def folder(self, folder: Path) -> Path:
        """The convolution with few builds."""

        def few(raw: dict[str, Any]) -> None:
            for name, values in FEW.items():
                raw["tunables"][name]["values"] = values

        of_spec(few)(folder)
        return folder

    def test_a_right_workload_passes(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["check", str(folder), "--json"]) == 0
        steps = json.loads(capsys.readouterr().out)
        assert [step["name"] for step in steps] == ["spec", "expressions", "host", "compile"]
        assert all(step["passed"] for step in steps)

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("float sum = 0;", "float sum = 0", "nvcc failed: convolution.cu:14: expected a"),
            (
                "__global__ void conv",
                "template <int N> __global__ void conv",
                "convolution_kernel is a template: name its arguments",
            ),
        ],
    )
    def test_a_mistake_in_the_source_ends_it(
        self, folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
    ) -> None:
        of_source(old, new)(folder)
        assert said in complaint(folder, capsys)

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ('static_assert(tile_size_x < 4, "too many pixels");', "too many pixels"),
            pytest.param(
                "__shared__ volatile float s[tile_size_x * 4096]; s[threadIdx.x] = w;",
                "shared",
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_a_configuration_that_nvcc_refuses_is_named_with_its_words(
        self,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        line: str,
        words: str,
    ) -> None:
        of_source("    const int x0", f"    {line}\n    const int x0")(folder)
        assert main(["check", str(folder)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("some refused compile: ") for line in lines)
        (told,) = (line for line in lines if line.startswith("refused  compile: "))
        assert "tile_size_x=4" in told
        assert words in told
        assert not any(line.startswith("ok ") and "compile" in line for line in lines)
        # What nvcc said is kept.
        monkeypatch.setattr(checking, "compile_bundle", None)
        assert main(["check", str(folder)]) == 0
        assert capsys.readouterr().out.splitlines() == lines
        assert main(["check", str(folder), "--json"]) == 0
        steps = json.loads(capsys.readouterr().out)
        assert [step["status"] for step in steps[3:]] == ["some refused", "refused"]
        assert not any(step["passed"] for step in steps[3:])
