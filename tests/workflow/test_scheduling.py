"""Snakemake's limit of jobs per second, in a workflow of one job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (tmp_path / "one").exists()
    assert ("limit: None" in ran.stdout) is lifted, ran.stdout + ran.stderr
