"""Which version of launchwise made a folder of results."""

from __future__ import annotations

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
    if not path.is_file():
        return None
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


def record_version(path: Path = RECORD, own: str = launchwise.__version__) -> None:
    """Note that this version writes results here."""
    if not path.is_file() or read_json_object(path, KEY)[KEY] != own:
        write_json(path, {KEY: own})
