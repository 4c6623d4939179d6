"""Answers from a cold start read, import and load what the question needs, and nothing else."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml
from command_line import line_of
from products import STUDY

from launchwise.cli.app import main

GPU = "card.sm16"
ASKED = ("recommend", STUDY, "--gpu", GPU)
MEASURED = ("n=256", "dtype=float32", "order=8")
BETWEEN = ("n=400", "dtype=float32", "order=8")


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


HEAVY = {"sklearn", "lightgbm", "xgboost", "optuna", "plotly", "snakemake", "pycuda"}


@pytest.fixture(scope="module")
def cold(finished):
    """What a new process recommends for each question, and the packages that it imported."""
    return {words: asked(finished, *ASKED, *words) for words in (MEASURED, BETWEEN)}


def test_an_answer_imports_no_library_that_it_does_not_need(project, cold):
    said, packages = cold[MEASURED]
    assert "measured on this GPU" in said
    assert not packages & {*HEAVY, "scipy"}
    said, packages = cold[BETWEEN]
    assert "between measured sizes" in said
    assert not packages & {*HEAVY, "scipy"}
    (project / "load.csv").write_text("n,dtype,order\n256,float32,8\n400,float32,8\n")
    said, packages = asked(project, "worth", STUDY, "--gpu", GPU, "--load", "load.csv")
    assert "The whole load is" in said
    assert not packages & {*HEAVY, "scipy", "jinja2"}
    few = ("--at-most", "2", "--gpu", GPU, "--load", "load.csv")
    assert not asked(project, "export", STUDY, *few)[1] & {*HEAVY, "scipy"}
    named = ("--as", "mine", "--workload", "kernels/stencil")
    assert not asked(project, "load", "load.csv", *named)[1] & {*HEAVY, "scipy", "pandas"}
    said, packages = asked(project, "predict", STUDY, GPU, *BETWEEN)
    assert "cost model" in said
    assert not packages & {*HEAVY, "scipy"}


def test_answers_are_those_of_a_process_that_has_imported_everything(project, cold, capsys):
    import sklearn.ensemble

    assert sklearn.ensemble
    for words in (MEASURED, BETWEEN):
        said, _ = cold[words]
        assert main([*ASKED, *words]) == 0
        assert capsys.readouterr().out.strip() == said.strip()


def test_a_value_that_is_missing_is_suggested_from_what_was_measured(project, capsys):
    said = line_of(capsys, *ASKED, "dtype=float32", "n=256")
    assert said == "recommend: order: needs a value, such as order=8"


def test_one_suggestion_needs_no_model(project, capsys):
    shutil.rmtree(project / "results" / "final" / STUDY / "recommender")
    for words, said in ((MEASURED, "measured on this GPU"), (BETWEEN, "between measured sizes")):
        assert main([*ASKED, *words]) == 0
        assert said in capsys.readouterr().out
    assert main([*ASKED, *BETWEEN, "--top", "2"]) == 0
    # A problem of the table that nobody measured.
    said = line_of(capsys, *ASKED, "n=415", *BETWEEN[1:], "--top", "2")
    assert "recommender.json: cannot be read" in said


def test_how_far_outside_of_the_measured_sizes_a_problem_lies_is_said(project, capsys):
    far = [*ASKED, "n=1025", *BETWEEN[1:]]
    assert main(far) == 0
    said = capsys.readouterr().out
    assert "beyond what this GPU measured\noutside of what was measured by a factor of 2\n" in said
    assert main([*ASKED, "n=513", *BETWEEN[1:]]) == 0
    assert "outside of what was measured by 0.19 %\n" in capsys.readouterr().out
    assert main([*far, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["basis"], content["outside"]) == ("beyond", 1026 / 513)
    assert content["answered_for"]["n"] <= 512
    assert main([*ASKED, *BETWEEN]) == 0
    assert "outside" not in capsys.readouterr().out
    assert main([*ASKED, *MEASURED, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["answered_for"], content["outside"]) == (content["problem"], 1)


def test_further_suggestions_follow_the_one_of_the_table(project, capsys):
    said = {}
    for top in ("1", "3"):
        assert main([*ASKED, *BETWEEN, "--top", top, "--json"]) == 0
        said[top] = json.loads(capsys.readouterr().out)["suggestions"]
    assert said["3"][:1] == said["1"]
    assert [one["rank"] for one in said["3"]] == [1, 2, 3]
    chosen = [tuple(one["configuration"].items()) for one in said["3"]]
    assert len({*chosen}) == 3


def test_a_product_without_its_table_is_one_line(project, capsys):
    (project / "results" / "lookup" / f"{STUDY}.json").unlink()
    assert f"results/lookup/{STUDY}.json" in line_of(capsys, *ASKED, *MEASURED)


def test_a_question_about_a_study_reads_no_other(project, capsys):
    said = line_of(capsys, "recommend", STUDY, *MEASURED)
    assert f"recommend: --gpu: choose one: {STUDY} measured {GPU}, " in said
    said = line_of(capsys, "recommend", "stencil_blocks", *MEASURED)
    assert "unknown study 'stencil_blocks', did you mean 'stencil_block'?" in said
    path = project / "kernels" / "saxpy" / "spec.yaml"
    path.write_text(f"{path.read_text()}\nstrange: 1\n")
    assert main([*ASKED, *MEASURED]) == 0
    assert main(["predict", STUDY, GPU, *BETWEEN]) == 0
    # Its own are checked.
    own = project / "kernels" / "stencil" / "studies" / STUDY / "study.yaml"
    own.write_text(f"{own.read_text()}\nstrange: 1\n")
    said = line_of(capsys, *ASKED, *MEASURED)
    assert "study.yaml: strange: unknown key 'strange'" in said


def test_a_study_that_is_left_out_is_unknown(project, capsys):
    settings = yaml.safe_load((project / "config.yaml").read_text())
    settings["studies"] = {STUDY: None}
    (project / "config.yaml").write_text(yaml.safe_dump(settings))
    assert f"unknown study '{STUDY}'" in line_of(capsys, *ASKED, *MEASURED)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([GPU, "n=256", "dtype=float32"], "recommend: order: needs a value"),
        ([GPU, "n=256", "dtype=float32", "order"], "recommend: order: must be NAME=VALUE"),
        (["cadr", *MEASURED], "recommend: gpu: unknown GPU or card 'cadr'"),
    ],
)
def test_a_mistake_in_the_question_needs_no_gpu_to_show(project, capsys, words, said):
    line = line_of(capsys, "recommend", STUDY, "--gpu", *words, "--measure", "3")
    assert line.startswith(said)
