"""Reads recorded sweeps of a git commit, without touching the working tree."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import inside as within

PREFIX = "git:"
RECORDED = "data/recorded"
"""Folder that is read where none is named."""
_FILE = "100"
"""Start of git's mode of a plain file, neither link nor submodule."""


def write_sweeps(named: str, repository: Path, folder: Path) -> None:
    """Write every Parquet file of a commit's folder below ``folder``, by its path in that one.

    Parameters
    ----------
    named
        ``git:COMMIT`` or ``git:COMMIT:FOLDER``; the folder is named from the top of the repository
        and is :data:`RECORDED` when left out.
    repository
        A folder inside the repository.

    Raises
    ------
    UserError
        When git is not installed, there is no repository, commit or folder.
    """
    commit, _, inside = named.removeprefix(PREFIX).partition(":")
    inside = inside.strip("/") or RECORDED
    top = _git(repository, "rev-parse", "--git-dir")
    if top is None:
        raise UserError(named, "", f"{repository.resolve()} is not in a git repository")
    tree = _git(repository, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    if not commit or tree is None:
        raise UserError(named, "", f"the repository has no commit {commit!r}")
    # Named by its tree, a folder is listed from its own top, wherever git is run.
    listed = _git(repository, "ls-tree", "-r", "-z", "--full-tree", f"{_text(tree)}:{inside}")
    if listed is None:
        raise UserError(named, "", f"the commit has no folder {inside}")
    for line in os.fsdecode(listed).split("\0"):
        facts, _, name = line.partition("\t")
        if not name.endswith(".parquet") or not facts.startswith(_FILE):
            continue
        content = _git(repository, "cat-file", "blob", facts.split()[2])
        if content is None:
            raise UserError(named, name, "cannot be read from the repository")
        path = within(folder, name, named, inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _git(repository: Path, *arguments: str) -> bytes | None:
    """Output of git; None where it fails.

    Raises
    ------
    UserError
        When git is not installed.
    """
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=repository, capture_output=True, check=False, timeout=600
        )
    except FileNotFoundError as error:
        raise UserError("git", "", "is not installed") from error
    return done.stdout if done.returncode == 0 else None


def _text(printed: bytes) -> str:
    return os.fsdecode(printed).strip()
