"""Arguments and options of ``launchwise init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder; new or empty.")],
    studies: Annotated[
        bool,
        typer.Option(
            "--studies",
            help="Settings of launchwise's own studies on recorded sweeps, in place of an example.",
        ),
    ] = False,
) -> None:
    """Make a folder that is ready for Snakemake: settings, profiles, a workload as an example.

    The Snakefile in it runs launchwise's workflow, from wherever launchwise is installed.
    """
    from launchwise.cli.init.project import begin

    for line in begin(folder, studies):
        print(line)
