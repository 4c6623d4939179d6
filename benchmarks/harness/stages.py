"""Attributes the processes of a workflow's run to its stages.

A stage is a rule's script. Snakemake starts a process per job, whose command line names a copy of
the script. Since the workflow has a server (``launchwise/base/forking.py``), that process only
waits for a fork of the server, and the fork bears the script's name. Processes below a job's
process or fork belong to the job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.processes import Process, Usage

SCRIPT = re.compile(r"\.snakemake/scripts/tmp\w+\.(\w+)\.py")
"""In the command line of a job's process."""
SERVER = "launchwise.base.forking"
"""In the command line of the server and of its forks."""
NAME_LENGTH = 15
"""Characters that Linux keeps of a process's name."""
SNAKEMAKE, LOADING = "(snakemake)", "(server)"
"""Processes outside the stages: planning and starting jobs; loading libraries for all jobs."""


def script_names(project: Path) -> list[str]:
    """Names, without ``.py``, of all files of a project that may be a rule's script."""
    paths = [*project.glob("scripts/*.py"), *project.glob("kernels/*/*.py")]
    return [path.stem for path in paths]


def summarise(usage: Usage, scripts: Iterable[str]) -> dict[str, Any]:
    """Totals of a run and of its stages.

    Returns
    -------
    ``core_s`` is exact for the run, by samples for the stages; ``sampled_core_s`` is the sum of
    the stages. ``peak_memory_mb`` is the largest sum of proportional set sizes,
    ``largest_process_mb`` the largest resident memory of one process. Per stage: number of jobs,
    sum and maximum of their seconds, core-seconds, memory. ``until_first_job_s`` is what Snakemake
    needs for its start and its plan; None without jobs.
    """
    forks = {name[:NAME_LENGTH]: name for name in scripts}
    stages: dict[str, list[Process]] = {}
    for process in usage.processes:
        stages.setdefault(stage_of(process, forks), []).append(process)
    began_s = usage.processes[0].started_s
    first_job_s = min((each.started_s for each in usage.processes if _is_job(each)), default=None)
    return {
        "wall_s": round(usage.wall_s, 2),
        "core_s": round(usage.core_s, 2),
        "sampled_core_s": round(sum(each.core_s for each in usage.processes), 2),
        "peak_memory_mb": round(usage.peak_memory_mb, 1),
        "largest_process_mb": _largest_mb(usage.processes),
        "until_first_job_s": None if first_job_s is None else round(first_job_s - began_s, 2),
        "stages": {stage: _summary(processes) for stage, processes in stages.items()},
    }


def stage_of(process: Process, forks: dict[str, str]) -> str:
    """Stage that a process works for, or :data:`SNAKEMAKE` or :data:`LOADING`.

    Parameters
    ----------
    forks
        Name of a server's fork to the stage.
    """
    if process.parent is not None:
        stage = stage_of(process.parent, forks)
        if stage not in (SNAKEMAKE, LOADING):
            return stage
    if script := SCRIPT.search(process.command):
        return script.group(1)
    if SERVER in process.command:
        return forks.get(process.name, LOADING)
    return SNAKEMAKE


def _summary(processes: list[Process]) -> dict[str, Any]:
    seconds = [process.wall_s for process in processes if _is_job(process)]
    return {
        "jobs": len(seconds),
        "wall_s": round(sum(seconds), 2),
        "longest_s": round(max(seconds, default=0.0), 2),
        "core_s": round(sum(process.core_s for process in processes), 2),
        "largest_process_mb": _largest_mb(processes),
    }


def _is_job(process: Process) -> bool:
    """Whether this is the outermost process of a job: a shell may start the script's process."""
    if not SCRIPT.search(process.command):
        return False
    above = process.parent
    while above is not None and not SCRIPT.search(above.command):
        above = above.parent
    return above is None


def _largest_mb(processes: Iterable[Process]) -> float:
    return round(max(process.resident_mb for process in processes), 1)
