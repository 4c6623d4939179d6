"""Ways to read: files that CONTRIBUTING names exist, folders may be ignored, guides are listed."""

from __future__ import annotations

import re

from samples import ROOT

TASKS = ("Measure", "Learn", "Show")


def test_each_task_names_ten_files_to_read_and_folders_to_ignore() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for task in TASKS:
        part = text.partition(f"\n### {task}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
        files = re.findall(r"^\d+\. `([^`]+)`", part, re.M)
        assert [each for each in files if not (ROOT / each).is_file()] == []
        assert len({*files}) == len(files) == 10
        folders = re.findall(r"`([^`]+)/`", part.partition("\nIgnore ")[2])
        library = [f"launchwise/{each.removeprefix('launchwise/')}" for each in folders]
        assert [each for each in library if not (ROOT / each).is_dir()] == []
        assert len(library) > 3
        assert [
            each for each in files if each.startswith(tuple(f"{one}/" for one in library))
        ] == []


def test_the_index_lists_every_guide() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = {path.name for path in (ROOT / "docs" / "how-to").glob("*.md")}
    assert {*re.findall(r"\(how-to/(\w+\.md)\)", text)} == guides
