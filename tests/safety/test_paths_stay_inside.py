"""Paths in files that are passed on lead nowhere else; those that the user types lead anywhere."""

import itertools
import json
import os
import shutil
import subprocess
from dataclasses import replace
from functools import partial

import foreign
import pytest
import yaml
from command_line import line_of
from hostile import table_of
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.cli.app import main
from launchwise.comparing.sides import write_sweeps
from launchwise.experiment.published import check_places, read_run_times
from launchwise.exporting.exports import write_answers
from launchwise.workloads.spec import load_spec

PLACES = (
    *("../secret", "{outside}/secret", "sub/../../secret", "link", "folder/secret"),
    *("a\nb", 'a".cu', "a\\b.cu", ""),
)
"""Paths out of a workload's folder: of text, by links, and what no ``#include`` may hold."""

KEYS = ("source", "headers", "feasible", "fill", "inputs", "reference", "compare")


@pytest.fixture
def workload(tmp_path):
    """A workload outside the project with links to a file and a folder beside it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("secret", "secret.py"):
        (outside / name).write_text("def f(): pass\n")
        (tmp_path / name).write_text("def f(): pass\n")
    folder = tmp_path / "fir_filter"
    shutil.copytree(ROOT / "tests" / "strangers" / "fir_filter", folder)
    (folder / "link").symlink_to(outside / "secret")
    (folder / "link.py").symlink_to(outside / "secret.py")
    (folder / "folder").symlink_to(outside)
    return folder


@pytest.fixture
def complaint(capsys):
    """The one line on standard error of a command that fails."""
    return partial(line_of, capsys)


@pytest.mark.parametrize(
    ("key", "place"),
    # All ways out, and two of them by every key.
    [*(("fill", place) for place in PLACES), *itertools.product(KEYS, ("../secret", "link"))],
)
def test_files_of_a_spec_lie_in_its_folder(workload, complaint, key, place):
    named = place.format(outside=workload.parent / "outside")
    content = yaml.safe_load((workload / "spec.yaml").read_text())
    if key == "source":
        content["variants"]["fir"]["source"] = named
    elif key == "headers":
        content["headers"] = [named]
    elif key == "feasible":
        content["feasible"] = named
    elif key == "fill":
        content["arguments"]["taps"]["fill"] = {"file": named}
    elif key == "inputs":
        content["inputs"] = f"{named}.py:f"
    else:
        content["reference"] = {{"reference": "file"}.get(key, key): f"{named}.py:f"}
    (workload / "spec.yaml").write_text(yaml.safe_dump(content))
    said = complaint("check", str(workload))
    assert f"{workload}/spec.yaml: " in said
    assert "leads out of" in said or "is no name of a file" in said or "must match pattern" in said


@pytest.mark.parametrize("name", ["spec", "features", "cost", "usual", "sweep", "study"])
def test_files_with_a_fixed_name_are_no_links_to_elsewhere(workload, complaint, name):
    file = workload / f"{name}.yaml"
    if name == "study":
        file = workload / "studies" / "mine" / "study.yaml"
        file.parent.mkdir(parents=True)
    file.unlink(missing_ok=True)
    file.symlink_to(workload.parent / "outside" / "secret")
    project = workload.parent / "config.yaml"
    project.write_text(f"seed: 1\nworkloads: [{workload}]\ngpus: {{a100: {{source: live}}}}\n")
    of_experiment = name in ("sweep", "study")
    asked = ["predict", "mine", "a100", "n=64", "--configfile", str(project)]
    said = complaint(*(asked if of_experiment else ["check", str(workload)]))
    assert f"{file}: " in said
    assert "leads out of" in said


def test_headers_outside_may_be_included_and_links_inside_followed(workload):
    (workload.parent / "sizes.h").write_text("#define WARP 32\n")
    text = (workload / "fir.cu").read_text()
    (workload / "real.cu").write_text(f'#include "../sizes.h"\n{text}')
    (workload / "fir.cu").unlink()
    (workload / "fir.cu").symlink_to("real.cu")
    assert load_spec(workload).variants["fir"].source == "fir.cu"
    # The folder itself may be anywhere.
    (workload.parent / "elsewhere").mkdir()
    elsewhere = workload.parent / "elsewhere" / "fir_filter"
    elsewhere.symlink_to(workload)
    assert load_spec(elsewhere).workload == "fir_filter"


@pytest.mark.parametrize("place", ["../../../secret", "/etc/passwd"])
def test_elements_of_a_paper_lie_in_the_project(workload, place):
    study = workload / "studies" / "one"
    (study / "published").mkdir(parents=True)
    element = {"element": "e", "where": "p. 1", "files": [place]}
    (study / "published" / "elements.yaml").write_text(yaml.safe_dump({"elements": [element]}))
    with pytest.raises(UserError, match=r"elements\.0\.files: .* leads out of"):
        check_places(study)


def test_tables_of_run_times_lie_beside(workload):
    study = workload / "studies" / "one"
    (study / "published").mkdir(parents=True)
    series = {"title": "t", "table": "../../../secret", "time": "ms", "unit": "ms"}
    (study / "published" / "run_times.yaml").write_text(yaml.safe_dump({"series": [series]}))
    with pytest.raises(UserError, match=r"series\.0\.table: .* leads out of"):
        read_run_times(study, load_spec(workload), [])


# Imports and exports


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder in which a sweep of others lies."""
    folder = tmp_path / "a" / "b" / "here"
    folder.mkdir(parents=True)
    foreign.write(folder / "own.json", foreign.cache())
    monkeypatch.chdir(folder)
    return folder


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


IMPORT, LOAD = "import own.json --as w --gpu own.json=g", "load log.csv --as w --workload {saxpy}"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        *((one, IMPORT) for one in ("kernels", "kernels/w", "data", "data/recorded/g")),
        *((one, "new mine/w --from k.cu") for one in ("mine", "mine/w")),
        ("loads", LOAD),
    ],
)
def test_a_link_in_the_place_of_a_folder_is_refused(here, tmp_path, complaint, place, words):
    (here / "k.cu").write_text("__global__ void k(int *x, int n) { x[n] = 1; }\n")
    (here / "log.csv").write_text("n,dtype\n64,float32\n")
    (tmp_path / "outside" / "w").mkdir(parents=True)
    (here / place).parent.mkdir(parents=True, exist_ok=True)
    (here / place).symlink_to(tmp_path / "outside")
    words = words.format(saxpy=ROOT / "docs" / "tutorial" / "example" / "saxpy").split()
    line = complaint(*words)
    assert line.startswith(f"{place}/")
    assert line.endswith(" by a link: remove it, or name that folder")
    assert [*(tmp_path / "outside").rglob("*")] == [tmp_path / "outside" / "w"]
    # Who names the folder itself writes there.
    absolute = [str(here / one) if one.startswith("mine") else one for one in words]
    assert absolute == words or main(absolute) == 0


@pytest.mark.parametrize("name", ["../../../x", "{outside}/x", "..", ".x", "a/b", "a\nb", "é"])
def test_a_gpu_of_an_import_is_a_name(here, tmp_path, complaint, name):
    before = files(tmp_path)
    named = name.format(outside=tmp_path)
    said = complaint("import", "own.json", "--as", "blur", "--gpu", f"own.json={named}")
    assert "import: --gpu: must match" in said
    assert "names a folder" in said
    assert files(tmp_path) == before


@pytest.mark.parametrize("device", ["../../../x", "/etc/x", "a\nb", "..\\x"])
def test_a_device_of_a_file_makes_a_folder_of_that_name(here, tmp_path, device):
    content = json.loads((here / "own.json").read_text())
    content["device_name"] = device
    (here / "own.json").write_text(json.dumps(content))
    before = files(tmp_path)
    assert main(["import", "own.json", "--as", "blur"]) == 0
    made = files(tmp_path) - before
    assert all(path.startswith("a/b/here/") for path in made)
    assert any(
        path.endswith(("recorded/x/blur.parquet", "a_b/blur.parquet", "etc_x/blur.parquet"))
        for path in made
    )


@pytest.mark.parametrize("name", ["../gpu", "/tmp/gpu", "a\nb"])
def test_a_device_of_a_product_is_no_path(tmp_path, name):
    table = table_of(["x"])
    device = replace(table.devices[0], name=name)
    table = replace(table, stored=table.stored.model_copy(update={"devices": (device,)}))
    before = files(tmp_path)
    with pytest.raises(UserError):
        write_answers(tmp_path / "out", table)
    assert {path for path in files(tmp_path) - before if not path.startswith("out/")} == set()


def test_a_commit_writes_no_file_elsewhere(tmp_path):
    repository = tmp_path / "repository"
    repository.mkdir()

    def git(*words, text=""):
        who = ["-c", "user.name=n", "-c", "user.email=e"]
        done = subprocess.run(
            ["git", *who, *words], cwd=repository, input=text, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    git("init", "-q")
    blob = git("hash-object", "-w", "--stdin", text="x")
    inner = git("mktree", text=f"100644 blob {blob}\tx.parquet\n")
    tree = git("mktree", text=f"040000 tree {inner}\t..\n")
    top = git("mktree", text=f"040000 tree {tree}\tdata\n")
    commit = git("commit-tree", top, "-m", "m")
    (tmp_path / "made" / "deep").mkdir(parents=True)
    with pytest.raises(UserError):
        write_sweeps(f"git:{commit}:data", repository, tmp_path / "made" / "deep")
    assert not list((tmp_path / "made").glob("*.parquet"))


def test_a_kernel_that_is_taken_over_brings_no_file_of_elsewhere(here, tmp_path, complaint):
    (tmp_path / "secret.h").write_text("#define SECRET 1\n")
    source = '#include "../../../secret.h"\n__global__ void k(int *x, int n) { x[n] = SECRET; }\n'
    (here / "k.cu").write_text(source)
    assert main(["new", "mine", "--from", "k.cu"]) == 0
    assert files(here / "mine") == {"k.cu", "spec.yaml"}
    assert "SECRET" not in (here / "mine" / "spec.yaml").read_text()


def test_a_link_in_a_new_workload_is_replaced(here, tmp_path):
    (here / "k.cu").write_text("__global__ void k(int *x, int n) { x[n] = 1; }\n")
    (here / "mine").mkdir()
    os.symlink(tmp_path / "written", here / "mine" / "spec.yaml")
    assert main(["new", "mine", "--from", "k.cu"]) == 0
    assert not (tmp_path / "written").exists()
    assert (here / "mine" / "spec.yaml").is_file()
