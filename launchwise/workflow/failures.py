"""Says in the terminal why jobs on other machines failed: Snakemake names their logs alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
