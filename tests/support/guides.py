"""Workloads that pages of the documents show."""

from __future__ import annotations

import re
from pathlib import Path

from samples import ROOT


def from_guide(page: str, folder: Path) -> Path:
    """The workload whose files a page of ``docs/how-to`` shows, each under its name."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    files = re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    assert files, page
    folder.mkdir()
    for name, content in files:
        (folder / name).write_text(content)
    return folder
