"""The list of files under ``results/`` names every kind that a rule writes."""

from __future__ import annotations

import re

from samples import ROOT


def test_every_kind_of_result_is_listed() -> None:
    planned = [*(ROOT / "rules").glob("*.smk"), *(ROOT / "launchwise/workflow").glob("*.py")]
    named = "\n".join(path.read_text() for path in planned)
    kinds = set(re.findall(r"""["']results/(\w+)[/"']""", named))
    assert {"times", "pairs", "lookup"} <= kinds
    listed = (ROOT / "docs/reference/results.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)/", listed, re.M))
    assert kinds - {"results"} <= rows
