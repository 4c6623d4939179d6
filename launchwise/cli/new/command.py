"""Arguments and options of ``launchwise new``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def new(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder of the workload; its name is the workload's."),
    ],
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The CUDA file; it is copied as it is. Or a .py file with functions of Triton, or "
            "one that calls cupy.RawKernel or cupy.RawModule: it is run, with stand-ins for both.",
        ),
    ],
    kernel: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default="the first", help="A kernel of the file."),
    ] = None,
) -> None:
    """Write DIR/spec.yaml for a kernel, from the names in its file.

    Every line that a person must decide ends with a question: # ? The value before it is valid, so
    that the file can be read at once.
    """
    from launchwise.cli.new.folder import begin

    for line in begin(folder, source, kernel):
        print(line)
