"""The work of the main job: counted against its budget, planned anew where nothing changed."""

import json
import os
import re

import budget
import pytest
import yaml
from budget import BUDGET_FILE, Budget, complaints, measured
from forks import forked, run_snakemake
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.base.typed import validated
from launchwise.base.work import ASKED, FITTED
from tests.support.report_pages import words

MOST_JOBS = 40
MOST_MEGABYTES = 165
MOST_BYTES = {"report": 18e6, "page": 1e6, "front page": 160e3}
"""Sizes that the report keeps to, whose pages open from a file."""
MOST_WORDS = {"paper": 1200, "study": 2000}  # Of a paper's page; of all pages, for each study


@pytest.fixture
def committed():
    path = ROOT / BUDGET_FILE
    return validated(Budget, read_json(path), path)


def test_the_budget_says_why_and_holds_the_line(committed):
    assert committed.why.strip()
    assert committed.whole["jobs"] <= MOST_JOBS
    assert committed.whole["megabytes"] <= MOST_MEGABYTES
    assert complaints(committed, committed) == []


def test_a_study_above_its_budget_is_named_with_its_share(committed):
    study = max(committed.studies, key=lambda each: committed.studies[each][FITTED])
    grown = committed.model_copy(deep=True)
    more = int(0.04 * grown.studies[study][FITTED])
    grown.studies[study][FITTED] += more
    (said,) = complaints(grown, committed)
    assert said.startswith(f"{study}: ")
    assert re.search(r"\+4 %; \d+ % of the whole", said)
    grown.studies[study][FITTED] -= more // 2
    assert complaints(grown, committed) == []


def test_a_new_study_needs_a_budget_and_less_work_a_smaller_one(committed):
    grown = committed.model_copy(deep=True)
    grown.studies["new_study"] = {FITTED: 1, ASKED: 2}
    assert [each.split()[0] for each in complaints(grown, committed)] == ["new_study"] * 2
    less = committed.model_copy(deep=True)
    less.whole["files_read"] = int(0.9 * less.whole["files_read"])
    (said,) = complaints(less, committed)
    assert "files read" in said


def test_without_a_run_there_is_nothing_to_hold_against_it(tmp_path):
    with pytest.raises(UserError, match="holds no counted work: run snakemake first"):
        measured(tmp_path)


def test_a_budget_is_written_with_its_reason_alone(tmp_path, monkeypatch):
    counted = dict.fromkeys(("row_trees_fitted", "row_trees_asked", "files_read", "rows_read"), 7)
    (tmp_path / "results" / "work" / "learn").mkdir(parents=True)
    (tmp_path / "results" / "work" / "learn" / "one.json").write_text(json.dumps(counted))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(budget, "shipped", lambda path: tmp_path / "budget.json")
    with pytest.raises(UserError, match="say why"):
        budget.main(["--write"])
    assert budget.main(["--write", "a study more"]) == 0
    written = json.loads((tmp_path / "budget.json").read_text())
    assert written["why"] == "a study more"
    assert written["studies"] == {"one": {FITTED: 7, ASKED: 7}}
    assert budget.main([]) == 0


STUDIES = {"pnpoly_turing_transfer", "tridiagonal_streams"}
"""Small ones, each of another workload; a slow test runs all of them."""


@pytest.mark.workloads
def test_the_main_job_of_small_studies_keeps_its_budget_and_is_done_once(tmp_path, committed):
    """README's first command: studies, the report, and then nothing to do."""
    settings = yaml.safe_load((ROOT / "config.yaml").read_text())
    settings["studies"] = dict.fromkeys(committed.studies.keys() - STUDIES)
    settings["gpus"] = {gpu: own for gpu, own in settings["gpus"].items() if ".sm" not in gpu}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))

    def run(*words):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = ["--snakefile", str(ROOT / "Snakefile"), "--cores", "2", *words]
        return forked(run_snakemake, words, tmp_path, environment, seconds=1800)

    done = run()
    assert done.returncode == 0, done.stderr[-3000:]
    assert "first answers: results/report/index.html" in done.stderr
    report = tmp_path / "results" / "report"
    assert "The run goes on" not in (report / "index.html").read_text()
    bytes_of = {path: path.stat().st_size for path in report.rglob("*.*")}
    assert bytes_of[report / "index.html"] < MOST_BYTES["front page"]
    assert max(bytes_of[path] for path in report.rglob("*.html")) < MOST_BYTES["page"]
    assert sum(bytes_of.values()) < MOST_BYTES["report"]
    read = {path: words(path.read_text()) for path in report.rglob("*.html")}
    papers = [count for path, count in read.items() if path.name == "paper.html"]
    assert max(papers) <= MOST_WORDS["paper"]
    assert sum(read.values()) <= MOST_WORDS["study"] * len(STUDIES)
    work = measured(tmp_path / "results")
    assert work.studies.keys() == STUDIES
    assert complaints(work.model_copy(update={"whole": committed.whole}), committed) == []
    again = run("--dry-run")
    assert "Nothing to be done" in again.stdout + again.stderr
