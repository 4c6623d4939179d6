"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Workload = Annotated[
    str, typer.Argument(help="Folder with a spec.yaml, or a workload of kernels/.")
]
Cores = Annotated[
    int | None, typer.Option(min=1, help="Cores for compilation.", show_default="all")
]
