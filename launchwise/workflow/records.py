"""Results whose making Snakemake has no record of: copied ones, or those of another ``.snakemake``.

Snakemake notes in ``.snakemake/metadata`` with which parameters, and from which inputs, a file was
made. Of a file without such a note it compares times alone, so that results of other settings or of
older code would pass as today's, and a run with nothing else to do does not mention it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

from launchwise.base.storage import write_json

RESULTS = "results/"
NAMED = 3
"""Files that the message names."""

MADE_FILE = Path(".snakemake", "launchwise", "made.json")
"""Results that a command of ours made as Snakemake would, to their times in ns."""

HOOKED = {
    "workflow": ("_prepare_dag", "_build_dag"),
    "persistence": ("has_metadata", "params_changed"),
}
"""What is replaced of Snakemake's objects: no public interface tells of missing records."""

log = logging.getLogger("snakemake.logging")
"""Snakemake's own, so that the line stands in the run's log, too."""


class _Change(frozenset[str]):
    """Stands for a change of parameters: which they were is not known."""

    only_old = frozenset({"unknown: no record of how it was made"})
    only_new: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return True

    def __or__(self, other: Any) -> _Change:
        return self

    def __str__(self) -> str:
        return next(iter(self.only_old))


class Records:
    """What Snakemake knows of how results were made; stands in front of its own store.

    A job whose outputs have no record is outdated. What the rules ``once`` made is left alone,
    whether script or parameters have changed since, and what :func:`note_made` noted.

    Parameters
    ----------
    store
        Snakemake's store of records.
    once
        Rules that must not run again by themselves.
    """

    def __init__(self, store: Any, once: Collection[str]) -> None:
        self._once = once
        self._made = made_before()
        self._has, self._changed = store.has_metadata, store.params_changed
        self.outdated: dict[Any, None] = {}
        self.kept: dict[Any, None] = {}
        store.has_metadata, store.params_changed = self.has_metadata, self.params_changed

    def has_metadata(self, job: Any) -> bool:
        """Whether outputs have a record, or count as if they had one."""
        if self._stays(job):
            # Snakemake has compared the times of script and outputs before it asks for records.
            job.dag.reason(job).code_changed = False
            return False
        if self._has(job):
            return True
        if not any(str(path).startswith(RESULTS) for path in job.output):
            return False
        if all(self._made.get(str(path)) == _time_of(path) for path in job.output):
            return False
        (self.kept if job.rule.name in self._once else self.outdated)[job] = None
        return job.rule.name not in self._once

    def _stays(self, job: Any) -> bool:
        """Whether a job must not run again, whatever has changed of it."""
        if job.rule.name not in self._once or not self._has(job):
            return False
        return all(Path(str(path)).exists() for path in job.output)

    def leave_out_absent(self) -> None:
        """Say nothing of outputs that are not there yet: Snakemake asks for their records, too."""
        for jobs in (self.outdated, self.kept):
            for job in [*jobs]:
                if not any(Path(str(path)).exists() for path in job.output):
                    del jobs[job]

    def params_changed(self, job: Any, file: Any = None) -> Any:
        """What has changed of a job's parameters; everything, where nothing is known."""
        if job in self.outdated and not self._has(job):
            return _Change(map(str, job.output))
        return self._changed(job, file)


def note_made(folder: Path, names: Collection[str]) -> None:
    """Note results in ``folder`` that were made as Snakemake would make them."""
    known = made_before(folder)
    now = {name: _time_of(folder / name) for name in names}
    write_json(folder / MADE_FILE, {**known, **now})


def made_before(folder: Path = Path()) -> dict[str, int]:
    """Results that :func:`note_made` noted, to their times then; none if nothing can be read."""
    try:
        return dict(json.loads((folder / MADE_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def _time_of(path: str | Path) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def require_records(workflow: Any, once: Collection[str]) -> None:
    """Make results anew whose making there is no record of, and say so in one line.

    ``--touch`` makes records without making results; ``--rerun-triggers mtime`` does without.
    Nothing happens with a Snakemake that lacks what is :data:`HOOKED`. A job that takes an outdated
    file as ``ancient`` is looked at in the next run: Snakemake leaves it out of this one's plan.

    Parameters
    ----------
    workflow
        Snakemake's workflow, before it plans its jobs.
    once
        Rules that must not run again by themselves.
    """
    if not workflow.is_main_process or not _has(workflow, "workflow"):
        return
    prepare, build = workflow._prepare_dag, workflow._build_dag

    def prepared(*given: Any, **named: Any) -> None:
        prepare(*given, **named)
        if _has(workflow.persistence, "persistence"):
            workflow.launchwise_records = Records(workflow.persistence, once)

    def built(*given: Any, **named: Any) -> None:
        build(*given, **named)
        if not hasattr(workflow, "launchwise_records"):
            return
        workflow.launchwise_records.leave_out_absent()
        # A plan has no executor.
        for line in told(workflow.launchwise_records, getattr(workflow, "touch", False)):
            log.warning(line)

    workflow._prepare_dag, workflow._build_dag = prepared, built


def _has(thing: Any, what: str) -> bool:
    return all(hasattr(thing, name) for name in HOOKED[what])


def told(records: Records, touched: bool) -> list[str]:
    """What is said of results without a record: a line, or two, or none.

    Parameters
    ----------
    touched
        Whether this run makes records for them as they are.
    """
    lines = []
    if records.outdated:
        names = _names(records.outdated)
        if touched:
            lines.append(f"launchwise: accepted as made with today's settings and code: {names}")
        else:
            lines.append(
                f"launchwise: no record of how {names} came about (copied without .snakemake/?): "
                "they are made again; to accept them as made with today's settings and code: "
                "snakemake --touch"
            )
    if records.kept:
        names = _names(records.kept)
        lines.append(
            f"launchwise: no record of how {names} came about; they stay, since a blind test is "
            "never repeated by itself"
        )
    return lines


def _names(jobs: Collection[Any]) -> str:
    files = sorted({str(path) for job in jobs for path in job.output})
    more = len(files) - NAMED
    rest = f" and {more} other results" if more > 0 else ""
    return ", ".join(files[:NAMED]) + rest
