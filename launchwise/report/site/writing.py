"""The report's folder as text, every study in a process of its own.

A study's pages are rendered where they are made: handing their tables over takes longer than that.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from launchwise.base.literals import csv_table
from launchwise.base.storage import write_bytes
from launchwise.base.work import in_parallel
from launchwise.report import numbers, wording
from launchwise.report.answer import landscape
from launchwise.report.blocks import MISSING, File, Fold, Page, Section, Table
from launchwise.report.numbers import fixed_sets
from launchwise.report.pages import card_ratios, finder, gpu_comparison
from launchwise.report.site import assemble
from launchwise.report.site.assemble import Report
from launchwise.report.site.reading import failed, notices
from launchwise.report.site.rendering import (
    Frame,
    Link,
    assets,
    check_ids,
    embedded,
    every_block,
    packed,
    parts_of,
    render,
)
from launchwise.report.study_tables import CONFIGURATIONS, MODELS, Run, StudyData


class Part(NamedTuple):
    """Output of one process."""

    texts: dict[str, str]  # by path below the folder
    broken: Sequence[tuple[Section | Fold, str]] = ()  # that fail, with their page


def folder(report: Report, processes: int) -> dict[str, str]:
    """Every file of the folder: path below it to text; at most ``processes`` studies at once.
    Raises ValueError when two files have one path, or two sections of a study one id."""

    def made(study: StudyData | None) -> Part:
        return _overview(report) if study is None else _of_study(study, report)

    # What every process asks, asked once; the largest first: the last one to begin should be short.
    _ = report.sweeps
    ordered = sorted(report.studies, key=lambda study: -sum(map(len, study.sweeps.values())))
    parts = in_parallel(made, [*ordered, None], processes)
    texts: dict[str, str] = {}
    for part in parts:
        if twice := sorted(part.texts.keys() & texts):
            raise ValueError(f"pages share a path: {', '.join(twice)}")
        texts |= part.texts
    for each in report.missing:
        texts |= {each.page.path: html(each.page, report), **_tables(each.name, None)}
    if broken := [each for part in parts for each in part.broken]:
        front = assemble.front_page(report, notices(report.missing, [one for one, _ in broken]))
        places = {section.id: path for section, path in broken}
        texts[front.path] = html(front, report, places=places)
    return dict(sorted(texts.items()))


def _of_study(study: StudyData, report: Report) -> Part:
    titles = {one.name: one.settings.title for one in report.studies}
    own = assemble.of_study(study, report.run.settings_files, titles)
    check_ids([section for page in own for section in page.sections])
    texts = {page.path: html(page, report, own) for page in own} | _tables(study.name, study)
    texts |= files(own)
    if study.answers:
        known = finder.data(study, report.apart, report.sweeps)
        texts |= answer_files(study.name, known)
    compared = gpu_comparison.data(study, report.apart, report.cards)
    texts |= script(COMPARISON.format(study=study.name), compared)
    for gpu in study.gpus:
        path = landscape.FILE.format(study=study.name, gpu=gpu)
        texts |= script(path, landscape.data(study, gpu))
    return Part(texts, list(failed(own)))


def files(pages: Sequence[Page]) -> dict[str, str]:
    """Files that blocks of the pages lead to: path to text."""
    blocks = (block for page in pages for block in every_block(page.sections))
    return {
        block.path: block.content if isinstance(block.content, str) else csv_text(block.content)
        for block in blocks
        if isinstance(block, File) and block.content is not None
    }


def csv_text(table: Table) -> str:
    """A table as CSV: groups and units in its headings, second lines of cells in columns of their
    own. Columns without a value are left out."""
    columns: dict[str, list[str]] = {}
    for place, one in enumerate(table.columns):
        title = wording.with_unit(", ".join(filter(None, (one.group, one.title))), one.unit)
        cells = [row.cells[place] for row in table.rows]
        columns[title] = ["" if cell.text == MISSING else cell.text for cell in cells]
        columns[f"{title}, detail"] = [cell.detail for cell in cells]
    held = {name: texts for name, texts in columns.items() if any(texts) or not texts}
    # Narrow gaps between thousands are no part of a number.
    return csv_table(pd.DataFrame(held)).to_csv(index=False).replace("\u202f", "")


def _overview(report: Report) -> Part:
    pages = (assemble.front_page(report, notices(report.missing, [])), assemble.gpus_page(report))
    texts = {page.path: html(page, report) for page in pages} | files(pages) | assets()
    return Part(texts | {card_ratios.TABLE: card_ratios.csv_text(report.studies)})


def _tables(name: str, study: StudyData | None) -> dict[str, str]:
    """Main tables of a study as CSV: path to text. Those of a study that is not here are empty."""
    made = [pd.DataFrame()] * 2
    if study is not None:
        made = [model_summary(study), fixed_sets(study)]
    return {
        path.format(study=name): csv_table(table.dropna(axis=1, how="all")).to_csv(
            index=False, float_format="%.4g"
        )
        for path, table in zip((MODELS, CONFIGURATIONS), made, strict=True)
    }


DATA = "data/{study}.js"
"""Lookup data of a study: a script, since pages opened from files may fetch nothing."""

ENTRIES = "data/answers/{study}/{gpu}.js"
"""Answers of one GPU, which the lookup reads when they are asked for."""

COMPARISON = "data/{study}.gpus.js"  # Data of a study for the GPU comparison
OVERVIEW = "overview"  # Name of pages that are about all studies


def html(
    page: Page,
    report: Report,
    own: Sequence[Page] = (),
    places: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """One page as text. ``own`` are all pages of its study, ``places`` pages of further sections
    that it leads to."""
    pages = [
        one
        for name, others in report.outline.items()
        for one in (own if own and name == page.study else others)
    ]
    inside = {part.id: one.path for one in own for part in parts_of(one.sections)}
    frame = _frame(page, pages, {**report.places, **inside, **places}, report.run)
    return render(page.title, page.lead, page.sections, frame=frame, doi=page.doi)


def answer_files(study: str, data: Mapping[str, Any]) -> dict[str, str]:
    """Files of the lookup: path to text; ``data`` as :func:`.finder.data` gives it."""
    head = {name: part for name, part in data.items() if name not in ("entries", "judges")}
    found = script(DATA.format(study=study), head)
    of_gpu: dict[str, list[Any]] = {gpu: [] for gpu in data["gpus"]}
    for entry in data["entries"]:
        of_gpu[data["gpus"][entry[0]]].append(entry)
    for (gpu, entries), judge in zip(of_gpu.items(), data["judges"], strict=True):
        path = ENTRIES.format(study=study, gpu=gpu)
        found |= script(path, {"entries": entries, "judge": judge})
    return found


def script(path: str, value: Any) -> dict[str, str]:
    """A file that pages read as a script: its path below the folder, and its text."""
    text = embedded(packed(embedded(value)))
    return {path: f"(window.launchwiseData ??= {{}})[{embedded(path)}] = {text};\n"}


def _frame(page: Page, pages: Sequence[Page], places: Mapping[str, str], run: Run) -> Frame:
    first = {each.study: each for each in reversed(pages) if each.study}
    own = [each for each in pages if each.study and each.study == page.study]
    parts = [_link(page, each, each.name) for each in own]
    others = [each for each in own[1:] if each.path != page.path]
    parts += [
        Link(s.title, f"{page.root}{one.path}#{s.id}") for one in others for s in one.sections
    ]
    return Frame(
        root=page.root,
        pages=[_link(page, each, each.name) for each in pages if not each.study],
        studies=[
            _link(page, first[study], first[study].title)
            for study in dict.fromkeys(each.study for each in pages if each.study)
        ],
        parts=parts,
        name=page.study or OVERVIEW,
        citation=run.citation,
        bibtex=run.bibtex,
        places=places,
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
    for split, of_gpus in sorted(study.facts.get("splits", {}).items()):
        for gpu in of_gpus:
            found = numbers.scores_on(study, split, gpu).copy()
            for name in numbers.INTERVALS:
                ends = [pair or (np.nan, np.nan) for pair in found.pop(name)]
                found[[f"{name}_low", f"{name}_high"]] = np.reshape(ends, (-1, 2))
            found.insert(0, "split", split)
            found.insert(1, "gpu", gpu)
            parts.append(found)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
