"""A front page before the report is done: the answers of the studies that have some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.names import assigned
from launchwise.base.storage import read_sealed_json, write_text
from launchwise.learning.answers import MEASURED
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Section
from launchwise.report.fields import field, table_of
from launchwise.report.page import render

SHOWN = 8
"""Answers of a study that the page shows, evenly apart."""

LEAD = (
    "The run goes on: this page shows the first answers, of {studies}. The whole report takes its "
    "place. Ctrl-C keeps all that is done: the same command goes on from there."
)


def write_first_page(report: Path, archive: Path, answers: Path) -> bool:
    """Write a front page of the studies that have answers, where no report is there yet.

    Parameters
    ----------
    report
        The front page of the report.
    archive
        File that is there once the report is complete.
    answers
        Folder with a file of answers for each study that has some (``<study>.json``).

    Returns
    -------
    bool
        Whether it was written.
    """
    if archive.exists():
        return False
    read = {path.stem: read_sealed_json(path, "answers") for path in sorted(answers.glob("*.json"))}
    known = {study: each["answers"] for study, each in read.items() if each["answers"]}
    if not known:
        return False
    sections = [_section(study, each) for study, each in known.items()]
    lead = LEAD.format(studies=wording.plural(len(known), "study", "studies"))
    write_text(report, render("launchwise: first answers", lead, sections))
    return True


def _section(study: str, answers: Sequence[Mapping[str, Any]]) -> Section:
    gpu = answers[0]["gpu"]
    own = [each for each in answers if each["gpu"] == gpu]
    step = max(1, len(own) // SHOWN)
    fields = [
        field("problem", lambda each: assigned(each["problem"])),
        field("configuration", _configuration),
        field("basis", lambda each: "measured" if each["basis"] == MEASURED else "expected"),
        field("time", "time_ms", _figures, "ms", number=True),
        field("speed-up", "gain", _figures, "× usual choice", number=True),
    ]
    count = f"{len(own)} of {len(answers)} answers are for it"
    caption = f"What to launch on {gpu}; {count}"
    return Section(study, study, [table_of(caption, fields, own[::step][:SHOWN])])


def _configuration(answer: Mapping[str, Any]) -> str:
    """The variant first: JSON sorts names."""
    variant, rest = answer["configuration"]["variant"], dict(answer["configuration"])
    return f"{variant} {assigned({name: rest[name] for name in rest if name != 'variant'})}".strip()


def _figures(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}"
