"""Each attack that the page on safety lists is a test."""

from __future__ import annotations

import re

from samples import ROOT


def test_every_row_of_the_page_names_a_test() -> None:
    page = (ROOT / "docs" / "explanation" / "safety.md").read_text(encoding="utf-8")
    # Those on the size of files stand together in one test, which the text names.
    page, _, _ = page.partition("## Reading is bounded")
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    named = [re.findall(r"`(test_\w+)` \|$", row) for row in rows]
    assert len(named) >= 20
    assert all(len(each) == 1 for each in named)
    tests = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    known = set(re.findall(r"^def (test_\w+)\(", tests, re.MULTILINE))
    assert {each[0] for each in named} <= known
