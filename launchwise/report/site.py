"""The folder of pages: ways between them, and what they share."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from launchwise.base.storage import write_bytes
from launchwise.report import landscape_rows
from launchwise.report.blocks import Page
from launchwise.report.page import (
    Frame,
    Link,
    embedded,
    packed,
    render,
)

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
    """One page as text, without ways to other pages (:func:`launchwise.report.page.with_ways`).

    Parameters
    ----------
    pages
        Pages that it leads to; of those of other studies the first alone counts.
    citation
        How to cite the report.
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
