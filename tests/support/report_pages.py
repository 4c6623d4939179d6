"""The pages of a small report as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from launchwise.gpus.datasheets import Datasheet
from launchwise.report.answer import landscape_rows
from launchwise.report.blocks import Page
from launchwise.report.front import finder
from launchwise.report.gpus import gpu_comparison
from launchwise.report.site import assemble, writing
from launchwise.report.site.rendering import assets
from launchwise.report.site.stand_ins import MissingStudy, failed, notices
from launchwise.report.study import Run, StudyData

RUN = Run("c" * 40, "2026-01-02T03:04:05+00:00", "0011223344556677", 7, {"numpy": "2"})


def pages(
    studies: Sequence[StudyData],
    missing: Sequence[MissingStudy] = (),
    cards: Mapping[str, Datasheet] = MappingProxyType({}),
) -> list[Page]:
    """Every page of the report, the first page first."""
    report = assemble.Report(studies, RUN, cards, missing=missing)
    own = [page for study in studies for page in assemble.of_study(study)]
    said = notices(missing, list(failed(own)))
    return [
        assemble.front_page(report, said),
        assemble.gpus_page(report),
        assemble.health_page(report),
        *own,
        *(each.page for each in missing),
    ]


def folder_of(
    made: Sequence[Page],
    answers: Mapping[str, Any] | None = None,
    comparisons: Mapping[str, Any] | None = None,
    rows: Mapping[tuple[str, str], Any] | None = None,
) -> dict[str, str]:
    """Every file of a folder of these pages: path to text, the pages first and in their order."""
    shared = {**writing.scripts(answers or {}, comparisons or {}, rows or {}), **assets()}
    parts = [writing.Part(shared)]
    for page in made:
        parts.append(writing.Part())
        writing.add(parts[-1], page, made, RUN.citation)
    found = writing.joined(parts)
    return {page.path: found[page.path] for page in made} | found


def files_of(*studies: StudyData) -> dict[str, str]:
    """Every file of the report's folder: path to text."""
    answers = {study.name: finder.data(study) for study in studies if study.answers}
    comparisons = {study.name: gpu_comparison.data(study, None) for study in studies}
    rows = {
        (study.name, gpu): landscape_rows.data(study, gpu)
        for study in studies
        for gpu in study.gpus
    }
    found = folder_of(pages(studies), answers, comparisons, rows)
    lines = [row for study in studies for row in gpu_comparison.csv_rows(study, {}, {}, None)]
    return {**found, gpu_comparison.TABLE: gpu_comparison.csv_text(lines, {})}


def html_of(*studies: StudyData) -> dict[str, str]:
    """Every page: path to text."""
    return {path: text for path, text in files_of(*studies).items() if path.endswith(".html")}


def page_of(*studies: StudyData) -> str:
    """The text of every page, one after the other."""
    return "\n".join(html_of(*studies).values())


def visible(text: str) -> str:
    """A page without its scripts."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
