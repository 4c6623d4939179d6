"""Folders, files and commits as sides of a comparison, and what is wrong with them."""

import shutil
import subprocess

import numpy as np
import pyarrow.parquet
import pytest
from compared import SPEC, made_up, with_times, write_sweep
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.comparing import sides
from launchwise.comparing.matching import Rule
from launchwise.comparing.sides import opened
from launchwise.comparing.sweep_comparison import compared

GPU, WORKLOAD = "test", "saxpy"
SWEEP = made_up()
SLOWER = with_times(SWEEP, [0, 1, 2], 3.0)


def compare(old, new, repository=ROOT, spec=SPEC):
    with opened(str(old), repository) as one, opened(str(new), repository) as other:
        return compared(one, other, lambda _: spec, Rule())


def refusal(named, repository=ROOT):
    with pytest.raises(UserError) as caught, opened(str(named), repository):
        pass
    return str(caught.value)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder of recorded rows with sweeps of two GPUs."""
    folder = tmp_path_factory.mktemp("recorded")
    for gpu in (GPU, "other"):
        write_sweep(folder, SWEEP.assign(gpu=gpu), SPEC)
    return folder


@pytest.fixture
def changed(tmp_path):
    """A folder of recorded rows with one sweep, three rows of which are slower."""
    write_sweep(tmp_path / "new", SLOWER, SPEC)
    return tmp_path / "new"


@pytest.mark.parametrize("inside", ["", GPU, f"{GPU}/{WORKLOAD}.parquet"])
def test_a_folder_of_gpus_a_gpu_and_a_file_are_sides(recorded, changed, inside):
    found = compare(recorded / inside, changed / inside)
    (sweep,) = found.sweeps
    assert (sweep.gpu, sweep.spec.workload) == (GPU, WORKLOAD)
    assert sweep.outcomes["slower"] == 3
    assert found.only_new == []
    assert ((GPU, WORKLOAD) in found.only_old) is False


def test_results_of_a_checkout_are_a_side_and_its_shards_are_none(recorded, changed, tmp_path):
    results = tmp_path / "checkout" / "results"
    shutil.copytree(changed, results / "sweeps")
    shard = results / "sweeps" / GPU / WORKLOAD
    shard.mkdir()
    shutil.copy(changed / GPU / f"{WORKLOAD}.parquet", shard / "0.parquet")
    assert compare(recorded / GPU, results).outcomes["slower"] == 3


def test_sweeps_of_one_side_are_listed(recorded, changed):
    found = compare(changed, recorded)
    assert (found.only_old, found.only_new) == ([], [("other", WORKLOAD)])


def test_counters_beside_sweeps_are_left_alone():
    with opened(str(ROOT / "data/recorded/h200"), ROOT) as side:
        assert {workload for _, workload in side.files} == {
            *("acoustic", "expert_product", "granger", "sentiment", "tridiagonal")
        }


def test_rows_from_before_a_tunable_have_its_neutral_value(tmp_path):
    plain = SPEC.variants["strided"].model_copy(update={"tunables": ["threads"]})
    spec = SPEC.model_copy(update={"variants": {**SPEC.variants, "plain": plain}})
    kept = SWEEP["items"] == spec.tunables["items"].neutral
    sweep = SWEEP.assign(variant=np.where(kept, "plain", "strided"))
    write_sweep(tmp_path / "new", sweep, spec)
    tunables = {name: one for name, one in spec.tunables.items() if name != "items"}
    before = spec.model_copy(update={"tunables": tunables})
    write_sweep(tmp_path / "old", sweep[kept].drop(columns=["items"]), before)
    (found,) = compare(tmp_path / "old", tmp_path / "new", spec=spec).sweeps
    assert (found.outcomes["same"], found.outcomes["gone"]) == (kept.sum(), 0)
    assert found.outcomes["new"] == (~kept).sum() > 0


@pytest.fixture
def repository(tmp_path):
    """A git repository of two commits, recorded and then slower; beside them a broken file."""
    folder = tmp_path / "repository"
    for name, sweep in (("recorded", SWEEP), ("slower", SLOWER)):
        write_sweep(folder / "data" / "recorded", sweep, SPEC)
        (folder / "other" / GPU).mkdir(parents=True, exist_ok=True)
        (folder / "other" / GPU / "x.parquet").write_bytes(b"PAR1")
        git(folder, "init", "--quiet")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", name)
    return folder


def git(folder, *words):
    own = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=a")
    done = subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()


def test_commits_are_sides_and_the_working_tree_is_not_touched(repository):
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*") if path.is_file()}
    found = compare("git:HEAD~1", "git:HEAD", repository / "data")
    assert (found.old, found.new, found.outcomes["slower"]) == ("git:HEAD~1", "git:HEAD", 3)
    assert compare("git:HEAD", repository / "data/recorded", repository).outcomes["slower"] == 0
    named = f"git:HEAD~1:data/recorded/{GPU}/"
    assert compare(named, "git:a:data/recorded", repository).outcomes["slower"] == 3
    after = {path: path.stat().st_mtime_ns for path in repository.rglob("*") if path.is_file()}
    assert before == after
    assert git(repository, "status", "--porcelain") == ""


def test_wrong_commits_are_one_line(repository, tmp_path, monkeypatch):
    assert refusal("git:nothing", repository) == (
        "git:nothing: the repository has no commit 'nothing'"
    )
    assert "has no commit ''" in refusal("git:", repository)
    assert "has no commit '--all'" in refusal("git:--all", repository)
    assert refusal("git:HEAD:data/none", repository) == (
        "git:HEAD:data/none: the commit has no folder data/none"
    )
    assert "holds no sweep" in refusal("git:HEAD:data", repository)
    # The file as the user knows it, not the one that was taken out of the commit.
    assert refusal("git:HEAD:other", repository).startswith(
        f"git:HEAD:other: {GPU}/x.parquet: is not a complete Parquet file"
    )
    assert "is not in a git repository" in refusal("git:HEAD", tmp_path)
    monkeypatch.setattr(sides, "MOST_BYTES", 9)
    assert refusal("git:HEAD", repository).endswith("is longer than 9 bytes")


def test_without_git_a_commit_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal("git:HEAD") == "git: is not installed"


def _twice(path):
    shutil.copy(path, path.with_name("copy.parquet"))


def _empty(path):
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, 0), path)


@pytest.mark.parametrize(
    ("spoil", "said"), [(_twice, f"holds {WORKLOAD} on {GPU}, as "), (_empty, "gpu: has no row")]
)
def test_a_wrong_file_is_one_line_with_its_name(recorded, changed, spoil, said):
    path = changed / GPU / f"{WORKLOAD}.parquet"
    spoil(path)
    with pytest.raises(UserError) as caught:
        compare(recorded, changed)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(changed))
