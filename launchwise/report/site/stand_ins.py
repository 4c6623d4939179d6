"""What stands where something is missing: studies that cannot be read, sections that fail, and the
front page before the report is done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import write_text
from launchwise.exporting.entries import named_answers, read_stored
from launchwise.learning.answers import MEASURED
from launchwise.report import wording
from launchwise.report.blocks import Fold, Notice, Page, Section, Text
from launchwise.report.fields import field, table_of
from launchwise.report.site.rendering import parts_of, render

log = logging.getLogger("launchwise")

FAILED = "notice"  # Role of the text that stands for a section which could not be made


@dataclass(frozen=True)
class MissingStudy:
    """A study of the settings whose tables cannot be read."""

    name: str
    title: str
    question: str
    reason: str  # which file, and what is wrong with it

    @property
    def section(self) -> Section:
        """Substitute for the study's answer."""
        text = (
            f"This study is not in the report: {self.reason}. Delete this file and run the "
            "workflow again (snakemake --cores all): it makes what is missing."
        )
        return Section(f"{self.name}-answer", self.title, [Text(text, FAILED)])

    @property
    def page(self) -> Page:
        path = f"{self.name}/index.html"
        return Page(path, "Answer", self.title, self.question, [self.section], self.name)


def made(
    name: str, title: str, make: Callable[..., Section | None], *args: object
) -> Section | None:
    """``make(*args)``; if that fails, a section of this id with the error. Raises UserError as
    ``make`` does: a mistake that the user can mend stops the report."""
    try:
        return make(*args)
    except UserError:
        raise
    except Exception as error:
        log.exception("section %s could not be made", name)
        text = (
            f"This section could not be made ({type(error).__name__}: {error}). The other "
            "sections stand; results/logs/report.log has the place."
        )
        return Section(name, title, [Text(text, FAILED)])


def failed(pages: Sequence[Page]) -> Iterator[tuple[Section | Fold, str]]:
    """Sections and folds of pages that could not be made, and the path of the page of each."""
    for page in pages:
        for part in parts_of(page.sections):
            if any(isinstance(block, Text) and block.role == FAILED for block in part.blocks):
                yield part, page.path


def notices(missing: Sequence[MissingStudy], broken: Sequence[Section | Fold]) -> list[Notice]:
    """Notices at the top of the front page."""
    found = []
    if missing:
        text = f"{wording.plural(len(missing), 'study', 'studies')} not in this report:"
        named = wording.listed(each.title for each in missing)
        found.append(Notice(f"{text} {named}.", f"#{missing[0].section.id}", "Why"))
    if broken:
        text = f"{wording.plural(len(broken), 'section')} could not be made:"
        named = wording.listed(f"“{each.title}”" for each in broken)
        found.append(Notice(f"{text} {named}.", f"#{broken[0].id}", "The first of them"))
    return found


SHOWN = 8  # Answers of a study that the page shows, evenly apart

LEAD = (
    "The run goes on: this page shows the first answers, of {studies}. The whole report takes its "
    "place. Ctrl-C keeps all that is done: the same command goes on from there."
)


def write_first_page(report: Path, archive: Path, answers: Path) -> bool:
    """Write a front page of the studies with answers if no report is there; whether it was written.
    ``archive`` is there once the report is complete, ``answers`` holds ``<study>.json``."""
    if archive.exists():
        return False
    read = {path.stem: named_answers(read_stored(path)) for path in sorted(answers.glob("*.json"))}
    known = {study: each for study, each in read.items() if each}
    if not known:
        return False
    sections = [_first_answers(study, each) for study, each in known.items()]
    lead = LEAD.format(studies=wording.plural(len(known), "study", "studies"))
    write_text(report, render("launchwise: first answers", lead, sections))
    return True


def _first_answers(study: str, answers: Sequence[Mapping[str, Any]]) -> Section:
    gpu = answers[0]["gpu"]
    own = [each for each in answers if each["gpu"] == gpu]
    step = max(1, len(own) // SHOWN)
    fields = [
        field("problem", lambda each: assigned(each["problem"])),
        field("configuration", _words),
        field("basis", lambda each: "measured" if each["basis"] == MEASURED else "expected"),
        field("time", "time_ms", wording.number, "ms"),
        field("speed-up", "gain", wording.number, "× usual choice"),
    ]
    count = f"{len(own)} of {len(answers)} answers are for it"
    caption = f"What to launch on {gpu}; {count}"
    return Section(study, study, [table_of(caption, fields, own[::step][:SHOWN])])


def _words(answer: Mapping[str, Any]) -> str:
    """The variant first: JSON sorts names."""
    variant, rest = answer["configuration"]["variant"], dict(answer["configuration"])
    return f"{variant} {assigned({name: rest[name] for name in rest if name != 'variant'})}".strip()
