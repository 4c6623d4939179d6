"""The work of the main job: counted against its budget, planned anew where nothing changed."""

import json
import os
import re
import shutil

import budget
import pytest
from benchmark_runs import run_script
from budget import BUDGET_FILE, Budget, complaints, measured
from forks import forked, run_snakemake
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.base.typed import validated
from launchwise.base.work import ASKED, FITTED

MOST_JOBS = 40
MOST_MEGABYTES = 165


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


@pytest.mark.workloads
def test_the_main_job_keeps_its_budget_and_is_done_once(tmp_path):
    """README's first command: every study, the report, and then nothing to do."""
    shutil.copy(ROOT / "config.yaml", tmp_path)

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run(program, *words):
        return forked(program, [*words], tmp_path, environment, seconds=1800)

    snakemake = ("--snakefile", str(ROOT / "Snakefile"), "--cores", "2")
    done = run(run_snakemake, *snakemake)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "first answers: results/report/index.html" in done.stderr
    assert "The run goes on" not in (tmp_path / "results/report/index.html").read_text()
    held = run(run_script, str(ROOT / "benchmarks" / "budget.py"))
    assert held.returncode == 0, held.stderr
    again = run(run_snakemake, *snakemake, "--dry-run")
    assert "Nothing to be done" in again.stdout + again.stderr
