"""Folders that a run writes to, and a path of this Python that a shell takes as one word."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import sys
import tempfile
from pathlib import Path

from packaging.version import InvalidVersion, Version

import launchwise
from launchwise.base.errors import UserError
from launchwise.base.storage import (
    FULL,
    digest,
    read_json_object,
    user_cache,
    why_not_written,
    write_json,
)

RECORD = Path("results/launchwise.json")
"""In the folder that Snakemake runs in; written where a run begins."""

KEY = "version"


def check_version(path: Path = RECORD, own: str = launchwise.__version__) -> None:
    """Insist that no newer version made the results; those of an older one are brought up to date.
    Raises UserError when a newer version made them: this one may misread what it does not know."""
    _insist_on_folder(path.parent)
    if not path.is_file():
        return
    made = str(read_json_object(path, KEY)[KEY])
    try:
        theirs = Version(made)
    except InvalidVersion as error:
        raise UserError(path, KEY, f"{made!r} is no version: remove the file") from error
    if theirs > Version(own):
        message = (
            f"{made} made these results, this is {own}: install launchwise {made} or newer, or "
            "name another folder with --directory"
        )
        raise UserError(path, KEY, message)


def _insist_on_folder(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        message = f"is a link to {path.readlink()}, which is missing: make that folder first"
        raise UserError(path, "", message)
    if path.exists() and not path.is_dir():
        raise UserError(path, "", "is no folder: move it away, results go there")


def record_version(path: Path = RECORD, own: str = launchwise.__version__) -> None:
    """Note that this version writes results here; a stage says where nothing can be written."""
    with contextlib.suppress(UserError):
        if not path.is_file() or read_json_object(path, KEY)[KEY] != own:
            write_json(path, {KEY: own})


def check_temporary_folder() -> None:
    """Insist that ``TMPDIR`` is not full: Snakemake's scheduler writes there what it solves. Of one
    that is missing or may not be written to, everybody takes ``/tmp`` instead. Raises UserError
    when it is."""
    named = os.environ.get("TMPDIR")
    refused = why_not_written(Path(named)) if named else None
    if refused is not None and refused.errno in FULL:
        message = f"cannot be written: {refused.strerror}: free space, or set another TMPDIR"
        raise UserError(f"TMPDIR={named}", "", message)


def is_one_word(path: str | Path) -> bool:
    """Whether a shell takes a path as one word without quotes."""
    return shlex.quote(str(path)) == str(path)


def name_in_one_word() -> None:
    """Let ``sys.executable`` be a path without spaces: through a link to this environment. The link
    lies in the user's cache, which nodes of a cluster share, or else in a temporary folder of this
    process. Where neither can be had, the path stays."""
    if is_one_word(sys.executable):
        return
    # One folder above that of the interpreter: there Python looks for its packages by the path
    # that it is called by.
    python = Path(sys.executable).absolute()
    environment = python.parents[1]
    link = user_cache() / "environments" / digest(str(environment))
    if not is_one_word(link) or not _linked(link, environment):
        folder = tempfile.TemporaryDirectory(prefix="launchwise-")
        atexit.register(folder.cleanup)
        link = Path(folder.name, "environment")
        if not is_one_word(link) or not _linked(link, environment):
            return
    sys.executable = str(link / python.relative_to(environment))


def _linked(link: Path, environment: Path) -> bool:
    with contextlib.suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(environment)
    with contextlib.suppress(OSError):
        return os.readlink(link) == str(environment)
    return False
