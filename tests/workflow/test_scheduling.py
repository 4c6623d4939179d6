"""Snakemake's limit of jobs per second, in a workflow of one job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from forks import forked, run_snakemake
from samples import ROOT

WORKFLOW = """
from launchwise.workflow.scheduling import lift_rate_limit

onstart:
    lift_rate_limit(workflow)

onsuccess:
    print("limit:", workflow.scheduler.job_rate_limiter)

rule one:
    output: "one"
    shell: "touch {output}"
"""


@pytest.mark.parametrize(
    ("options", "lifted"),
    [
        ([], True),
        (["--max-jobs-per-timespan", "2/1s"], False),
        (["--max-jobs-per-timespan", "100/2s"], False),
    ],
)
def test_only_a_limit_of_the_user_holds_for_local_jobs(
    tmp_path: Path, options: list[str], lifted: bool
) -> None:
    (tmp_path / "Snakefile").write_text(WORKFLOW)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["--cores", "1", *options]
    ran = forked(run_snakemake, words, tmp_path, environment, seconds=100)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "one").exists()
    assert ("limit: None" in ran.stdout) is lifted, ran.stdout + ran.stderr
