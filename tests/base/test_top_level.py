"""The top of the repository holds what is listed here: nothing is added by mistake."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from samples import ROOT

FOLDERS = (
    ".ci .github benchmarks conda config data docs kernels launchwise profiles report rules "
    "schemas scripts tests workflow"
)
FILES = (
    ".editorconfig .gitignore .pre-commit-config.yaml .snakemake-workflow-catalog.yml "
    "CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE Makefile README.md Snakefile config.yaml "
    "conftest.py container.def environment.yaml mkdocs.yml pyproject.toml requirements-dev.lock "
    "requirements-docs.lock requirements-gpu.lock requirements.lock"
)


def test_no_other_file_or_folder_is_tracked_at_the_top() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no clone")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    top = {path.split("/")[0] for path in tracked.stdout.split("\0") if path}
    assert top == {*FOLDERS.split(), *FILES.split()}, "list it here, or remove it"
