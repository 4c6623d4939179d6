"""The library's tests stand on none of the project's workloads: copies without them are tested.

Without any workload, all tests are collected; in a slow test, of the packages in :data:`RUN` the
first :data:`FIRST` tests of each file run, with one case each, but for the files in :data:`SLOW`.
With one workload alone, its own tests are collected. Tests with the mark ``workloads`` are about
the project's own workloads and are left out. All tests of these packages run in the copy with::

    WITHOUT_WORKLOADS=all .venv/bin/pytest -m slow tests/base/test_without_workloads.py"""

import os
import shutil
import subprocess

import pytest
from forks import forked
from python_forks import POPEN
from samples import ROOT
from slow_cases import first_of

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
    *("test_one_core", "test_intervals", "test_report_writing", "test_agreement"),
    *("test_hyperparameters", "test_choosing", "test_metrics", "test_large_spaces"),
    *("test_explore", "test_explore_transfer", "test_faults"),
    *("test_calibration", "test_datasheet_gpus", "test_tested_problems", "test_feeding"),
    *("test_units", "test_exports", "test_every_block", "test_openmp"),
    *("test_folds", "test_learning_splits", "test_learning_features"),
    "test_telemetry",
)
"""Files whose first test takes long, and is like those of others."""


class Selection:
    """The first tests of the files in :data:`RUN`."""

    @staticmethod
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(config, items):
        kept = []
        tried = {}
        for item in items:
            names = tried.setdefault(item.path, set())
            name = getattr(item, "originalname", item.name)
            wanted = item.path.stem not in SLOW and item.path.parent.name in RUN
            if wanted and name not in names and len(names) < FIRST:
                kept.append(item)
                names.add(name)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def run_pytest(words):
    """pytest, with a :class:`Selection` where the first word says so."""
    first, *options = words
    # Tests start processes as they do outside of a fork.
    subprocess.Popen = POPEN
    return int(pytest.main(options, plugins=[Selection()] if first == "some" else []))


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A copy of the project with its data and tests, whose workloads lie beside it."""
    folder = tmp_path_factory.mktemp("bare") / "project"
    # With its bytecode: times of files are copied, too.
    ignored = shutil.ignore_patterns("*.parquet")
    for name in (*COPIED, "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy(path, folder)
    (folder / "data").symlink_to(ROOT / "data")
    for name in WORKLOADS:
        (folder / "kernels" / name).rename(folder.parent / name)
    return folder


def run(folder, *options, whole=True):
    """What pytest says in a copy; it must succeed.

    It is a fork: libraries are loaded, and the project is imported anew from the copy.
    """
    apart = ("gpu", "slurm", "browser", "workloads", "slow", "triton")
    marked = " and ".join(f"not {mark}" for mark in apart)
    words = ["whole" if whole else "some", "-q", "-p", "no:cacheprovider", "-m", marked, *options]
    variables = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = forked(run_pytest, words, folder, {**variables, "PYTHONPATH": str(folder)}, 600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return done.stdout


def test_without_any_workload_all_tests_are_collected(bare):
    assert "tests/learning/test_" in run(bare, "--collect-only", "tests", "kernels")


@pytest.mark.slow
def test_without_any_workload_some_tests_of_each_file_pass(bare):
    if os.environ.get("WITHOUT_WORKLOADS") == "all":
        said = run(bare, *(f"tests/{name}" for name in RUN))
    else:
        said = run(bare, *(f"tests/{name}" for name in RUN), whole=False)
    assert " passed" in said


@pytest.mark.parametrize("workload", first_of(WORKLOADS))
def test_tests_of_a_workload_are_collected_without_all_others(bare, workload):
    beside, inside = bare.parent / workload, bare / "kernels" / workload
    beside.rename(inside)
    try:
        said = run(bare, "--collect-only", "kernels")
    finally:
        inside.rename(beside)
    assert f"kernels/{workload}/tests/test_" in said
