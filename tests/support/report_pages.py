"""The pages of a small report as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from recomputing.pages import unpacked

from launchwise.gpus.datasheets import Datasheet
from launchwise.report.blocks import Page
from launchwise.report.site import assemble, writing
from launchwise.report.site.reading import MissingStudy, failed, notices
from launchwise.report.site.rendering import embedded, packed
from launchwise.report.study_tables import Run, StudyData

RUN = Run(
    "c" * 40,
    "2026-01-02T03:04:05+00:00",
    7,
    {"launchwise": "1.2", "numpy": "2"},
)


def pages(
    studies: Sequence[StudyData], cards: Mapping[str, Datasheet] = MappingProxyType({})
) -> list[Page]:
    """Every page of the report, the first page first."""
    report = assemble.Report(studies, RUN, cards)
    own = [page for study in studies for page in assemble.of_study(study)]
    said = notices((), [section for section, _ in failed(own)])
    return [assemble.front_page(report, said), assemble.gpus_page(report), *own]


def files_of(*studies: StudyData, missing: Sequence[MissingStudy] = ()) -> dict[str, str]:
    """Every file of the report's folder: path to text."""
    return writing.folder(assemble.Report(studies, RUN, missing=missing), 1)


def write(files: Mapping[str, str], folder: Path) -> Path:
    """Write files, path below the folder to text; the folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def repacked(script: str, change: Callable[[str], str]) -> str:
    """A data script of the pages whose JSON is changed, compact and with sorted keys."""
    head, _, tail = script.partition("] = ")
    text = embedded(unpacked(json.loads(tail.strip().removesuffix(";"))))
    return f"{head}] = {embedded(packed(change(text)))};\n"


def html_of(*studies: StudyData) -> dict[str, str]:
    """Every page: path to text."""
    return {path: text for path, text in files_of(*studies).items() if path.endswith(".html")}


def page_of(*studies: StudyData) -> str:
    """The text of every page, one after the other."""
    return "\n".join(html_of(*studies).values())


def visible(text: str) -> str:
    """A page without its scripts."""
    return re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


UNSEEN = r"(?s)<(script|style|noscript|title)\b.*?</\1>"
SUMMARY = r"(?s)<details(?![^>]*\bopen)[^>]*>\s*<summary[^>]*>([^<]*)</summary>"
FOLD = SUMMARY + "((?!<details).)*?</details>"  # closed, without another in it


def words(text: str) -> int:
    """Words of a page that a reader sees with all folds closed, before its scripts write any."""
    text, folds = re.sub(UNSEEN, " ", text), 1
    while folds:
        text, folds = re.subn(FOLD, r" \1 ", text)
    return len(re.sub(r"<[^>]*>", " ", text).split())
