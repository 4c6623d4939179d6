"""Sections that a study brings along: ``section.py`` in its folder, and elements of its paper.

``section.py`` defines ``sections(study, published)``: a :class:`~launchwise.report.study.StudyData`
and the tables of the folder's ``published/*.csv`` in, a list of
:class:`~launchwise.report.blocks.Section` out. Their ids begin with the study's name and a hyphen.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.experiment.published import Element, check_places, read_elements, read_tables
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Fold, Section, Text
from launchwise.report.fields import field, printed, table_of
from launchwise.report.site.rendering import check_sections, parts_of
from launchwise.report.study import StudyData
from launchwise.workloads.declared.own_functions import import_from, own_error

log = logging.getLogger("launchwise")

SECTION_FILE = "section.py"

FAILED = "The section that this study brings along could not be made."


def own_sections(study: StudyData, others: Sequence[Section] = ()) -> list[Section]:
    """Sections of the study's ``section.py``; if it fails, a section with the reason. No id of
    ``others``, the sections that every study has, may be used again. Raises UserError when a
    published table of the study cannot be read."""
    if study.folder is None or not (study.folder / SECTION_FILE).is_file():
        return []
    published = read_tables(study.folder)
    workload = study.folder.parents[1]
    path = study.folder / SECTION_FILE
    try:
        module = import_from(workload, f"studies.{study.folder.name}.section")
        if not callable(getattr(module, "sections", None)):
            raise UserError(path, "", "must define sections(study, published)")
        made = list(module.sections(study, published))
        _check(study, made, others)
        return made
    except UserError as error:
        failure = error
    except Exception as error:
        failure = own_error(workload, error)
    log.warning("%s", failure)
    text = f"{FAILED} {failure}"
    return [Section(f"{study.name}-own", "This study's own section", [Text(text, "note")])]


def _check(study: StudyData, made: list[Section], others: Sequence[Section]) -> None:
    path = study.folder / SECTION_FILE if study.folder else SECTION_FILE
    if strange := [one for one in made if not isinstance(one, Section)]:
        message = f"sections() must return Section objects, not {type(strange[0]).__name__}"
        raise UserError(path, "", message)
    for one in made:
        if not one.id.startswith(f"{study.name}-"):
            raise UserError(path, one.id, f"the id of a section must begin with {study.name}-")
    try:
        check_sections(made, others)
    except Exception as error:
        raise UserError(path, "", f"its sections cannot be shown: {error}") from error


def elements(study: StudyData, others: Sequence[Section]) -> Section | None:
    """The list of elements of the study's paper; None where the study has none. Places among the
    sections ``others`` are named by their titles. Raises UserError when the list cannot be read, or
    an element has neither a place nor a reason."""
    found = read_elements(study.folder) if study.folder else []
    if not study.folder or not found:
        return None
    try:
        check_places(study.folder)
    except UserError as error:
        log.warning("%s", error)  # A copy of the project may lack its documents.
    # The study's answer stands at the beginning of the page.
    titles = {f"{study.name}-answer": "Answers"}
    titles |= {one.id: one.title for one in parts_of(others)}

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
    title = "Everything in the paper, and where it is"
    return Section(f"{study.name}-elements", title, [Fold("Every element", [listed])])
