"""Compares what the command line names, prints it and writes its files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.base.places import shipped
from launchwise.base.storage import write_text
from launchwise.cli.compare.printing import as_text
from launchwise.comparing.files import as_json, csv_text
from launchwise.comparing.rows import Rule
from launchwise.comparing.sides import opened
from launchwise.comparing.sweep_comparison import COMMAND, DEFAULT, Complaint, compared, complaints
from launchwise.experiment.discovery import find_workloads
from launchwise.workloads.spec import Spec, load_spec

KNOWN_WORKLOADS = ("kernels", "data/public/workloads")
"""Folders of the repository whose workloads need no option."""

NOTHING = "none"
PRINTED = "-"
"""File of JSON that is printed."""


@dataclass(frozen=True)
class Question:
    """Arguments of the command; see :func:`launchwise.cli.compare.command.compare`."""

    old: str
    new: str
    # Shares, not percent.
    threshold: float
    confidence: float
    gpus: Sequence[str]
    only: Sequence[str]
    workloads: Sequence[Path]
    # Complaints that count, or ``none``; the usual ones where it is None.
    fail_on: Sequence[str] | None
    allow: float
    top: int
    json: str | None
    csv: Path | None


def answered(asked: Question, folder: Path) -> list[str]:
    """Compare, print and write; the lines that say what got worse.

    Parameters
    ----------
    folder
        A folder inside the repository of ``git:COMMIT``.

    Raises
    ------
    UserError
        When a side, a name or a file is wrong.
    """
    gpus, wanted = _gpus(asked.gpus), _wanted(asked.fail_on)
    rule = Rule(asked.threshold, asked.confidence)
    spec_of = _specs(asked.workloads)
    with opened(asked.old, folder) as old, opened(asked.new, folder) as new:
        comparison = compared(old, new, spec_of, rule, gpus, asked.only)
    worse = complaints(comparison, wanted, asked.allow)
    if asked.json is not None:
        text = json.dumps(as_json(comparison, worse), allow_nan=False)
        if asked.json == PRINTED:
            print(text)
        else:
            write_text(asked.json, text + "\n")
    if asked.csv is not None:
        write_text(asked.csv, csv_text(comparison))
    if asked.json != PRINTED:
        print("\n".join(as_text(comparison, worse, asked.top)))
    return worse


def _gpus(words: Sequence[str]) -> dict[str, str]:
    """GPU of OLD to that of NEW, from words ``OLD=NEW``."""
    found: dict[str, str] = {}
    for word in words:
        old, sign, new = word.partition("=")
        if not (old and sign and new):
            raise UserError(COMMAND, "--gpu", f"{word!r} is not OLD=NEW")
        if old in found or new in found.values():
            raise UserError(COMMAND, "--gpu", f"{word!r} names a GPU twice")
        found[old] = new
    return found


def _wanted(words: Sequence[str] | None) -> list[Complaint]:
    if words is None:
        return list(DEFAULT)
    if NOTHING in words and len(words) > 1:
        raise UserError(COMMAND, "--fail-on", f"{NOTHING} excludes all others")
    return [Complaint(word) for word in words if word != NOTHING]


def _specs(folders: Sequence[Path]) -> Callable[[str], Spec]:
    """Workload to its spec: of ``folders`` first, then of the repository."""
    for folder in folders:
        if not folder.is_dir():
            raise UserError(COMMAND, "--workloads", f"no folder {str(folder)!r}")
    known = find_workloads(shipped(name) for name in KNOWN_WORKLOADS if shipped(name).is_dir())
    known |= find_workloads(folders)

    @cache
    def spec_of(workload: str) -> Spec:
        if workload not in known:
            message = f"{unknown('workload', workload, known)}; --workloads names its folder"
            raise UserError(COMMAND, "", message)
        return load_spec(known[workload])

    return spec_of
