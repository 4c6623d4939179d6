"""Writes the tables and pages of ``launchwise tune``.

pandas and what stands on it take a second or more to load: :func:`load` does that in a thread
while nvcc and the measuring process work.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

NICENESS = 10
"""Loading libraries must not take cores from nvcc."""


def load() -> None:
    """Load what :func:`write_tables` stands on, in a thread that gives way to other processes."""
    # To Linux, a thread has a priority of its own.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    import launchwise.measuring.extension
    import launchwise.measuring.sweep
    import launchwise.report.sweep_page  # noqa: F401


def write_tables(
    spec: Spec,
    gpu: str,
    fingerprint: str,
    journal: Path,
    problems: Sequence[Problem],
    method: dict[str, Any],
    paths: Mapping[str, Path],
) -> None:
    """Write the tables of a shard and of its sweep, and the answers.

    Parameters
    ----------
    journal
        Where the rows are; those of ``problems`` count.
    paths
        ``profile``, and what is written: ``shard``, ``sweep``, ``facts``, ``page``.

    Raises
    ------
    UserError
        When a file cannot be written or does not fit its schema.
    """
    from launchwise.measuring.extension import gather
    from launchwise.measuring.journal import counted_rows, read_journal, read_notes
    from launchwise.measuring.sweep import Measured, write_shard
    from launchwise.report.sweep_page import write_answers

    assert spec.folder is not None
    wanted = {tuple(problem[name] for name in spec.problem_columns) for problem in problems}
    # The file holds both attempts of a row that was measured again.
    rows = counted_rows(read_journal(journal)[1], spec.key_columns)
    own = [row for row in rows if tuple(row[name] for name in spec.problem_columns) in wanted]
    measured = Measured(fingerprint, own, read_notes(journal))
    write_shard(paths["shard"], measured, spec.folder, spec)
    gather(spec.folder, [paths["shard"]], None, method, paths["sweep"])
    write_answers(
        spec.folder, gpu, *(paths[name] for name in ("sweep", "profile", "facts", "page"))
    )
