"""Mistakes of installing and running that a new user makes: each is one line that says what to do.

Those of a command line are in tests/cli/data/complaints.yaml, of `make` in test_clone.py, of
modules and versions in test_other_folders.py, and of settings in tests/experiment.
All run in one project, which `launchwise init` made.
"""

import json
import os
import shutil

import pytest
from command_line import launchwise
from fake_cluster import CARD, FAKES
from installed import snakemake
from samples import ROOT

SMOOTH = ROOT / "docs" / "tutorial" / "example" / "smooth"
NO_GPU = {"PYTHONPATH": f"{FAKES}:{ROOT}", "FAKE_CARDS": str(FAKES / "none.json")}
SAXPY = ("n=64", "dtype=float32")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A new project, with a CUDA file and a kernel of the tutorial beside it."""
    folder = tmp_path_factory.mktemp("new user")
    done = launchwise("init", "project", folder=folder)
    assert done.returncode == 0, done.stderr
    shutil.copytree(SMOOTH, folder / "project" / "smooth")
    return folder / "project"


def test_a_workload_of_the_project_is_found_by_its_name(here):
    done = launchwise("check", "saxpy", folder=here, PATH="/usr/bin:/bin")
    assert "expressions: have values" in done.stdout, done.stderr


def test_commands_outside_of_a_project_name_the_ways_into_one(tmp_path):
    words = ("recommend", "saxpy_block", "--gpu", "local", *SAXPY)
    done = launchwise(*words, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "config.yaml: is missing: run this in the folder of your settings" in done.stderr
    assert "launchwise init DIR" in done.stderr


def _linked(folder):
    (folder / "results").symlink_to("/nowhere/results")


def _a_file(folder):
    (folder / "results").write_text("")


def _no_settings(folder):
    (folder / "config.yaml").unlink()


def _misspelt(folder):
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("seed:", "sead:"))


def _tabs(folder):
    with (folder / "config.yaml").open("a") as file:
        file.write("\tseed: 1\n")


PROJECTS = {
    "no GPU here": (lambda folder: None, "this machine has no NVIDIA GPU; give its arch"),
    "results that a link loses": (_linked, "results: is a link to /nowhere/results, which is"),
    "results that are a file": (_a_file, "results: is no folder: move it away"),
    "no settings": (_no_settings, "config.yaml: cannot be read: No such file"),
    "a key that is misspelt": (_misspelt, "unknown key 'sead', did you mean 'seed'?"),
    "tabs in YAML": (_tabs, "not valid YAML"),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_mistake_in_a_project(name, here, tmp_path):
    spoil, wanted = PROJECTS[name]
    folder = tmp_path / "project"
    shutil.copytree(here, folder, ignore=shutil.ignore_patterns("smooth", ".snakemake", "tuned"))
    spoil(folder)
    done = snakemake(folder, "-n", **NO_GPU)
    said = [line for line in done.stderr.splitlines() if line.startswith("launchwise: ")]
    assert done.returncode == 1
    assert len(said) == 1, done.stderr
    assert wanted in said[0]
    assert "Traceback" not in done.stderr


def test_a_project_as_it_is_made_has_a_default_target(here, tmp_path):
    (tmp_path / "cards.json").write_text(json.dumps({"here": [CARD]}))
    done = snakemake(
        here, "-n", PYTHONPATH=NO_GPU["PYTHONPATH"], FAKE_CARDS=str(tmp_path / "cards.json")
    )
    assert "results/report/index.html" in done.stdout, done.stderr


def _filled(disk):
    free = os.statvfs(disk)
    (disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize))
    return str(disk)


def test_a_home_that_is_full_or_cannot_be_written_costs_speed_alone(here, small_disk):
    """Caches are missing; Snakemake, which insists on one, gets a folder for the moment."""
    full, nowhere = _filled(small_disk), "/proc/none"
    for home, cache in ((full, ""), ("/", full), (nowhere, nowhere)):
        variables = {"HOME": home, "XDG_CACHE_HOME": cache, **NO_GPU}
        words = ("export", "saxpy_block", "--format", "json")
        done = launchwise(*words, folder=here, **variables)
        assert "this machine has no NVIDIA GPU; give its arch" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_full_folder_for_temporary_files_is_one_line(here, small_disk):
    full = _filled(small_disk)
    done = snakemake(here, "-n", TMPDIR=full, **NO_GPU)
    said = [line for line in done.stderr.splitlines() if line.startswith("launchwise: ")]
    assert said == [
        f"launchwise: TMPDIR={full}: cannot be written: No space left on device: free space, or "
        "set another TMPDIR"
    ]
    assert "Traceback" not in done.stderr
