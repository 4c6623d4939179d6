"""A stranger's workload outside the project: found, learnt from, and with its own part of the page.

It is the one of the tutorial, with rows made up.
"""

import json
import re
import shutil

import pandas as pd
import pytest
import yaml
from samples import ROOT, SAXPY, copy_project, measurements

from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

PAGES = "results/report"
SECTION = """
from launchwise.report.blocks import Section, Text


def sections(study, published):
    rows = len(study.measured)
    return [Section(f"{study.name}-mine", "A part of its own", [Text(f"{rows} rows were timed.")])]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, one for all tests here."""
    return copy_project(tmp_path_factory.mktemp("own") / "project")


@pytest.fixture(scope="module")
def mine(project, tmp_path_factory):
    """The workload's folder, outside the project; its rows are recorded for the GPU ``test``."""
    folder = tmp_path_factory.mktemp("mine") / "saxpy"
    shutil.copytree(SAXPY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    study = folder / "studies" / "saxpy_block"
    asked = yaml.safe_load((study / "study.yaml").read_text())
    (study / "study.yaml").write_text(yaml.safe_dump({**asked, "models": ["knn"]}))
    (study / "section.py").write_text(SECTION)
    spec = load_spec(folder)
    problems = yaml.safe_load((folder / "sweep.yaml").read_text())["problems"]
    recorded = project.folder / "data" / "recorded" / "test" / "saxpy.parquet"
    write_table(recorded, measurements(spec, problems), measurement_schema(spec))
    overlay = {"workloads": [str(folder.parent)], "search": {"trials": 1, "folds": 2}}
    (project.folder / "mine.yaml").write_text(yaml.safe_dump(overlay))
    return folder


def run(project, *arguments):
    """Every page after a run with the stranger's settings."""
    done = project.snakemake(
        "--cores", "2", "--quiet", "all", "--configfile", "mine.yaml", *arguments
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted((project.folder / PAGES).rglob("*.html"))
    return "\n".join(page.read_text() for page in pages)


def test_it_stands_beside_the_workloads_of_the_project(project, mine):
    both = {"workloads": ["kernels", str(mine.parent)]}
    more = {"gpus": {"other": {"source": "live", "arch": "sm_90"}}}
    (project.folder / "both.yaml").write_text(yaml.safe_dump({**both, **more}))
    planned = project.snakemake("-n", "--configfile", "both.yaml")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    # One line adds a GPU: every study asks about it.
    for path in ("saxpy", "stencil"):
        assert f"results/sweeps/test/{path}.parquet" in planned.stdout
        assert f"results/sweeps/other/{path}.parquet" in planned.stdout
    for study in ("saxpy_block", "stencil_block"):
        assert f"results/evaluation/{study}.parquet" in planned.stdout


def test_a_folder_outside_the_project_is_all_it_takes(project, mine):
    page = run(project)
    assert 'id="saxpy_block-mine"' in page
    assert "336 rows were timed." in page
    assert "stencil" not in page


@pytest.mark.slow
def test_a_renamed_study_is_another_and_a_mistake_in_its_section_is_said(project, mine):
    renamed = (mine / "studies" / "saxpy_block").rename(mine / "studies" / "saxpy_threads")
    mistake = 'raise ValueError(f"{study.name}-mine")'
    (renamed / "section.py").write_text(SECTION.replace("return", f"{mistake}\n    return"))
    page = run(project)
    assert "saxpy_block" not in page
    # The section follows; it is asked about the renamed study. The rest stands.
    assert "ValueError: saxpy_threads-mine" in page
    assert "this workload&#39;s own Python, not in launchwise" in page
    assert 'id="saxpy_threads-answer"' in page


def test_a_mistake_in_its_host_code_is_its_own(project, mine):
    live = {"other": {"source": "live", "arch": "sm_90"}}
    settings = {"workloads": [str(mine.parent)], "gpus": live}
    (project.folder / "mine.yaml").write_text(yaml.safe_dump(settings))
    host = mine / "host" / "workload.py"
    lines = host.read_text().splitlines()
    host.write_text("\n".join([*lines, "import nowhere", ""]))
    target = "results/build/saxpy/sm_90.cubins"
    done = project.snakemake("--cores", "1", "--configfile", "mine.yaml", "--", target)
    assert done.returncode != 0
    said = [line for line in (done.stdout + done.stderr).splitlines() if "nowhere" in line]
    assert any(
        f"{host}: line {len(lines) + 1}: ModuleNotFoundError: No module named 'nowhere'" in line
        and "an error in this workload's own Python, not in launchwise" in line
        for line in said
    )


MADE = "results/longest_time/test/stencil.json"


def test_a_stage_is_two_files_and_a_line(project):
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
