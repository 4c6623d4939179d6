"""The report's folder as text, every study in a process of its own.

A study's pages are rendered where they are made: handing their tables over takes longer than that.
Ways to pages of other studies are filled in at the end.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from launchwise.base.literals import csv_table
from launchwise.base.parallel import in_parallel
from launchwise.base.storage import write_bytes
from launchwise.report import scores
from launchwise.report.answer import landscape_rows
from launchwise.report.blocks import Page, Section
from launchwise.report.front import finder
from launchwise.report.gpus import gpu_comparison
from launchwise.report.numbers import single_best
from launchwise.report.site import assemble
from launchwise.report.site.assemble import Report
from launchwise.report.site.rendering import (
    Frame,
    Link,
    assets,
    embedded,
    every_section,
    packed,
    render,
    with_ways,
)
from launchwise.report.site.stand_ins import failed, notices
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


def folder(report: Report, processes: int) -> dict[str, str]:
    """Every file of the folder: path below it to text; at most ``processes`` studies at once.

    Raises
    ------
    ValueError
        When two pages have one path, or two sections one id.
    """
    studies, missing = report.studies, report.missing
    pages = [page for own in report.outline.values() for page in own]

    def made(study: StudyData | None) -> Part:
        return _overview(report) if study is None else _of_study(study, report)

    # The largest first: the last one to begin should be short.
    ordered = sorted(studies, key=lambda study: -sum(map(len, study.sweeps.values())))
    parts = in_parallel(made, [*ordered, None], processes)
    front = next(part.front for part in parts if part.front is not None)
    if broken := [section for part in parts for section in part.broken]:
        front = assemble.front_page(report, notices(missing, broken))
    order = [study.name for study in studies]
    rows = sorted(
        (row for part in parts for row in part.rows), key=lambda row: order.index(row["study"])
    )
    lacking = Part({gpu_comparison.TABLE: gpu_comparison.csv_text(rows, report.prices)})
    for page in [front, *(each.page for each in missing)]:
        add(lacking, page, pages, report.run.citation)
    for each in missing:
        lacking.texts |= _tables(each.name, None)
    return joined([lacking, *parts])


def add(part: Part, page: Page, pages: Sequence[Page], citation: str) -> None:
    """Add a page, which leads to ``pages``, to a part."""
    part.texts[page.path] = html(page, pages, citation)
    part.ids |= {section.id: page.path for section in every_section(page.sections)}


def _of_study(study: StudyData, report: Report) -> Part:
    own = assemble.of_study(study)
    pages = [
        page
        for name, others in report.outline.items()
        for page in (own if name == study.name else others)
    ]
    cards, apart = report.cards, report.apart
    rows = gpu_comparison.csv_rows(study, cards, report.prices, apart)
    part = Part(broken=list(failed(own)), rows=rows)
    for page in own:
        add(part, page, pages, report.run.citation)
    part.texts |= scripts(
        {study.name: finder.data(study)} if study.answers else {},
        {study.name: gpu_comparison.data(study, apart, cards)},
        {(study.name, gpu): landscape_rows.data(study, gpu) for gpu in study.gpus},
    )
    part.texts |= _tables(study.name, study)
    return part


def _overview(report: Report) -> Part:
    """Pages and files of the whole report, the front page's sections included."""
    pages = [page for own in report.outline.values() for page in own]
    part = Part(front=assemble.front_page(report, notices(report.missing, [])))
    for page in (assemble.gpus_page(report), assemble.health_page(report)):
        add(part, page, pages, report.run.citation)
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
        MODELS: model_summary,
        CONFIGURATIONS: configuration_summary,
    }
    return {
        path.format(study=name): csv_table(
            pd.DataFrame() if study is None else summary(study)
        ).to_csv(index=False, float_format="%.5g")
        for path, summary in summaries.items()
    }


DATA = "data/{study}.js"
"""Lookup data of a study: a script, since pages opened from files may fetch nothing."""

ENTRIES = "data/answers/{study}/{gpu}.js"
"""Answers of one GPU, which the lookup reads when they are asked for."""

COMPARISON = "data/{study}.gpus.js"
"""Data of a study for the GPU comparison."""

FAST = 6
"""Level of deflating answers and rows: 9 takes three times as long for 1 % less."""

OVERVIEW = "overview"
"""Name of pages that are about all studies."""


def html(page: Page, pages: Sequence[Page], citation: str) -> str:
    """One page as text, without ways to other pages (:func:`.rendering.with_ways`).

    Of ``pages``, which it leads to, those of other studies have their first alone.
    """
    frame = _frame(page, pages, citation)
    return render(page.title, page.lead, page.sections, frame=frame, doi=page.doi)


def scripts(
    answers: Mapping[str, Any], comparisons: Mapping[str, Any], rows: Mapping[tuple[str, str], Any]
) -> dict[str, str]:
    """Data files of the pages' scripts: path below the folder to text.

    Of each study, or study and GPU, what the functions ``data`` return: of ``finder``,
    ``gpu_comparison`` and ``landscape_rows``.
    """
    found: dict[str, str] = {}
    for study, value in answers.items():
        head = {name: part for name, part in value.items() if name != "entries"}
        found[DATA.format(study=study)] = _script("launchwiseAnswers", study, head)
        of_gpu: dict[str, list[Any]] = {gpu: [] for gpu in value["gpus"]}
        for entry in value["entries"]:
            of_gpu[value["gpus"][entry[0]]].append(entry)
        for gpu, entries in of_gpu.items():
            path = ENTRIES.format(study=study, gpu=gpu)
            name = f"{study}/{gpu}"
            found[path] = _script("launchwiseEntries", name, packed(embedded(entries), FAST))
    for study, value in comparisons.items():
        path = COMPARISON.format(study=study)
        found[path] = _script("launchwiseComparisons", study, value)
    for (study, gpu), value in rows.items():
        path = landscape_rows.FILE.format(study=study, gpu=gpu)
        found[path] = _script("launchwiseRows", f"{study}/{gpu}", packed(embedded(value), FAST))
    return found


def _script(name: str, study: str, value: Any) -> str:
    return f"(window.{name} ??= {{}})[{embedded(study)}] = {embedded(value)};\n"


def _frame(page: Page, pages: Sequence[Page], citation: str) -> Frame:
    first = {each.study: each for each in reversed(pages) if each.study}
    own = [each for each in pages if each.study and each.study == page.study]
    return Frame(
        root=page.root,
        pages=[_link(page, each, each.name) for each in pages if not each.study],
        studies=[
            _link(page, first[study], first[study].title)
            for study in dict.fromkeys(each.study for each in pages if each.study)
        ],
        parts=[_link(page, each, each.name) for each in own],
        name=page.study or OVERVIEW,
        citation=citation,
    )


def _link(page: Page, other: Page, name: str) -> Link:
    return Link(name, f"{page.root}{PurePosixPath(other.path)}", page.path == other.path)


def pack(folder: Path, names: Iterable[str], archive: Path) -> None:
    """Write files of a folder as one zip, in order, the same bytes for the same files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(set(names)):
            info = zipfile.ZipInfo(f"{folder.name}/{name}")
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            packed.writestr(info, (folder / name).read_bytes())
    write_bytes(archive, made.getvalue())


def model_summary(study: StudyData) -> pd.DataFrame:
    """The model tables of every split as one table, for ``<study>.models.csv``."""
    parts = []
    for split in sorted(study.facts.get("splits", {})):
        found = scores.score_table(study, split, scores.ALL_GPUS)
        found.insert(0, "split", split)
        parts.append(found)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def configuration_summary(study: StudyData) -> pd.DataFrame:
    """Best fixed configuration per GPU and kind of problem, for ``<study>.configurations.csv``."""
    return single_best(study, ["gpu", *study.kinds])
