"""Finds the workload that a command names."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import shipped


def workload_folder(named: str) -> Path:
    """Folder of a workload: a path that holds ``spec.yaml``, or a name below ``kernels/``.

    That is the folder here, then launchwise's own.

    Raises
    ------
    UserError
        When there is none.
    """
    path = Path(named)
    if path.name == SPEC_FILE:
        path = path.parent
    for folder in (path, Path("kernels", named), shipped("kernels") / named):
        if (folder / SPEC_FILE).is_file():
            return folder.resolve()
    message = f"is neither a folder with {SPEC_FILE} nor a workload of kernels/"
    if path.is_file():
        message = f"is no workload: launchwise new {path.stem} --from {named} makes one"
    raise UserError(named, "", message)
