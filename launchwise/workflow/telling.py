"""What a run says in the terminal: how long it takes, why jobs failed, that it was stopped.

And that results came without Snakemake's records of how they were made: it notes in
``.snakemake/metadata`` with which parameters, and from which inputs, a file was made. Of a file
without such a record it compares times alone.
"""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from launchwise.base.storage import RESULTS
from launchwise.workflow.cluster import Cluster
from launchwise.workflow.studies import Studies

JOB_S = 2.0
"""Core time of a job beside its work: the start of Python, libraries."""

LEARNING_S, REPORT_S = 0.47, 0.1
"""Core time by :meth:`~launchwise.workflow.studies.Studies.works`, s per 1e6: of learning; of the
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


MARK = "E launchwise: "
"""How a mistake begins in the log of a stage (see :mod:`launchwise.base.scripting`)."""


def tell_failures(workflow: Any) -> None:
    """Print one line per mistake of failed jobs; of this machine's own jobs it stands there.

    Parameters
    ----------
    workflow
        Snakemake's workflow, at its end.
    """
    if workflow.local_exec:
        return
    logs = {
        Path(str(path))
        for failed in workflow.scheduler.failed
        # A group holds jobs.
        for job in getattr(failed, "jobs", [failed])
        for path in job.log
    }
    said = dict.fromkeys(line for path in sorted(logs) for line in _mistakes(path))
    for line in said:
        print(line, file=sys.stderr)


def _mistakes(log: Path) -> list[str]:
    """The mistake that a log ends with, if it does."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line.removeprefix("E ") for line in lines if line.startswith(MARK)][-1:]


LINE = "launchwise: stopped; the same command goes on with what is not done yet"

_arrived: list[int] = []


def note_interrupts() -> None:
    """Remember that Ctrl-C was pressed; Python raises its exception as ever."""

    def note(number: int, frame: FrameType | None) -> None:
        _arrived.append(number)
        signal.default_int_handler(number, frame)

    _arrived.clear()
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, note)


def tell_interruption() -> bool:
    """Print one line if Ctrl-C ended the run, and say whether it did."""
    if _arrived:
        print(LINE, file=sys.stderr)
    return bool(_arrived)


RECORDS = Path(".snakemake", "metadata")
UNRECORDED = {"journal", "launchwise.json", "logs"}
"""What a run writes in the folder of results that is no result of a rule."""
TUNED = Path(RESULTS, "logs", "tune")
"""Where ``launchwise tune`` writes its log: its results never have records."""


def tell_missing_records(workflow: Any) -> None:
    """Print one line if there are results and no record at all; jobs of a run print nothing.

    Parameters
    ----------
    workflow
        Snakemake's workflow.
    """
    if not workflow.is_main_process:
        return
    results = _names(Path(RESULTS))
    if results - UNRECORDED and not TUNED.is_dir() and not _names(RECORDS):
        print(
            f"launchwise: {RESULTS}/ came without {RECORDS}/, where Snakemake notes how files were "
            "made: results are taken as they are unless an input is newer. To make them anew: "
            "snakemake --forceall; to note them as made today: snakemake --forceall --touch",
            file=sys.stderr,
        )


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
