"""A whole study through the command line, on a small part of the recorded sweeps."""

import html
import json
import os
import re
import runpy
import shutil
from functools import partial

import pytest
import yaml
from benchmark_runs import run_script
from command_line import launchwise
from forks import forked
from report_pages import repacked
from samples import ROOT, copy_project

from launchwise.gpus.profile import read_profile, write_profile
from launchwise.learning.splits import ALL
from launchwise.tables.files import read_table, write_table
from launchwise.tables.learning import evaluation_schema, rows_of_fold, training_schema
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.workloads

GPUS = ("h200", "h200.sm16")
TRAIN, TEST = [256, 512], [300, 550]
ORDERS = 3
"""Orders of the stencil that the sweeps have of each size in float32."""
STUDY = {
    "title": "Small",
    "question": "Which tile?",
    "models": ["chosen", "knn", "tree", "c45"],
    "own_models": {
        "tree": {"kind": "tree", "title": "tree"},
        "chosen": {
            "kind": "committee",
            "title": "chosen",
            "parameters": {"members": "knn, nearest_size"},
        },
    },
    "splits": {
        "paper": {"kind": "problems", "title": "sizes", "train": {"n": TRAIN}, "test": {"n": TEST}},
        "transfer": {"kind": "leave_one_gpu_out", "title": "GPUs"},
    },
}
QUESTION = ("acoustic_tile", "--gpu", "h200", "n=400", "dtype=float32", "order=8")
CHANGED = {
    "models": [*STUDY["models"], "roofline"],
    "own_models": {
        **STUDY["own_models"],
        "tree": {**STUDY["own_models"]["tree"], "parameters": {"max_depth": 3}},
        "knn": {"kind": "knn", "title": "knn", "parameters": {"k": 2}},
    },
}
"""A model more, one with other settings, and one with other settings in the committee."""
ASKED = ROOT / "kernels" / "acoustic" / "studies" / "acoustic_tile"
SPLIT = "results/splits/acoustic_tile.json"
CLEAN = "results/clean/acoustic_tile.parquet"
LEARNT = "results/learnt/acoustic_tile"
MODEL = f"{LEARNT}/tree.parquet"
FINAL = "results/final/acoustic_tile/final.json"
LOG = "results/logs/learn/acoustic_tile.log"
EVALUATION = "results/evaluation/acoustic_tile.parquet"
REPORT = "results/report/index.html"
STUDY_PAGE = "results/report/acoustic_tile/index.html"


@pytest.fixture(scope="module")
def acoustic_spec():
    return load_spec(ASKED.parents[1])


@pytest.fixture(scope="module")
def study(tmp_path_factory, acoustic_spec):
    """A copy of the project with two GPUs and four sizes of the real sweeps, run once."""
    project = copy_project(tmp_path_factory.mktemp("study") / "project", ASKED)
    schema = measurement_schema(acoustic_spec)
    for gpu in GPUS:
        recorded = ROOT / "data" / "recorded" / gpu
        rows = read_table(recorded / "acoustic.parquet", schema)
        # A part of the tiles is enough to learn from, and to find the best of.
        few = rows["variant"].isin(("linear", "block3d", "shared_tile")) & (rows["bz"] <= 8)
        wanted = rows["n"].isin(TRAIN + TEST) & (rows["dtype"] == "float32") & few
        rows = rows[wanted].reset_index(drop=True)
        folder = project.folder / "data" / "recorded" / gpu
        write_table(folder / "acoustic.parquet", rows, schema)
        write_profile(folder / "profile.json", read_profile(recorded / "profile.json", gpu))
    configure(project)
    done = project.snakemake("--cores", "2", "--quiet", "all")
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def configure(project, **changes):
    """Settings of the small study with ``changes`` in it."""
    config = project.config()
    config["gpus"] = {gpu: {"source": "recorded"} for gpu in GPUS}
    config["search"] = {"trials": 1, "folds": 2}
    project.configure(config)
    project.ask({**STUDY, **changes})


def stamps(project):
    """When each stage's file was written; of a model what it holds: Snakemake sets its time."""
    files = (SPLIT, CLEAN, MODEL, EVALUATION, FINAL, REPORT)
    times = {name: (project.folder / name).stat().st_mtime_ns for name in files}
    return {**times, MODEL: (project.folder / MODEL).read_bytes()}


def test_training_never_sees_a_test_row(study, acoustic_spec):
    rows = read_table(study.folder / CLEAN, training_schema(acoustic_spec))
    assert set(rows_of_fold(rows, "paper", ALL)["n"]) == set(TRAIN)
    for held, other in (GPUS, GPUS[::-1]):
        assert set(rows_of_fold(rows, "transfer", held)["gpu"]) == {other}


def test_every_test_problem_is_judged_by_every_model(study, acoustic_spec):
    found = read_table(study.folder / EVALUATION, evaluation_schema(acoustic_spec))
    paper = found[found["split"] == "paper"]
    assert set(paper["n"]) == set(TEST)
    counts = paper.groupby("model").size()
    assert {"tree", "c45", "untuned", "best_on_average", "nearest_size", "oracle"} <= set(
        counts.index
    )
    assert set(counts) == {len(GPUS) * len(TEST) * ORDERS}
    assert (paper.loc[paper["model"] == "oracle", "fraction"] == 1).all()
    assert (paper.loc[paper["model"] == "untuned", "improvement"] == 1).all()


def test_snakemake_packs_the_report_itself(study):
    packed = study.folder / "packed.html"
    done = study.snakemake("--report", packed.name)
    assert done.returncode == 0, done.stdout + done.stderr
    text = packed.read_text(encoding="utf-8")
    assert "results/report.zip" in text
    assert "acoustic_tile.models.csv" in text


def test_every_figure_of_the_pages_is_computed_a_second_time(study, tmp_path):
    def recomputed(results):
        output = tmp_path / f"{results.name}.json"
        words = [str(ROOT / "benchmarks" / "recomputed.py"), str(results), str(output)]
        settings = ["--settings", str(study.folder / "config.yaml")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = forked(run_script, [*words, *settings], tmp_path, environment, seconds=300)
        return done.returncode, json.loads(output.read_text()) if output.is_file() else {}

    status, found = recomputed(study.folder / "results")
    assert (status, found["differences"]) == (0, 0)
    assert found["figures"] > 1000
    compared = {(one["page"], one["table"]) for one in found["tables"] if one["figures"]}
    wrong = tmp_path / "wrong"
    shutil.copytree(study.folder / "results", wrong)
    report = wrong / "report"
    planted = {
        (page, table)
        for page in ("index.html", "gpus.html")
        for table in with_a_wrong_number_in_each_table(report / page, compared)
    }
    assert planted == {
        ("index.html", "Every kernel"),
        ("gpus.html", "GPUs: attributes"),
        ("gpus.html", "Measured ceilings per GPU"),
        ("gpus.html", "Sweeps and their verdicts"),
        ("gpus.html", "Sweeps and their verdicts: slices, sweeps of others, and all figures"),
        ("gpus.html", "What to measure again"),
    }
    for name in ("data/answers/acoustic_tile/h200.js", "data/acoustic_tile.gpus.js"):
        with_a_wrong_number_in_a_script(report / name)
    status, found = recomputed(wrong)
    assert status == 1
    differing = {(one["page"], one["table"]) for one in found["tables"] if one["differences"]}
    assert planted <= differing
    assert any("data/answers/" in table for _, table in differing)
    assert any(table.endswith(".gpus.js") for _, table in differing)


def rerun(project, before=None):
    """Files of stages that another run writes anew."""
    before = before or stamps(project)
    done = project.snakemake("--cores", "2", "--quiet", "all")
    assert done.returncode == 0, done.stdout + done.stderr
    after = stamps(project)
    return {name for name in before if after[name] != before[name]}


def made(project):
    """Models that the last run of the study's job made; the others stayed as they were."""
    lines = (project.folder / LOG).read_text().splitlines()
    said = dict(re.findall(r"^I (\w+): (made|as it was)$", "\n".join(lines), re.MULTILINE))
    assert {"chosen", "knn", "tree", "c45"} <= said.keys()
    return {name for name, what in said.items() if what == "made"}


def test_an_edit_of_the_evaluation_fits_no_model_anew_but_a_lost_one(study):
    final, before = (study.folder / FINAL).read_bytes(), stamps(study)
    (study.folder / FINAL).unlink()
    assert "rule learn_acoustic_tile:" in study.snakemake("-n").stdout
    (study.folder / LEARNT / "knn.parquet").unlink()
    module = study.folder / "launchwise" / "learning" / "evaluation.py"
    module.write_text(module.read_text() + "\nprint(end=str())\n")
    assert rerun(study, before) == {SPLIT, CLEAN, EVALUATION, FINAL, REPORT}
    assert made(study) == {"knn"}
    assert (study.folder / FINAL).read_bytes() == final
    assert launchwise("recommend", *QUESTION, folder=study.folder).returncode == 0


def test_added_and_changed_models_are_trained_with_what_is_made_of_them_and_nothing_else(study):
    before = (study.folder / LEARNT / "c45.parquet").read_bytes()
    configure(study, **CHANGED)
    plan = study.snakemake("-n")
    assert set(re.findall(r"^(?:local)?rule (\w+):", plan.stdout + plan.stderr, re.MULTILINE)) == {
        *("learn_acoustic_tile", "report", "all")
    }
    assert {MODEL, EVALUATION, FINAL, REPORT} <= rerun(study)
    # The committee has the changed model as a member.
    assert made(study) == {"roofline", "tree", "knn", "chosen"}
    assert (study.folder / LEARNT / "c45.parquet").read_bytes() == before
    page = (study.folder / STUDY_PAGE).read_text(encoding="utf-8")
    assert "roofline" in page


def test_titles_and_descriptions_rerun_the_report_alone(study):
    splits = {name: {**split, "title": "other"} for name, split in STUDY["splits"].items()}
    models = CHANGED["own_models"]
    titled = {**models, "chosen": {**models["chosen"], "title": "the chosen one"}}
    texts = {"title": "Quite another title", "question": "Which one?", "splits": splits}
    configure(study, **{**CHANGED, **texts, "own_models": titled})
    path = study.folder / "kernels" / "acoustic" / "spec.yaml"
    spec = yaml.safe_load(path.read_text())
    spec |= {"title": "Waves", "description": "Waves, too."}
    next(iter(spec["variants"].values()))["title"] = "another variant"
    next(iter(spec["problem"].values()))["description"] = "another size"
    path.write_text("# Another comment\n" + yaml.safe_dump(spec, sort_keys=False))
    assert rerun(study) == {REPORT}
    assert "Quite another title" in (study.folder / REPORT).read_text(encoding="utf-8")


def test_the_study_answers_on_the_command_line(study):
    done = launchwise("recommend", *QUESTION, folder=study.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("n=400, dtype=float32, order=8 on h200: between measured sizes")
    assert "usual choice: block3d: " in done.stdout
    found = json.loads(launchwise("recommend", *QUESTION, "--json", folder=study.folder).stdout)
    assert found["basis"] == "within"
    assert found["suggestions"][0]["configuration"]["variant"] in acoustic_variants(study)
    careful = launchwise("recommend", *QUESTION, "--least-gain", "100", folder=study.folder)
    assert "this is the usual choice" in careful.stdout
    assert careful.stdout.endswith("why: no gain of 100 and more is sure\n")
    macros = launchwise("recommend", *QUESTION, "--macros", folder=study.folder).stdout
    for name, value in found["suggestions"][0]["configuration"].items():
        assert name == "variant" or f"#define {name.upper()} {value}" in macros.splitlines()


def acoustic_variants(study):
    spec = yaml.safe_load((study.folder / "kernels" / "acoustic" / "spec.yaml").read_text())
    return list(spec["variants"])


def test_the_answers_leave_the_project(study, tmp_path):
    output = tmp_path / "tiles.py"
    words = ("export", "acoustic_tile", "--format", "python", "--output", str(output))
    done = launchwise(*words, "--cores", "2", folder=study.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{output}\n"
    assert "no record" not in done.stderr
    assert "export_acoustic_tile" in done.stderr.splitlines()[0]
    package = ("export", "acoustic_tile", "--format", "cmake", "--cores", "2")
    assert launchwise(*package, folder=study.folder).stdout == "acoustic_tile.cmake\n"
    names = {path.name for path in (study.folder / "acoustic_tile.cmake").iterdir()}
    assert names == {"acoustic_tile.hpp", "acoustic_tileConfig.cmake"}
    assert "one function of Triton" in launchwise(*words[:3], "triton", folder=study.folder).stderr
    found = runpy.run_path(str(output))["recommend"]("h200", n=512, dtype="float32", order=8)
    asked = ("acoustic_tile", "--gpu", "h200", "n=512", "dtype=float32", "order=8", "--json")
    answer = json.loads(launchwise("recommend", *asked, folder=study.folder).stdout)
    first = answer["suggestions"][0]
    assert first["configuration"].items() <= found.items()
    assert (found["time_ms"], found["basis"]) == (first["expected_ms"], answer["basis"])


# The last one: it leaves the study changed.
@pytest.mark.slow
def test_changed_fences_change_what_models_learn_from(study):
    splits = (study.folder / SPLIT).read_bytes()
    rows = (study.folder / CLEAN).read_bytes()
    configure(study, fences={"scope": "global", "factor": 1.5})
    done = study.snakemake("--cores", "2", "--quiet", "all", "--", "final_acoustic_tile")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (study.folder / SPLIT).read_bytes() == splits
    assert (study.folder / CLEAN).read_bytes() != rows
    assert made(study) == {*STUDY["models"]}


def with_a_wrong_number_in_each_table(page, compared):
    """Change the first number of each compared table; the captions of the changed ones."""
    changed = []

    def planted(table):
        caption = re.search(r"<caption>(.*?)</caption>", table[0], re.S)
        cells = re.compile(r'(<tbody.*?<td(?: class="text")?>)(\d+)', re.S)
        name = html.unescape(re.sub(r"<.*?>", "", caption[1]).strip()) if caption else ""
        if (page.name, name) not in compared or not cells.search(table[0]):
            return table[0]
        changed.append(name)
        return cells.sub(lambda cell: f"{cell[1]}{int(cell[2]) + 1}", table[0], count=1)

    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(r"<table.*?</table>", planted, text, flags=re.S), encoding="utf-8")
    return changed


def with_a_wrong_number_in_a_script(path):
    change = partial(re.sub, r"(\d\.\d*)\d(?=[,\]}])", r"\g<1>55", count=1)
    path.write_text(repacked(path.read_text(encoding="utf-8"), change), encoding="utf-8")
