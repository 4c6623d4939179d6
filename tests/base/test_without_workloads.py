"""The library's tests stand on none of the project's workloads: a copy without them is tested."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ROOT

COPIED = ("benchmarks", "config", "docs", "kernels", "launchwise", "rules", "scripts", "tests")
QUICK = (
    *("test_compared_answers", "test_row_selection", "test_prices", "test_ranks", "test_titles"),
    *("test_following_tunables", "test_merit", "test_templates", "test_fitting_sizes"),
    *("test_learning_features", "test_predictors", "test_build_facts", "test_fits", "test_guesses"),
    *("test_lambdarank", "test_rechecking", "test_contests", "test_row_cap"),
    *("test_learning_regression", "test_report_numbers", "test_roofline", "test_fixed_choice"),
    *("test_report_tunables", "test_outliers", "test_unverified"),
)
"""Files of tests that run; all others are imported."""

RUN = """
import sys
sys.path[:] = [path for path in sys.path if path != {root!r}]
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
"""An installation of the project would lend the copy the workloads that it lacks."""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The project with its data and without a workload."""
    folder = tmp_path / "project"
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name)
    for path in ROOT.glob("[!.]*"):
        if path.is_file():
            shutil.copy(path, folder)
    (folder / "data").symlink_to(ROOT / "data")
    for spec in [*folder.glob("kernels/*/spec.yaml")]:
        shutil.rmtree(spec.parent)
    return folder


def test_without_a_workload_every_test_is_collected_and_the_quick_ones_pass(bare: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-k", " or ".join(f"{name}.py" for name in QUICK)]
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(root=str(ROOT)), *options],
        cwd=bare,
        env={**os.environ, "PYTHONPATH": str(bare)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert " passed" in done.stdout
