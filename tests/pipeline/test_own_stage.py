"""The stage that CONTRIBUTING adds: one rule file, one script, one line of the Snakefile."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
from samples import ROOT, copy_project

from launchwise.workloads.spec import Spec

MADE = "results/slowest/test/acoustic.json"


def test_a_stage_is_two_files_and_a_line(tmp_path: Path, acoustic_spec: Spec) -> None:
    project = copy_project(tmp_path / "project", acoustic_spec)
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"^```python\n# ((?:rules|scripts)/\S+)\n(.*?)^```", text, re.M | re.S)
    assert [name for name, _ in blocks] == ["rules/slowest.smk", "scripts/slowest.py"]
    for name, content in blocks:
        (project.folder / name).write_text(content)
    (line,) = re.findall(r'`(include: "rules/slowest.smk")`', text)
    snakefile = project.folder / "Snakefile"
    contents = snakefile.read_text()
    last = 'include: "rules/targets.smk"\n'
    assert last in contents
    snakefile.write_text(contents.replace(last, f"{last}{line}\n"))
    done = project.snakemake("--cores", "1", "--quiet", "all", "--", MADE)
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.folder / "results" / "sweeps" / "test" / "acoustic.parquet")
    assert json.loads((project.folder / MADE).read_text()) == {"time_ms": rows["time_ms"].max()}
