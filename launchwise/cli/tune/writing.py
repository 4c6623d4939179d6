"""Writes the tables and pages of ``launchwise tune``, in a process of its own.

pandas and what stands on it take a second or more to load. So :class:`Writer` starts this process
while nvcc and the measuring process work; it reads what to write when that is known.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT

NICENESS = 10
"""Loading libraries must not take cores from nvcc."""


class Writer:
    """The process, as its parent holds it; it ends with the block."""

    def __enter__(self) -> Writer:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "launchwise.cli.tune.writing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            # A Ctrl-C is for its parent, which ends it.
            start_new_session=True,
        )
        return self

    def __exit__(self, *error: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        # A job that was not sent has no reader any more.
        self._process.communicate()

    def write(self, **job: Any) -> None:
        """Write what :func:`write` does, and wait for it.

        Raises
        ------
        UserError
            When a file cannot be written or does not fit its schema.
        """
        said, _ = self._process.communicate(json.dumps(job) + "\n")
        if self._process.returncode:
            raise RuntimeError("the process that writes tables has died; its message is above")
        if error := json.loads(said)["error"]:
            raise UserError(*error)


def write(
    folder: str,
    gpu: str,
    fingerprint: str,
    journal: str,
    problems: list[dict[str, Any]],
    method: dict[str, Any],
    paths: dict[str, str],
) -> None:
    """Write the tables of a shard and of its sweep, and the answers.

    Parameters
    ----------
    folder
        The workload's folder.
    journal
        Where the rows are; those of ``problems`` count.
    paths
        ``profile``, and what is written: ``shard``, ``sweep``, ``facts``, ``page``.
    """
    from launchwise.measuring.extension import gather
    from launchwise.measuring.journal import counted_rows, read_journal, read_notes
    from launchwise.measuring.visit import Measured, write_shard
    from launchwise.report.answer_files import write_answers
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    wanted = {tuple(problem[name] for name in spec.problem_columns) for problem in problems}
    # The file holds both attempts of a row that was measured again.
    rows = counted_rows(read_journal(Path(journal))[1], spec.key_columns)
    own = [row for row in rows if tuple(row[name] for name in spec.problem_columns) in wanted]
    measured = Measured(fingerprint, own, read_notes(Path(journal)))
    write_shard(Path(paths["shard"]), measured, Path(folder), spec)
    gather(Path(folder), [paths["shard"]], None, method, paths["sweep"])
    write_answers(
        Path(folder), gpu, *(paths[name] for name in ("sweep", "profile", "facts", "page"))
    )


def main() -> None:
    """Load everything, then write what standard input asks."""
    os.nice(NICENESS)
    import pandera.backends.pandas.builtin_checks  # noqa: F401

    import launchwise.measuring.extension
    import launchwise.measuring.visit
    import launchwise.report.answer_files  # noqa: F401

    line = sys.stdin.readline()
    if not line:
        return
    error = None
    try:
        write(**json.loads(line))
    except UserError as mistake:
        error = [mistake.where, mistake.key, mistake.message]
    print(json.dumps({"error": error}), flush=True)


if __name__ == "__main__":
    main()
