"""``launchwise check`` on the workloads of ``data/checks.yaml``: each mistake is one line."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check import checking, cpu_runs
from launchwise.workloads.spec import load_spec

DATA = yaml.safe_load((Path(__file__).parent / "data" / "checks.yaml").read_text())
EXAMPLES = ROOT / "docs" / "tutorial" / "example"
STRANGERS = ROOT / "tests" / "strangers"


def lacking(case):
    """A program that a case needs and that this machine lacks; '' for none."""
    needed = {"g++": "--cpu" in case.get("words", ()), "nvcc": case.get("needs") == "nvcc"}
    return next((name for name, is_it in needed.items() if is_it and not shutil.which(name)), "")


def written(case, folder):
    """The folder of a case with its files."""
    base = case.get("of", "")
    if base and base not in DATA["bases"]:
        place = next(path for path in (EXAMPLES / base, STRANGERS / base) if path.is_dir())
        every = [path for path in place.rglob("*.*") if path.suffix != ".pyc"]
        files = {str(path.relative_to(place)): path.read_text() for path in every}
    else:
        files = dict(DATA["bases"].get(base, {}))
    files |= case.get("files", {})
    for name, changes in case.get("change", {}).items():
        for old, new in changes.items():
            assert old in files[name], old
            files[name] = files[name].replace(old, new)
    workload = yaml.safe_load(files["spec.yaml"])["workload"]
    for name, text in files.items():
        path = folder / workload / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / workload


def parameter(case):
    """A case with its mark, where it needs Triton."""
    texts = case.get("files", {}).values()
    marks = [pytest.mark.triton] if any("import triton" in text for text in texts) else []
    return pytest.param(case, marks=marks, id=case["name"])


@pytest.mark.parametrize("case", [*map(parameter, DATA["cases"])])
def test_a_mistake_is_told(case, tmp_path, capsys, request, monkeypatch):
    if missing := lacking(case):
        pytest.skip(f"{missing} is missing")
    if case.get("needs") != "nvcc":
        request.getfixturevalue("without_nvcc" if case.get("apart") else "in_one_process")
    for name, value in case.get("limits", {}).items():
        monkeypatch.setattr(cpu_runs, name, value)
    monkeypatch.chdir(tmp_path)
    command = case.get("command", "check")
    code = main([command, str(written(case, tmp_path)), *case.get("words", ())]) or 0
    out = capsys.readouterr()
    assert code == case.get("code", 2), out.err
    for said in case.get("said", ()):
        assert said in out.out + out.err
    for said in case.get("never", ()):
        assert said not in out.out + out.err
    assert out.err.count("\n") == (code != 0)
    assert "Traceback" not in out.err


def convolution(tmp_path, spec, source=None):
    """The folder of the convolution with changes of its two files."""
    changes = {"spec.yaml": spec, "convolution.cu": source or {}}
    return written({"of": "convolution", "change": changes}, tmp_path)


@pytest.mark.parametrize(("value", "text"), [("true", "1"), ("false", "0"), ("2", "2")])
def test_a_value_may_be_true(tmp_path, value, text):
    folder = convolution(tmp_path, {"value: w}": f"value: {value}}}"})
    assert load_spec(folder).arguments["w"].value == text


@pytest.mark.parametrize("workload", ["convolution", "my-sums"])
def test_a_folder_that_cannot_name_a_workload_is_told_with_a_name_near_to_it(
    tmp_path, capsys, workload
):
    own = convolution(tmp_path, {"workload: convolution": f"workload: {workload}"})
    folder = own.rename(tmp_path / "my-sums")
    assert main(["check", str(folder)]) == 2
    assert capsys.readouterr().err == (
        f"launchwise: {folder}: names the workload: lower-case letters, digits and _, "
        "a letter first; such as my_sums\n"
    )


(FEW,) = (
    case["change"]["spec.yaml"]
    for case in DATA["cases"]
    if case["name"] == "a template without arguments"
)
"""Changes that leave two configurations."""


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
class TestWithNvcc:
    """What only a compiler finds."""

    def test_a_right_workload_passes(self, tmp_path, capsys):
        assert main(["check", str(convolution(tmp_path, FEW)), "--json"]) == 0
        steps = json.loads(capsys.readouterr().out)
        assert [step["name"] for step in steps] == ["spec", "expressions", "host", "compile"]
        assert all(step["passed"] for step in steps)

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
        self, tmp_path, capsys, monkeypatch, line, words
    ):
        folder = convolution(tmp_path, FEW, {"    const int x0": f"    {line}\n    const int x0"})
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
