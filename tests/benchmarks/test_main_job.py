"""The benchmark of the main job measures a run, and a fixed work beside it."""

import os
import subprocess
import sys

import pytest
from benchmark_runs import result_of
from budget import BUDGET_FILE, Budget, complaints
from harness.calibration import core_seconds
from main_job import MEASURED, jobs
from samples import ROOT

from launchwise.base.storage import read_json
from launchwise.base.typed import validated


def test_jobs_are_those_that_snakemake_finished():
    said = "1 of 3 steps (33%) done\n3 of 3 steps (100%) done\nComplete log: x\n"
    assert jobs(said) == 3
    assert jobs("Nothing to be done\n") == 0


def test_a_smaller_calibration_takes_less():
    small, larger = core_seconds(0.02), core_seconds(0.2)
    assert 0 < small < larger


MOST = 1.15
"""Share of the budget of core-seconds above which the main job fails; runs differ by 8 %."""


@pytest.mark.slow
@pytest.mark.workloads
@pytest.mark.skipif(sys.platform != "linux", reason="reads the account of a process tree")
def test_work_and_core_seconds_stay_in_their_budget(tmp_path):
    budget = validated(Budget, read_json(ROOT / BUDGET_FILE), BUDGET_FILE)
    assert budget.calibrated is not None
    output = tmp_path / "result.json"
    words = [sys.executable, str(ROOT / "benchmarks" / "main_job.py"), str(output)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(words, cwd=tmp_path, env=environment, check=True)
    result = read_json(output)
    assert result["medians"]["calibrated"] <= MOST * budget.calibrated
    for run in result["runs"]:
        assert complaints(Budget(why="", **run["work"]), budget) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the account of a process tree")
def test_the_main_job_is_measured(tmp_path):
    result = result_of("main_job", tmp_path)
    (run,) = result["runs"]
    assert result["studies"] == ["tridiagonal_streams"]
    assert result["medians"] == {name: run[name] for name in MEASURED}
    # Profiles, data, the study, the report, exports, all.
    assert 5 <= run["jobs"] <= 12
    assert 0 < run["first_page_s"] <= run["wall_s"]
    assert run["core_s"] > 1
    assert run["calibrated"] == pytest.approx(run["core_s"], rel=0.9)
    assert run["work"]["whole"]["row_trees_fitted"] > 0
    assert run["work"]["studies"].keys() == {"tridiagonal_streams"}
