"""Provenance of a result: commit, packages, time."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from launchwise.base.places import IN_CLONE, ROOT

COMMIT_VARIABLE = "LAUNCHWISE_COMMIT"
"""Environment variable with the commit, for code without a repository (such as a container)."""

PACKAGES = (
    "snakemake",
    "numpy",
    "pandas",
    "scikit-learn",
    "xgboost-cpu",
    "lightgbm",
    "optuna",
    "pycuda",
    "cuda-bindings",
)


def commit(root: str | Path = ROOT) -> str:
    """Commit of the project, with ``+changes`` when tracked files differ from it. Of an installed
    wheel the tag of its version, such as ``v0.2.0``: a repository that it happens to lie in is
    another project's. ``unknown`` where there is neither a repository nor
    :data:`COMMIT_VARIABLE`."""
    named = os.environ.get(COMMIT_VARIABLE)
    if named:
        return named
    if root == ROOT and not IN_CLONE:
        return f"v{_own_version()}"
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+changes" if changed else head


def changes_since(
    commits: Collection[str], paths: Sequence[Path], root: str | Path = ROOT
) -> dict[str, int]:
    """Commit to the number of commits that changed any of ``paths`` after it, without those that
    are not in the history. ``paths``: files and folders; ``*`` stands for any text of one name."""
    named = [f":(glob){path}" for path in paths]
    history = _git(root, "rev-list", "--parents", "HEAD")
    changing = _git(root, "rev-list", "HEAD", "--", *named)
    if history is None or changing is None:
        return {}
    parents = {child: before for child, *before in map(str.split, history.splitlines())}
    found = {}
    for one in parents.keys() & {*commits}:
        left, inside = [one], set()
        while left:
            if (each := left.pop()) not in inside:
                inside.add(each)
                left += parents[each]
        found[one] = len({*changing.split()} - inside)
    return found


def _git(root: str | Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _own_version() -> str:
    # Not by an import: a new number alone is no reason to train or to measure again.
    return str(sys.modules["launchwise"].__version__)


def now() -> str:
    """Current time, UTC, ISO 8601, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


def versions() -> dict[str, str]:
    """Versions of launchwise, of Python and of the packages that results depend on."""
    found = {"launchwise": _own_version(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
