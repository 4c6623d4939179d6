"""Which version of launchwise made a folder of results."""

from __future__ import annotations

import contextlib
from pathlib import Path

from packaging.version import InvalidVersion, Version

import launchwise
from launchwise.base.errors import UserError
from launchwise.base.storage import read_json_object, write_json

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
