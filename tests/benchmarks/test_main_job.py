"""The benchmark of the main job: processes, stages, and the smallest size."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from benchmark_runs import result_of
from harness.processes import Process, Usage, run
from harness.projects import WORKING_TREE
from harness.stages import LOADING, SNAKEMAKE, stage_of, summarise
from main_job import EVALUATED, SMALLEST_MODELS, Case, sweeps
from samples import Project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="samples /proc")

BUSY = """
import subprocess, sys, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return bytearray(50_000_000)
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"])
    kept = work(0.2)
    sys.exit(child.wait())
kept = work(0.6)
"""


def test_samples_agree_with_the_kernels_account(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    command = [sys.executable, "busy.py"]
    usage = run(command, tmp_path, os.environ, tmp_path / "output.log")
    assert usage.status == 0, (tmp_path / "output.log").read_text()
    parent, child = usage.processes
    assert child.parent is parent
    assert child.command.endswith("child")
    assert usage.core_s >= 0.8
    assert 0.8 * usage.core_s < parent.core_s + child.core_s <= usage.core_s + 0.02
    assert 0.5 < child.core_s < 0.8
    assert child.resident_mb > 5
    assert usage.peak_memory_mb > 0
    assert 0.5 < child.wall_s <= parent.wall_s + 0.1 <= usage.wall_s + 0.2


def test_a_failed_command_has_its_status(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('why'); raise SystemExit(3)"]
    usage = run(command, tmp_path, os.environ, tmp_path / "output.log")
    assert usage.status == 3
    assert (tmp_path / "output.log").read_text() == "why\n"


def process(parent: Process | None, command: str, name: str = "python") -> Process:
    """A process of one core-second that ran from second 1 to second 3."""
    return Process(1, parent, 1.0, name, command, core_s=1.0, resident_mb=10.0, ended_s=3.0)


def test_processes_belong_to_the_stage_that_they_work_for() -> None:
    root = process(None, "python -m snakemake --cores 2")
    script = "/project/.snakemake/scripts/tmpa1b2.recorded_profile.py"
    shell = process(root, f"bash -c set -e; python {script}")
    client = process(shell, f"python {script}")
    server = process(root, "python -m launchwise.base.forking {...}")
    group = process(server, "python -m launchwise.base.forking {...}")
    # Linux keeps 15 characters of a name.
    fork = process(group, "python -m launchwise.base.forking {...}", "recorded_profil")
    pool = process(fork, "python -m launchwise.base.forking {...}", "worker")
    tree = [root, shell, client, server, group, fork, pool]
    forks = {"recorded_profil": "recorded_profile"}
    expected = [SNAKEMAKE, *["recorded_profile"] * 2, LOADING, LOADING, *["recorded_profile"] * 2]
    assert [stage_of(each, forks) for each in tree] == expected


def test_a_job_counts_once_and_its_processes_core_seconds_all() -> None:
    root = process(None, "snakemake")
    script = "/project/.snakemake/scripts/tmp_x1.train.py"
    shell = process(root, f"bash -c python {script}")
    tree = [root, shell, process(shell, f"python {script}"), process(root, "git status")]
    summary = summarise(Usage(0, 2.0, 4.5, 100.0, tree), ["train"])
    assert (summary["core_s"], summary["sampled_core_s"]) == (4.5, 4.0)
    assert summary["stages"] == {
        SNAKEMAKE: {
            **{"jobs": 0, "wall_s": 0, "longest_s": 0},
            **{"core_s": 2.0, "largest_process_mb": 10.0},
        },
        "train": {
            **{"jobs": 1, "wall_s": 2.0, "longest_s": 2.0},
            **{"core_s": 2.0, "largest_process_mb": 10.0},
        },
    }
    assert summary["until_first_job_s"] == 0.0


@pytest.mark.slow
def test_main_job_is_measured_by_stage(tmp_path: Path) -> None:
    result = result_of("main_job", tmp_path)
    (run,) = result["runs"]
    assert run["studies"] == ["tridiagonal_streams"]

    def jobs(name: str) -> dict[str, int]:
        stages = run[name]["stages"].items()
        return {stage: facts["jobs"] for stage, facts in stages if facts["jobs"]}

    # Two GPUs measured this workload, and each has pairs.
    assert jobs("main_job") == {"recorded": 2, "recorded_profile": 2}
    assert jobs("nothing_to_do") == {}
    stages = ("times", "split", "clean", "train", "recommend", "evaluate")
    assert jobs("sweeps_to_evaluation") == {**dict.fromkeys(stages, 1), "recorded_pairs": 2}
    for name in ("main_job", "nothing_to_do", "sweeps_to_evaluation"):
        summary = run[name]
        stage_s = sum(facts["core_s"] for facts in summary["stages"].values())
        assert stage_s == pytest.approx(summary["sampled_core_s"], abs=0.1)
        assert 0.7 * summary["core_s"] < summary["sampled_core_s"] < summary["core_s"] + 0.1
        assert summary["peak_memory_mb"] > 50
    evaluated = run["sweeps_to_evaluation"]["stages"]["evaluate"]
    # The work is a fork's, not that of the process that waits for it.
    assert evaluated["core_s"] > 0.2
    assert evaluated["largest_process_mb"] > 100
    assert evaluated["longest_s"] <= run["sweeps_to_evaluation"]["wall_s"]


@pytest.mark.slow
def test_each_gpu_of_a_grown_project_has_its_sweep(tmp_path: Path) -> None:
    project = tmp_path / "project"
    case = Case(WORKING_TREE, (EVALUATED,), SMALLEST_MODELS, gpu_factor=2)
    # Two GPUs that measured the workload, and a copy of each.
    assert case.make(project)["gpus"] == 4
    found = [name for name in sweeps(project) if name.endswith(".parquet")]
    assert len(found) == 4
    checked = Project(project).snakemake("-n", "--quiet", "all", "--", *found)
    assert checked.returncode == 0, checked.stdout + checked.stderr
