"""The stage that CONTRIBUTING adds: one rule file, one script, one line of the Snakefile."""

from __future__ import annotations

import json
import re

import pandas as pd
from samples import ROOT, Project

MADE = "results/longest_time/test/stencil.json"


def test_a_stage_is_two_files_and_a_line(project: Project) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"^```python\n# ((?:rules|scripts)/\S+)\n(.*?)^```", text, re.M | re.S)
    assert [name for name, _ in blocks] == ["rules/longest_time.smk", "scripts/longest_time.py"]
    for name, content in blocks:
        (project.folder / name).write_text(content)
    (line,) = re.findall(r'`(include: "rules/longest_time.smk")`', text)
    snakefile = project.folder / "Snakefile"
    contents = snakefile.read_text()
    last = 'include: "rules/targets.smk"\n'
    assert last in contents
    snakefile.write_text(contents.replace(last, f"{last}{line}\n"))
    done = project.snakemake("--cores", "1", "--quiet", "all", "--", MADE)
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.folder / "results" / "sweeps" / "test" / "stencil.parquet")
    assert json.loads((project.folder / MADE).read_text()) == {"time_ms": rows["time_ms"].max()}
