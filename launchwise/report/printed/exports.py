"""Every figure and table of some pages as files, and a list that the pages read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.storage import write_text
from launchwise.report.blocks import Drawing, Figure, Page, Table
from launchwise.report.page import embedded, every_block
from launchwise.report.printed import drawings, figures, tables

LIST = "list.js"
"""A script, since pages opened from files may fetch nothing."""

CITATION = "CITATION.txt"


def export(pages: Sequence[Page], name: str, folder: Path, citation: str) -> dict[str, Any]:
    """Write figures as SVG and PDF, tables as CSV and Parquet.

    Parameters
    ----------
    name
        What the pages call the folder (see :data:`launchwise.report.site.EXPORTS`).
    folder
        Gets ``figures/``, ``tables/``, the list and the citation.
    citation
        How to cite them.

    Returns
    -------
    dict
        Path of a page to its figures and tables in order: ``caption`` and ``files``.
    """
    for part in ("figures", "tables"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    taken: set[str] = set()
    listed = {
        page.path: [
            {"caption": caption, "files": [str(path.relative_to(folder)) for path in files]}
            for caption, files in _of_page(page, folder, citation, taken)
        ]
        for page in pages
    }
    write_text(folder / CITATION, f"{citation}\n")
    write_text(folder / LIST, _script(name, listed))
    return listed


def _of_page(
    page: Page, folder: Path, citation: str, taken: set[str]
) -> Iterator[tuple[str, list[Path]]]:
    for block in every_block(page.sections):
        if isinstance(block, Figure):
            stem = folder / "figures" / _new(block.id, taken)
            yield block.caption, figures.save(block, stem, citation)
        elif isinstance(block, Drawing):
            stem = folder / "figures" / _new(block.id, taken)
            yield block.caption, drawings.save(block, stem, citation)
        elif isinstance(block, Table):
            stem = folder / "tables" / _new(block.caption, taken)
            yield block.caption, tables.save(block, stem, citation)


def _new(words: str, taken: set[str]) -> str:
    """A name of a file that none before it has, in lower case."""
    plain = re.sub(r"[^a-z0-9_.]+", "-", words.lower()).strip("-.")[:80]
    name = plain
    number = 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name)
    return name


def _script(name: str, listed: Mapping[str, Any]) -> str:
    return f"(window.launchwiseExports ??= {{}})[{embedded(name)}] = {embedded(listed)};\n"
