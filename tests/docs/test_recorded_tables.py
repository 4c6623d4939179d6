"""Tables of ``data/README.md`` against the recorded sweeps."""

import re

import pandas as pd
import pytest
from samples import ROOT

from launchwise.workloads.spec import load_spec

HEADINGS = {
    "Acoustic stencil": "acoustic",
    "Tridiagonal systems": "tridiagonal",
    "Sentiment of reviews": "sentiment",
    "Regressions of a Granger test": "granger",
    "Products of experts": "expert_product",
}
STATUSES = ("ok", "slow", "unverified")
ROW = re.compile(
    r"^\| `([\w.]+)` \|(?: \d+ \|)?"  # GPU, its SMs
    r" ([\d ]+) \| (?:(\d+)|the same)[^|]*"  # rows, problems
    r" \| ([\d /]+) \| 0 \|$"  # rows by status, none of them wrong or failed
)


def stated(workload):
    """GPU to rows, problems (None: those of the row above) and rows by status, as documented."""
    text = (ROOT / "data" / "README.md").read_text()
    heading = next(name for name, each in HEADINGS.items() if each == workload)
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = {}
    for line in section.splitlines():
        if match := ROW.match(line):
            gpu, rows, problems, counts = match.groups()
            by_status = tuple(int(each.replace(" ", "")) for each in counts.split("/"))
            number = int(problems) if problems else None
            found[gpu] = int(rows.replace(" ", "")), number, by_status
    return found


@pytest.mark.parametrize("workload", HEADINGS.values())
def test_numbers_of_rows_are_those_of_the_files(workload):
    files = sorted((ROOT / "data" / "recorded").glob(f"*/{workload}.parquet"))
    problem_columns = load_spec(ROOT / "kernels" / workload).problem_columns
    documented = stated(workload)
    assert documented.keys() == {path.parent.name for path in files}
    for path in files:
        table = pd.read_parquet(path, columns=[*problem_columns, "status"])
        rows, problems, by_status = documented[path.parent.name]
        assert rows == len(table)
        assert problems in (None, len(table[problem_columns].drop_duplicates()))
        counts = table["status"].value_counts().to_dict()
        assert by_status == tuple(counts.get(name, 0) for name in STATUSES)[: len(by_status)]
        assert sum(by_status) == rows
