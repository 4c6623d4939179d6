"""The library's tests stand on none of the project's workloads: copies without them are tested.

Without any workload, all tests are collected, and of the packages in :data:`RUN` the first
:data:`FIRST` tests of each file run, with one case each, but for the files in :data:`SLOW`. With
one workload alone, its own tests are collected. Tests with the mark ``workloads`` are about the
project's own workloads and are left out. All tests of these packages run in the copy with::

    WITHOUT_WORKLOADS=all .venv/bin/pytest tests/base/test_without_workloads.py -k any
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from samples import ROOT

COPIED = (
    *("benchmarks", "config", "docs", "kernels", "launchwise"),
    *("report", "rules", "scripts"),
)
WORKLOADS = sorted(path.parent.name for path in ROOT.glob("kernels/*/spec.yaml"))
RUN = (
    *("comparing", "experiment", "exporting", "learning", "measuring", "report", "tables"),
    "workloads",
)
FIRST = 1
SLOW = (
    *("test_learning_recommenders", "test_learning_evaluate", "test_learning_search"),
    *("test_one_core", "test_intervals", "test_printed", "test_report_writing", "test_agreement"),
    *("test_hyperparameters", "test_choosing", "test_metrics", "test_large_spaces"),
    *("test_explore", "test_explore_model", "test_explore_transfer", "test_faults"),
    *("test_random_kills",),
    *("test_calibration", "test_datasheet_gpus", "test_tested_problems"),
)
"""Files whose first test takes long, and is like those of others."""

STARTED = """
import sys
sys.path[:] = [path for path in sys.path if path != {root!r}]
import pytest

class Selection:
    @staticmethod
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(config, items):
        if {whole!r}:
            return
        kept, tried = list(), dict()
        for item in items:
            names = tried.setdefault(item.path, set())
            name = getattr(item, "originalname", item.name)
            wanted = item.path.stem not in {slow!r} and item.path.parent.name in {run!r}
            if wanted and name not in names and len(names) < {first}:
                kept.append(item)
                names.add(name)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

sys.exit(pytest.main(sys.argv[1:], plugins=[Selection()]))
"""
"""An installation of the project would lend the copy the workloads that it lacks."""

Copying = Callable[..., Path]


@pytest.fixture
def copy_without(tmp_path: Path) -> Copying:
    """Makes the project with its data and tests, but without some workloads."""

    def make(*workloads: str) -> Path:
        folder = tmp_path / "project"
        # With its bytecode: times of files are copied, too.
        ignored = shutil.ignore_patterns("*.parquet")
        for name in (*COPIED, "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        for path in ROOT.glob("[!.]*"):
            if path.is_file():
                shutil.copy(path, folder)
        (folder / "data").symlink_to(ROOT / "data")
        for name in workloads:
            shutil.rmtree(folder / "kernels" / name)
        return folder

    return make


def run(folder: Path, *options: str, whole: bool = True) -> str:
    """What pytest says in a copy; it must succeed."""
    started = STARTED.format(root=str(ROOT), whole=whole, slow=SLOW, run=RUN, first=FIRST)
    marked = "not gpu and not slurm and not browser and not workloads"
    done = subprocess.run(
        [sys.executable, "-c", started, "-q", "-p", "no:cacheprovider", "-m", marked, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def test_without_any_workload_all_tests_are_collected_and_some_of_each_file_pass(
    copy_without: Copying,
) -> None:
    bare = copy_without(*WORKLOADS)
    if os.environ.get("WITHOUT_WORKLOADS") == "all":
        said = run(bare, *(f"tests/{name}" for name in RUN))
    else:
        said = run(bare, "tests", "kernels", whole=False)
    assert " passed" in said


@pytest.mark.parametrize("workload", WORKLOADS)
def test_tests_of_a_workload_are_collected_without_all_others(
    copy_without: Copying, workload: str
) -> None:
    others = [name for name in WORKLOADS if name != workload]
    said = run(copy_without(*others), "--collect-only", "kernels")
    assert f"kernels/{workload}/tests/test_" in said
