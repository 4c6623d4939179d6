"""What ``launchwise tune`` is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Question:
    """Arguments of the command; see :func:`launchwise.cli.tune.command.tune`."""

    workload: str
    problem: Sequence[str]
    gpu: str
    device: str | None
    known: Sequence[Path]
    evaluations: int | None
    minutes: float | None
    within: float | None
    every: bool
    folder: Path | None
    cores: int
    dry_run: bool
