"""Answers from a cold start read, import and load what the question needs, and nothing else."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from command_line import complaint, launchwise
from named_tables import write_lookup
from samples import SAXPY, STENCIL
from stencil import slice_of_card, sweep
from studies import fit_final

from launchwise.cli.app import main
from launchwise.cli.studies import read_experiment
from launchwise.experiment.study import ModelEntry
from launchwise.gpus.profile import write_profile
from launchwise.learning.features import Domain
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.spec import load_spec

STUDY, GPU = "stencil_block", "card"
SIZES = (200, 256, 400, 512)
MEASURED = ("n=256", "dtype=float32", "order=2")
BETWEEN = ("n=333", "dtype=float32", "order=2")
MEMBERS = "knn, forest, lightgbm, xgboost, learnt, nearest_size"
SETTINGS = {"workloads": ["kernels"], "gpus": {GPU: {"source": "recorded"}}}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A project of two workloads, with the product of a study."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(STENCIL, root / "kernels" / "stencil")
    shutil.copytree(SAXPY, root / "kernels" / "saxpy")
    question = root / "kernels" / "stencil" / "studies" / STUDY / "study.yaml"
    split = {
        "kind": "problems",
        "title": "t",
        "train": {"n": [200]},
        "test": {"n": [256, 400, 512]},
    }
    content = {**yaml.safe_load(question.read_text()), "splits": {"sizes": split}}
    question.write_text(yaml.safe_dump({**content, "models": ["chosen"]}))
    spec, card = load_spec(root / "kernels" / "stencil"), slice_of_card(GPU)
    parts = [sweep(spec, SIZES, GPU, dtype, order=2) for dtype in ("float32", "float64")]
    rows = pd.concat(parts, ignore_index=True)
    recorded = root / "data" / "recorded" / GPU
    write_table(recorded / "stencil.parquet", rows, measurement_schema(spec))
    write_profile(recorded / "profile.json", card)
    (recorded / "saxpy.parquet").touch()
    models = {"models": {"chosen": {"kind": "committee", "title": "x"}}}
    (root / "config.yaml").write_text(yaml.safe_dump({**SETTINGS, **models}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        study = read_experiment([Path("config.yaml")], root, STUDY)
    asked = study.studies[STUDY]
    domain = Domain(spec, {GPU: card})
    entry = ModelEntry(kind="committee", title="x", parameters={"members": MEMBERS})
    place = root / "results" / "final" / STUDY
    times = {GPU: judged_times(rows, None, spec)}
    fit_final(asked, "chosen", entry, domain, {GPU: rows}, times, [], 1, place)
    write_lookup(place, domain)
    return root


@pytest.fixture
def project(made, tmp_path, monkeypatch):
    root = tmp_path / "project"
    shutil.copytree(made, root, symlinks=True)
    monkeypatch.chdir(root)
    return root


def asked(project, *words):
    """What a command says, and the packages that it imported."""
    code = (
        "import json, sys\nfrom launchwise.cli.app import main\n"
        f"assert main({list(words)!r}) == 0\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, packages = done.stdout.splitlines()
    return "\n".join(lines), set(json.loads(packages))


Cold = dict[tuple[str, ...], tuple[str, set[str]]]
HEAVY = {"sklearn", "lightgbm", "xgboost", "optuna", "plotly", "snakemake", "pycuda"}


@pytest.fixture(scope="module")
def cold(made):
    """What a new process recommends for each question, and the packages that it imported."""
    return {words: asked(made, "recommend", STUDY, *words) for words in (MEASURED, BETWEEN)}


def test_an_answer_imports_no_library_that_it_does_not_need(project, cold):
    said, packages = cold[MEASURED]
    assert "measured on this GPU" in said
    assert not packages & {*HEAVY, "scipy"}
    said, packages = cold[BETWEEN]
    assert "between measured sizes" in said
    assert not packages & {*HEAVY, "scipy"}
    said, packages = asked(project, "predict", STUDY, GPU, *BETWEEN)
    assert "cost model" in said
    assert not packages & {*HEAVY, "scipy"}


def test_answers_are_those_of_a_process_that_has_imported_everything(project, cold, capsys):
    import sklearn.ensemble

    assert sklearn.ensemble
    for words in (MEASURED, BETWEEN):
        said, _ = cold[words]
        assert main(["recommend", STUDY, *words]) == 0
        assert capsys.readouterr().out.strip() == said.strip()


def test_one_suggestion_needs_no_model(project, capsys):
    shutil.rmtree(project / "results" / "final" / STUDY / "recommender")
    for words, said in ((MEASURED, "measured on this GPU"), (BETWEEN, "between measured sizes")):
        assert main(["recommend", STUDY, *words]) == 0
        assert said in capsys.readouterr().out
    assert main(["recommend", STUDY, *BETWEEN, "--top", "2"]) == 2
    assert "recommender.json: cannot be read" in capsys.readouterr().err


def test_how_far_outside_of_the_measured_sizes_a_problem_lies_is_said(project, capsys):
    far = ["recommend", STUDY, "n=1025", *BETWEEN[1:]]
    assert main(far) == 0
    said = capsys.readouterr().out
    assert "beyond the measured sizes\noutside of the measured sizes by a factor of 2\n" in said
    assert main([*far, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["basis"], content["outside"]) == ("beyond", 1026 / 513)
    assert content["answered_for"]["n"] <= 512
    assert main(["recommend", STUDY, *BETWEEN]) == 0
    assert "outside" not in capsys.readouterr().out
    assert main(["recommend", STUDY, *MEASURED, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["answered_for"], content["outside"]) == (content["problem"], 1)


def test_further_suggestions_follow_the_one_of_the_table(project, capsys):
    said = {}
    for top in ("1", "3"):
        assert main(["recommend", STUDY, *BETWEEN, "--top", top, "--json"]) == 0
        said[top] = json.loads(capsys.readouterr().out)["suggestions"]
    assert said["3"][:1] == said["1"]
    assert [one["rank"] for one in said["3"]] == [1, 2, 3]
    chosen = [tuple(one["configuration"].items()) for one in said["3"]]
    assert len({*chosen}) == 3


def test_a_product_without_its_table_is_one_line(project, capsys):
    (project / "results" / "lookup" / f"{STUDY}.json").unlink()
    assert main(["recommend", STUDY, *MEASURED]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"results/lookup/{STUDY}.json" in said


def test_a_question_about_a_study_reads_no_other(project, capsys):
    assert main(["recommend", "stencil_blocks", *MEASURED]) == 2
    assert "unknown study 'stencil_blocks', did you mean 'stencil_block'?" in (
        capsys.readouterr().err
    )
    path = project / "kernels" / "saxpy" / "spec.yaml"
    path.write_text(f"{path.read_text()}\nstrange: 1\n")
    assert main(["recommend", STUDY, *MEASURED]) == 0
    assert main(["predict", STUDY, GPU, *BETWEEN]) == 0
    capsys.readouterr()
    # Its own are checked.
    own = project / "kernels" / "stencil" / "studies" / STUDY / "study.yaml"
    own.write_text(f"{own.read_text()}\nstrange: 1\n")
    assert main(["recommend", STUDY, *MEASURED]) == 2
    assert "study.yaml: strange: unknown key 'strange'" in capsys.readouterr().err


def test_a_study_that_is_left_out_is_unknown(project, capsys):
    settings = yaml.safe_load((project / "config.yaml").read_text())
    settings["studies"] = {STUDY: None}
    (project / "config.yaml").write_text(yaml.safe_dump(settings))
    assert main(["recommend", STUDY, *MEASURED]) == 2
    assert f"unknown study '{STUDY}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["n=256", "dtype=float32"], "recommend: order: needs a value"),
        (["n=256", "dtype=float32", "order"], "recommend: order: must be NAME=VALUE"),
        ([*MEASURED, "--gpu", "cadr"], "recommend: gpu: unknown GPU or card 'cadr'"),
    ],
)
def test_a_mistake_in_the_question_needs_no_gpu_to_show(project, words, said):
    done = launchwise("recommend", STUDY, *words, "--measure", "3", folder=project)
    assert complaint(done).startswith(said)
