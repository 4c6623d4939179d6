"""Pages of the site that lie outside ``docs/``, and the links between both.

The READMEs of the workloads, of the data and of the benchmarks stay where GitHub and an editor show
them. Links in every page are written relative to the file that holds them; here they are mapped to
pages of the site. A link to a file that is no page, such as a ``.cu`` file, becomes plain text.
"""

from __future__ import annotations

import logging
import os.path
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.launchwise")

ROOT = Path(__file__).resolve().parent.parent

PAGES = {
    "kernels/acoustic/README.md": "workloads/acoustic.md",
    "kernels/granger/README.md": "workloads/granger.md",
    "kernels/expert_product/README.md": "workloads/expert_product.md",
    "kernels/sentiment/README.md": "workloads/sentiment.md",
    "kernels/tridiagonal/README.md": "workloads/tridiagonal.md",
    "data/README.md": "project/data.md",
    "data/public/README.md": "project/public_data.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""File of the repository -> page of the site."""

SOURCES = {page: file for file, page in PAGES.items()}

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
"""A link of Markdown, no picture."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of :data:`PAGES`."""
    for file, page in PAGES.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Map the links of a page."""
    uri = page.file.src_uri
    source = SOURCES.get(uri, f"docs/{uri}")

    def mapped(link: re.Match[str]) -> str:
        text, target, anchor = link["text"], link["target"], link["anchor"] or ""
        if not target or "://" in target or target.startswith("mailto:"):
            return link[0]
        path = os.path.normpath(PurePosixPath(source).parent / target)
        if path.startswith(".."):
            log.warning("%s: %r leads out of the repository", source, target)
            return text
        if not (ROOT / path).exists():
            log.warning("%s: no file %r", source, path)
            return text
        if path.endswith(".md") and path.startswith("docs/"):
            wanted = path.removeprefix("docs/")
        elif path in PAGES:
            wanted = PAGES[path]
        else:
            return text
        return f"[{text}]({os.path.relpath(wanted, PurePosixPath(uri).parent)}{anchor})"

    return LINK.sub(mapped, markdown)
