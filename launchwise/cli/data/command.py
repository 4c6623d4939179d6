"""Arguments and options of ``launchwise data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def data(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="The archive launchwise-data-VERSION.zip: a file or a URL. Or a clone's folder.",
        ),
    ],
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Project that gets the sweeps, as DIR/data/.")
    ] = Path("."),
    sha256: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Checksum that the archive must have."),
    ] = None,
) -> None:
    """Take in the recorded sweeps, which the wheel leaves out for their size.

    Every file is compared with its checksum in the archive. Files that are there already stay; a
    call that was interrupted goes on.
    """
    from launchwise.cli.data.archive import take_in

    print(take_in(source, folder, sha256))
