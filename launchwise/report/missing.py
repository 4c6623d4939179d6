"""Substitutes for missing parts: studies that cannot be read, sections that fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from launchwise.base.errors import UserError
from launchwise.report import wording
from launchwise.report.blocks import Notice, Page, Section, Text
from launchwise.report.page import every_section

log = logging.getLogger("launchwise")

FAILED = "notice"
"""Role of the text that stands for a section which could not be made."""


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
            f"This study is not in the report: {self.reason}. Run the workflow for it "
            f"(snakemake -c2 evaluate_{self.name}); its logs in results/logs say what failed."
        )
        return Section(f"{self.name}-answer", self.title, [Text(text, FAILED)])

    @property
    def page(self) -> Page:
        """The page of the study."""
        path = f"{self.name}/index.html"
        return Page(path, "Answer", self.title, self.question, [self.section], self.name)

    @property
    def row(self) -> dict[str, str]:
        """Its row among the studies of the front page."""
        named = {"name": "", "title": self.title, "link": f"#{self.section.id}"}
        return {**named, "question": self.question, "gpus": "", "rows": "not in this report"}


def made(
    name: str, title: str, make: Callable[..., Section | None], *args: object
) -> Section | None:
    """``make(*args)``; if that fails, a section of this id with the error.

    Raises
    ------
    UserError
        As ``make`` does: a mistake that the user can mend stops the report.
    """
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


def failed(pages: Sequence[Page]) -> Iterator[Section]:
    """Sections of pages that could not be made."""
    for page in pages:
        for section in every_section(page.sections):
            if any(isinstance(block, Text) and block.role == FAILED for block in section.blocks):
                yield section


def notices(missing: Sequence[MissingStudy], broken: Sequence[Section]) -> list[Notice]:
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
