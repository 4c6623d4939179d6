"""The report's folder as text, every study in a process of its own.

A study's pages are rendered where they are made: handing their tables over takes longer than that.
Ways to pages of other studies are filled in at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from launchwise.base.literals import csv_table
from launchwise.base.parallel import in_parallel
from launchwise.gpus.datasheets import Datasheet
from launchwise.gpus.prices import Price
from launchwise.report import assemble, finder, gpu_comparison, landscape_rows, site
from launchwise.report.blocks import Page, Section
from launchwise.report.missing import MissingStudy, failed, notices
from launchwise.report.overview import Run
from launchwise.report.page import assets, every_section, with_ways
from launchwise.report.spread import Spread, spread
from launchwise.report.study import StudyData

MODELS = "{study}.models.csv"
"""Metrics per model and split, below the folder."""

CONFIGURATIONS = "{study}.configurations.csv"
"""Best fixed configuration per GPU, below the folder."""


@dataclass
class Part:
    """Output of one process."""

    texts: dict[str, str] = field(default_factory=dict)  # path to text, ways not filled in
    ids: dict[str, str] = field(default_factory=dict)  # section to the path of its page
    broken: list[Section] = field(default_factory=list)  # sections that could not be made
    rows: list[dict[str, Any]] = field(default_factory=list)  # in the table of all GPUs
    front: Page | None = None  # rendered by the last step


def folder(
    studies: Sequence[StudyData],
    run: Run,
    processes: int,
    cards: Mapping[str, Datasheet],
    prices: Mapping[str, Price],
    missing: Sequence[MissingStudy] = (),
) -> dict[str, str]:
    """Every file of the folder: path below it to text.

    Parameters
    ----------
    processes
        Largest number of studies at once.
    cards, prices, missing
        See :func:`launchwise.report.assemble.pages`.

    Raises
    ------
    ValueError
        When two pages have one path, or two sections one id.
    """
    apart = spread(studies)
    outline = assemble.outline(studies, missing)

    def made(study: StudyData | None) -> Part:
        if study is None:
            return _overview(studies, run, cards, prices, missing, apart, outline)
        return _of_study(study, run, cards, prices, apart, outline)

    # The largest first: the last one to begin should be short.
    ordered = sorted(studies, key=lambda study: -sum(map(len, study.sweeps.values())))
    parts = in_parallel(made, [*ordered, None], processes)
    front = next(part.front for part in parts if part.front is not None)
    broken = [section for part in parts for section in part.broken]
    if broken:
        said = notices(missing, broken)
        front = assemble.front_page(studies, run, missing, said, cards, prices)
    order = [study.name for study in studies]
    rows = sorted(
        (row for part in parts for row in part.rows), key=lambda row: order.index(row["study"])
    )
    lacking = Part({gpu_comparison.TABLE: gpu_comparison.csv_text(rows, prices)})
    pages = [page for own in outline.values() for page in own]
    for page in [front, *(each.page for each in missing)]:
        add(lacking, page, pages, run.citation)
    for each in missing:
        lacking.texts |= _tables(each.name, None)
    return joined([lacking, *parts])


def add(part: Part, page: Page, pages: Sequence[Page], citation: str) -> None:
    """Add a page, which leads to ``pages``, to a part."""
    part.texts[page.path] = site.html(page, pages, citation)
    part.ids |= {section.id: page.path for section in every_section(page.sections)}


def _of_study(
    study: StudyData,
    run: Run,
    cards: Mapping[str, Datasheet],
    prices: Mapping[str, Price],
    apart: Spread | None,
    outline: Mapping[str, Sequence[Page]],
) -> Part:
    own = assemble.of_study(study, apart)
    others = [page for name, pages in outline.items() if name != study.name for page in pages]
    # In the order of the settings, for the list of studies.
    order = list(outline)
    pages = sorted([*others, *own], key=lambda page: order.index(page.study))
    part = Part(
        broken=list(failed(own)),
        rows=gpu_comparison.csv_rows(study, cards, prices, apart),
    )
    for page in own:
        add(part, page, pages, run.citation)
    part.texts |= site.scripts(
        {study.name: finder.data(study)} if study.answers else {},
        {study.name: gpu_comparison.data(study, apart, cards)},
        {(study.name, gpu): landscape_rows.data(study, gpu) for gpu in study.gpus},
    )
    part.texts |= _tables(study.name, study)
    return part


def _overview(
    studies: Sequence[StudyData],
    run: Run,
    cards: Mapping[str, Datasheet],
    prices: Mapping[str, Price],
    missing: Sequence[MissingStudy],
    apart: Spread | None,
    outline: Mapping[str, Sequence[Page]],
) -> Part:
    """Pages and files of the whole report, the front page's sections included."""
    pages = [page for own in outline.values() for page in own]
    said = notices(missing, [])
    part = Part(front=assemble.front_page(studies, run, missing, said, cards, prices))
    for page in (
        assemble.gpus_page(studies, cards, prices, apart),
        assemble.health_page(studies, run, cards),
    ):
        add(part, page, pages, run.citation)
    part.texts |= assets()
    return part


def joined(parts: Sequence[Part]) -> dict[str, str]:
    """Every file of the parts, pages with ways to each other; see :func:`folder`."""
    texts: dict[str, str] = {}
    places: dict[str, str] = {}
    for part in parts:
        if twice := sorted(part.texts.keys() & texts):
            raise ValueError(f"pages share a path: {', '.join(twice)}")
        if twice := sorted(part.ids.keys() & places):
            raise ValueError(f"sections share an id: {', '.join(twice)}")
        texts |= part.texts
        places |= part.ids
    return {
        path: with_ways(text, places) if path.endswith(".html") else text
        for path, text in sorted(texts.items())
    }


def _tables(name: str, study: StudyData | None) -> dict[str, str]:
    """Main tables of a study as CSV: path to text. Those of a study that is not here are empty."""
    summaries = {
        MODELS: assemble.model_summary,
        CONFIGURATIONS: assemble.configuration_summary,
    }
    return {
        path.format(study=name): csv_table(
            pd.DataFrame() if study is None else summary(study)
        ).to_csv(index=False, float_format="%.5g")
        for path, summary in summaries.items()
    }
