"""``launchwise new`` from a Python file with functions of Triton, as people write them."""

import re
import shutil
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.cli.new import folder as drafting
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec

DATA = Path(__file__).parent / "data"
KERNELS = DATA / "triton"
CASES = read_yaml(DATA / "triton_drafts.yaml")
TEXTS = CASES.pop("texts")
DRAFTS = {
    f"{group}: {name}" if name else group: {**common, **own}
    for group, common in CASES.items()
    for name, own in common.get("each", {"": {}}).items()
}

needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")

PROBLEMS = {
    "attention": "Z=1 H=2 N_CTX=70 HEAD_DIM_Q=64",
    "dropout": "n=3000",
    "expert_matmul": "M=40 N=33 K=50 E=4",
    "histogram": "n=3000 num_bins=32",
    "layer_norm": "M=3 N=300",
    "matmul": "M=65 N=33 K=64",
    "quantise": "rows=5 n_cols=100",
    "softmax": "n_rows=3 n_cols=100",
    "vector_add": "n_elements=1500",
}
"""File to a problem on which its draft is checked."""

HEAD = "import triton\nimport triton.language as tl\n"
BODY = f"\n{TEXTS['scale']}"


def drafted(folder, file, *options):
    """Spec that is drafted from a file; its baseline has a build."""
    assert main(["new", str(folder), "--from", str(file), *options]) == 0
    raw = read_yaml(folder / "spec.yaml")
    if "file" in raw["reference"]:
        (folder / "reference.py").write_text("def expected(**given):\n    return None\n")
    spec = load_spec(folder)
    problem = {name: (one.values or [one.minimum])[0] for name, one in spec.problem.items()}
    load_workload(folder, spec).build(problem, spec.baseline)
    return raw


def of_text(tmp_path, text, *options):
    """Spec that is drafted from a file with this text."""
    file = tmp_path / "kernel.py"
    file.write_text(text)
    return drafted(tmp_path / "mine", file, *options)


def fill_in(folder, name):
    """What the draft asks for: a reference, and ranges that have the sizes of this file."""
    spec = folder / "spec.yaml"
    text = spec.read_text()
    for word in PROBLEMS[name].split():
        size, value = word.split("=")
        least = rf"\g<1>{min(int(value), 16)}"
        text = re.sub(rf"({size}: {{type: integer, minimum: )16", least, text)
    own = DATA / "triton_references" / f"{name}.py"
    if own.exists():
        shutil.copy(own, folder / "reference.py")
        if "def same(" in own.read_text():
            text = text.replace('file: "reference.py:expected"', 'compare: "reference.py:same"')
    spec.write_text(text)


@pytest.mark.triton
@needs_gxx
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_draft_whose_reference_is_filled_in_is_verified_on_the_cpu(
    name, tmp_path, capsys, monkeypatch
):
    folder = tmp_path / name
    assert main(["new", str(folder), "--from", str(KERNELS / f"{name}.py")]) == 0
    fill_in(folder, name)
    monkeypatch.setenv("PATH", str(Path(str(shutil.which("g++"))).parent))
    status = main(["check", str(folder), *PROBLEMS[name].split(), "--cpu"])
    told = capsys.readouterr().out.splitlines()
    if old := [line for line in told if "fails with NumPy" in line]:
        pytest.skip(old[0].rpartition(": the ")[2])
    assert status in (0, None), told
    assert any(line.startswith("ok       cpu: ") for line in told), told


def test_the_kernels_here_are_those_that_are_checked():
    assert {path.stem for path in KERNELS.glob("*.py")} == {*PROBLEMS}


def source_of(case):
    """Text of the file of a case."""
    if "file" in case:
        return (KERNELS / f"{case['file']}.py").read_text()
    if "source" in case:
        return str(case["source"])
    decorator = f"{case['decorator']}\n" if "decorator" in case else ""
    text = HEAD + case.get("above", "") + decorator + TEXTS[case["of"]]
    if "host" in case:
        text += f"\n\ndef run(x, y):\n{textwrap.indent(case['host'], '    ')}\n"
    for old, new in case.get("with", {}).items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", DRAFTS)
def test_drafts(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(drafting, "STATEMENT_SECONDS", 0.2)
    case = DRAFTS[name]
    file = tmp_path / f"{case.get('file', 'kernel')}.py"
    file.write_text(source_of(case))
    spec = drafted(tmp_path / "mine", file)
    (variant,) = spec["variants"].values()
    tunables = {one: spec["tunables"][one]["values"] for one in variant["tunables"]}
    wanted = case.get("tunables", tunables)
    assert (tunables if isinstance(wanted, dict) else [*tunables]) == wanted
    assert variant["grid"] == case.get("grid", variant["grid"])
    assert spec.get("macros", {}) == case.get("macros", spec.get("macros", {}))
    assert [*spec["problem"]] == case.get("problem", [*spec["problem"]])
    arguments = spec["arguments"]
    for key, wanted in case.get("arguments", {}).items():
        assert {one: arguments[key][one] for one in wanted} == wanted
    roles = {one: given["role"] for one, given in arguments.items() if "role" in given}
    assert roles == case.get("roles", roles)
    for kind, count in case.get("types", {}).items():
        assert sum(one["type"] == kind for one in arguments.values()) == count, kind
    assert spec["baseline"] == case.get("baseline", spec["baseline"])
    assert variant["kernel"] == case.get("kernel", variant["kernel"])
    lines = (tmp_path / "mine" / "spec.yaml").read_text().splitlines()
    parts = (line.partition("  # ? ") for line in lines if "  # ? " in line)
    asked = {line.split(":")[0].strip(): question for line, _, question in parts}
    for key, part in case.get("asks", {}).items():
        assert part in asked[key]
    assert asked.keys() >= {*case.get("open", ())}
    assert not asked.keys() & {*case.get("closed", ())}
    copied = (tmp_path / "mine" / file.name).read_text()
    assert all(part in copied for part in case.get("has", ()))
    assert not any(part in copied for part in case.get("lacks", ()))
    assert copied == file.read_text() or not case.get("is_whole")
    compile(copied, "kernel.py", "exec")
    said = capsys.readouterr().out
    notes = [line for line in lines if line.startswith("# ?")]
    assert len(notes) == len(case.get("notes", ()))
    for part in case.get("notes", ()):
        assert any(part in note for note in notes), notes
        assert part in said
    assert not any(part in said for part in case.get("never", ()))
    assert all(part in said for part in case.get("says", ()))


HARMS = read_yaml(DATA / "harms.yaml")


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_runs_harms_nothing(harm, tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("kept")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drafting, "STATEMENT_SECONDS", 0.2)
    place = f"import os\nos.chdir({str(tmp_path)!r})\n"
    assert of_text(tmp_path, f"{HEAD}{place}{HARMS[harm]}\n{BODY}")["tunables"]["BLOCK"]
    assert (tmp_path / "kept").read_text() == "kept"
    assert not (tmp_path / "written").exists()


ENDS = {
    "by a signal of its own": "import signal\nsignal.raise_signal(9)",
    "after a computation that nothing interrupts": "x = 3 ** (10 ** 8) % 7\n" * 40,
    "without a word": "import os\nos._exit(0)",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_file_that_ends_its_process_is_one_line(end, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(drafting, "CPU_SECONDS", 1)
    file = tmp_path / "kernel.py"
    file.write_text(f"{HEAD}{ENDS[end]}\n{BODY}")
    assert main(["new", str(tmp_path / "mine"), "--from", str(file)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"launchwise: {file}: ")
    assert not (tmp_path / "mine").exists()


@settings(max_examples=6)
@given(
    st.lists(
        st.tuples(st.sampled_from([32, 64, 128]), st.sampled_from([1, 2, 4]), st.integers(2, 4)),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_the_space_holds_every_configuration_of_the_file(tmp_path_factory, rows):
    made = ", ".join(
        f"triton.Config({{'BLOCK': {b}}}, num_warps={w}, num_stages={s})" for b, w, s in rows
    )
    folder = tmp_path_factory.mktemp("rows")
    spec = of_text(folder, f"{HEAD}@triton.autotune(configs=[{made}], key=['n']){BODY}")
    for place, name in enumerate(("BLOCK", "num_warps", "num_stages")):
        assert spec["tunables"][name]["values"] == sorted({row[place] for row in rows})
