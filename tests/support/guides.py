"""Workloads that pages of the documents show."""

from __future__ import annotations

import re
from pathlib import Path

from samples import ROOT


def shown_files(page: str) -> dict[str, str]:
    """Files that a page of ``docs/how-to`` shows, by their names."""
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    found = re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)```", text, re.MULTILINE | re.DOTALL)
    assert found, page
    return dict(found)


def from_guide(page: str, folder: Path) -> Path:
    """The workload whose files a page shows."""
    folder.mkdir()
    for name, content in shown_files(page).items():
        (folder / name).write_text(content)
    return folder
