"""Folders that a run writes to: results of which version, and the one for temporary files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from packaging.version import InvalidVersion, Version

import launchwise
from launchwise.base.errors import UserError
from launchwise.base.storage import FULL, read_json_object, why_not_written, write_json

RECORD = Path("results/launchwise.json")
"""In the folder that Snakemake runs in; written where a run begins."""

KEY = "version"


def check_version(path: Path = RECORD, own: str = launchwise.__version__) -> None:
    """Insist that no newer version made the results; those of an older one are brought up to date.

    Raises
    ------
    UserError
        When a newer version made them: this one may misread what it does not know.
    """
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
    """Insist that ``TMPDIR`` is not full: Snakemake's scheduler writes there what it solves.

    Of one that is missing or may not be written to, everybody takes ``/tmp`` instead.

    Raises
    ------
    UserError
        When it is.
    """
    named = os.environ.get("TMPDIR")
    refused = why_not_written(Path(named)) if named else None
    if refused is not None and refused.errno in FULL:
        message = f"cannot be written: {refused.strerror}: free space, or set another TMPDIR"
        raise UserError(f"TMPDIR={named}", "", message)
