"""Arguments and options that several commands have, and what they name: settings, a workload."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import shipped

Workload = Annotated[
    str, typer.Argument(help="Folder with a spec.yaml, or a workload of kernels/.")
]
Cores = Annotated[
    int | None, typer.Option(min=1, help="Cores for compilation.", show_default="all")
]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        show_default="config.yaml",
        help="Settings file; repeated, each overrides those before it.",
    ),
]
"""Option ``--configfile``."""


def settings_files(given: Sequence[Path] | None) -> list[Path]:
    """Files of ``--configfile``, or the one that is read without it. Raises UserError when neither
    is there."""
    usual = Path("config.yaml")
    if not given and not usual.is_file():
        for path in sorted(Path("kernels").glob("*/settings.yaml")):
            raise UserError(usual, "", f"is missing: name settings, such as --configfile {path}")
        message = "is missing: run this in the folder of your settings, name them by --configfile,"
        raise UserError(usual, "", f"{message} or begin one with launchwise init DIR")
    return list(given or [usual])


def workload_folder(named: str) -> Path:
    """Folder of a workload: a path that holds ``spec.yaml``, or a name below ``kernels/``. That is
    the folder here, then launchwise's own. Raises UserError when there is none."""
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
