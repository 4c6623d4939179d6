"""Elements of a study's paper, and their place in the project."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.experiment.published import Element, check_places, read_elements
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Section, Text
from launchwise.report.fields import field, printed, table_of
from launchwise.report.study import StudyData

log = logging.getLogger("launchwise")


def elements(study: StudyData, others: Sequence[Section]) -> Section | None:
    """The list of elements of the study's paper; None where the study has none.

    Places among the sections ``others`` are named by their titles.

    Raises
    ------
    UserError
        When the list cannot be read, or an element has neither a place nor a reason.
    """
    found = read_elements(study.folder) if study.folder else []
    if not study.folder or not found:
        return None
    try:
        check_places(study.folder)
    except UserError as error:
        log.warning("%s", error)  # A copy of the project may lack its documents.
    # The study's answer stands at the beginning of the page.
    titles = {f"{study.name}-answer": "Answers"}
    titles |= {one.id: one.title for one in others}

    def places(element: Element) -> str:
        """Sections by title, files by name; a section that is not on this page by its id."""
        named = [f"“{titles.get(one, one)}”" for one in element.sections(study.name)]
        named += [Path(name).name for name in element.files]
        return wording.listed(dict.fromkeys(named)) if named else MISSING

    def link(element: Element) -> str:
        return next((f"#{one}" for one in element.sections(study.name) if one in titles), "")

    fields = [
        field("element", "element"),
        field("in the paper", "where"),
        field("here", places, link=link),
        field("difference or reason", "reason", printed, number=False),
    ]
    listed = table_of("Elements of the paper, in its order", fields, found, "words")
    blocks: list[Block] = [Text(_lead(found)), Fold("Every element", [listed])]
    return Section(f"{study.name}-elements", "Everything in the paper, and where it is", blocks)


def _lead(found: Sequence[Element]) -> str:
    placed = [element for element in found if element.is_here]
    different = [element for element in placed if element.reason]
    lead = (
        f"The table has {wording.plural(len(found), 'element', 'elements')} of the paper, such as "
        f"problems, variants, models, tables and claims. {_are(len(placed))} here, "
        f"{len(different)} of them with a difference that the table names."
    )
    if missing := len(found) - len(placed):
        lead += f" {_are(missing)} not here, for the reason in the table."
    return lead


def _are(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"
