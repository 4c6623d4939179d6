"""Counted work of a job: what it read, fitted and asked, without the noise of seconds.

Rows times trees are counted where models are fitted and asked, files and rows where tables are
read. A job's counts stand beside its log; ``benchmarks/budget.py`` adds them up.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from launchwise.base.storage import write_json

FITTED = "row_trees_fitted"
ASKED = "row_trees_asked"
FILES_READ = "files_read"
ROWS_READ = "rows_read"

COUNTED = (FITTED, ASKED, FILES_READ, ROWS_READ)  # What is counted

LOGS, FOLDER = Path("results/logs"), Path("results/work")

_counts: Counter[str] = Counter()


def count(what: str, amount: int) -> None:
    """Add to one of :data:`COUNTED`."""
    _counts[what] += int(amount)


def counted() -> Counter[str]:
    """What this process counted so far."""
    return Counter(_counts)


def add(other: Counter[str]) -> None:
    """Add what another process counted."""
    _counts.update(other)


def write(log: str, started: float, before: Counter[str]) -> None:
    """Write what a job counted beside its log file, below ``results/logs``; ``started``,
    ``before``: :func:`time.monotonic` and :func:`counted` at its start."""
    path = Path(log)
    if not path.is_relative_to(LOGS):
        return
    target = FOLDER / path.relative_to(LOGS).with_suffix(".json")
    found: dict[str, Any] = {name: _counts[name] - before[name] for name in COUNTED}
    # Of this process and of those that it started and waited for.
    core_s, wall_s = sum(os.times()[:4]), time.monotonic() - started
    write_json(target, {**found, "core_s": round(core_s, 3), "wall_s": round(wall_s, 3)})
