"""Says at the start of a run how long it takes, what can be read first, and how to stop it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from launchwise.workflow.cluster import Cluster
from launchwise.workflow.studies import Studies

JOB_S = 2.0
"""Core time of a job beside its work: the start of Python, libraries."""

LEARNING_S, REPORT_S = 0.47, 0.1
"""Core time by :meth:`~launchwise.workflow.studies.Studies.work`, s per 1e6: of learning; of the
pages. Learning took 3.8 to 57 s for 0.8 to 94 units, within a factor of two of the line."""

WORTH_SAYING_S = 20.0
"""Shorter runs say nothing."""

FRONT, ARCHIVE = Path("results/report/index.html"), Path("results/report.zip")


def tell_beginning(workflow: Any, studies: Studies, cluster: Cluster, cores: int) -> None:
    """Print two lines before a run on this machine that takes a while.

    Parameters
    ----------
    workflow
        Snakemake's workflow, before its first job.
    cores
        Value of ``--cores``.
    """
    quiet = {str(each).rpartition(".")[2].lower() for each in workflow.output_settings.quiet or ()}
    if not workflow.local_exec or "all" in quiet:
        return
    jobs = list(workflow.dag.needrun_jobs())
    seconds = estimated_s(((job.rule.name, job.wildcards) for job in jobs), studies, cluster, cores)
    if seconds < WORTH_SAYING_S:
        return
    first = ""
    if any(job.rule.name == "report" for job in jobs):
        what = "the report as it was" if ARCHIVE.is_file() else "first answers soon"
        first = f"; to read meanwhile: {what}, in {FRONT}"
    print(
        f"launchwise: about {spoken(seconds)} on {cores} {'core' if cores == 1 else 'cores'}"
        f"{first}\nlaunchwise: Ctrl-C keeps all that is done: the same command goes on from there",
        file=sys.stderr,
    )


def estimated_s(
    jobs: Iterable[tuple[str, Any]], studies: Studies, cluster: Cluster, cores: int
) -> float:
    """About how long jobs take on so many cores and one card of each kind, s.

    Parameters
    ----------
    jobs
        Rule and wildcards of each.
    """
    computing, longest, measuring = 0.0, 0.0, 0.0
    learning = {f"learn_{study}": study for study in studies.names}
    for rule, wildcards in jobs:
        seconds = JOB_S
        if rule in learning:
            seconds += LEARNING_S * studies.works[learning[rule]] / 1e6
            longest = max(longest, seconds / studies.processes(learning[rule]))
        elif rule == "report":
            seconds += REPORT_S * sum(studies.works.values()) / 1e6
        elif rule == "sweep":
            shards = cluster.shards(wildcards.gpu, wildcards.workload)
            measuring += cluster.seconds(wildcards.gpu, wildcards.workload) / shards
        computing += seconds
    return max(computing / cores, longest) + measuring


def spoken(seconds: float) -> str:
    """A time as people say it, such as ``4 minutes``."""
    if seconds < 90:
        return f"{max(10, 10 * round(seconds / 10))} seconds"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} minutes" if minutes < 100 else f"{round(minutes / 60)} hours"
