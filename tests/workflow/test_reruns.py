"""What Snakemake plans after a change, in a small project that is up to date."""

import os
import re
import shutil
import time
from contextlib import ExitStack, contextmanager

import pytest
import yaml
from samples import Project, copy_project

TARGET = "sweep_test"
"""A recorded profile and a recorded sweep."""
SWEEP = "results/sweeps/test/stencil.parquet"
RECORDED = "data/recorded/test/stencil.parquet"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a profile and a sweep; every test leaves it as it was."""
    project = copy_project(tmp_path_factory.mktemp("reruns") / "project")
    done = project.snakemake("--cores", "2", "--quiet", "all", "--", TARGET)
    assert done.returncode == 0, done.stdout + done.stderr
    taken, recorded = (project.folder / name for name in (SWEEP, RECORDED))
    assert taken.read_bytes() == recorded.read_bytes()
    return project


def planned(project):
    """Rules that a run of the target would call."""
    done = project.snakemake("-n", "--", TARGET)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    rules = set(re.findall(r"^(?:local)?rule (\w+):", text, re.MULTILINE)) - {TARGET}
    assert bool(rules) != ("Nothing to be done" in text), text
    assert "launchwise: " not in text
    return rules


@contextmanager
def changed(path, content):
    """A file with another content; at the end what it was, with its time."""
    before, times = path.read_bytes(), path.stat()
    path.write_bytes(content)
    later = time.time() + 60
    os.utime(path, (later, later))
    yield
    path.write_bytes(before)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


DATA, PROFILES = "data_stencil", "profiles"
EDITED = {
    "a script, and what neither imports, with the version": (
        ["scripts/profiles.py", "launchwise/report/site/rendering.py", "launchwise/__init__.py"],
        {PROFILES},
    ),
    "what a script imports inside a function": (["launchwise/learning/blind.py"], {DATA}),
    "what both scripts import": (["launchwise/base/work.py"], {DATA, PROFILES}),
}


@pytest.mark.parametrize("what", EDITED)
def test_an_edit_of_code_reruns_the_scripts_that_import_it(project, what):
    names, rules = EDITED[what]
    with ExitStack() as edits:
        for path in map(project.folder.joinpath, names):
            edits.enter_context(changed(path, path.read_bytes() + b"# edited\n"))
        assert planned(project) == rules


def test_an_input_that_is_newer_counts_by_its_content(project):
    path = project.folder / RECORDED
    with changed(path, path.read_bytes()):
        assert planned(project) == set()
    with changed(path, path.read_bytes() + b"\0"):
        assert planned(project) == {DATA}


def test_a_spec_counts_without_its_texts(project):
    path = project.folder / "kernels" / "stencil" / "spec.yaml"
    spec = yaml.safe_load(path.read_text())
    titled = {**spec, "title": "Another title"}
    with changed(path, yaml.safe_dump(titled, sort_keys=False).encode()):
        assert planned(project) == set()
    spec["problem"]["n"]["maximum"] += 1
    with changed(path, yaml.safe_dump(spec, sort_keys=False).encode()):
        assert planned(project) == {DATA}


def test_a_result_that_is_gone_is_made_again(project, tmp_path):
    aside = shutil.move(project.folder / SWEEP, tmp_path / "sweep")
    assert planned(project) == {DATA}
    shutil.move(aside, project.folder / SWEEP)


def test_a_copy_is_up_to_date_with_or_without_its_times(project, tmp_path):
    kept = Project(shutil.copytree(project.folder, tmp_path / "a moved one"))
    assert planned(kept) == set()
    anew = shutil.copytree(project.folder, tmp_path / "anew", copy_function=shutil.copyfile)
    for path in [*(anew / "data").rglob("*"), *(anew / "scripts").rglob("*")]:
        os.utime(path)
    assert planned(Project(anew)) == set()


def test_results_without_any_record_are_taken_as_they_are_and_one_line_says_so(project, tmp_path):
    ignored = shutil.ignore_patterns(".snakemake")
    copied = Project(shutil.copytree(project.folder, tmp_path / "copied", ignore=ignored))
    done = copied.snakemake("-n", "--", TARGET)
    text = done.stdout + done.stderr
    assert "Nothing to be done" in text
    assert text.count("launchwise: results/ came without .snakemake/metadata/") == 1
    accepted = copied.snakemake("--cores", "1", "--forceall", "--touch", "--", TARGET)
    assert accepted.returncode == 0, accepted.stderr
    assert planned(copied) == set()
