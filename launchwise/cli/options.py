"""Arguments and options that several commands have, and the settings that are read without any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from launchwise.base.errors import UserError

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
    """Files of ``--configfile``, or the one that is read without it.

    Raises
    ------
    UserError
        When neither is there.
    """
    usual = Path("config.yaml")
    if not given and not usual.is_file():
        for path in sorted(Path("kernels").glob("*/settings.yaml")):
            raise UserError(usual, "", f"is missing: name settings, such as --configfile {path}")
        message = "is missing: run this in the folder of your settings, name them by --configfile,"
        raise UserError(usual, "", f"{message} or begin one with launchwise init DIR")
    return list(given or [usual])
