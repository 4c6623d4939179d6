"""Settings of the project that a command runs in, and their option."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

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
    """Files of ``--configfile``, or the one that is read without it."""
    return list(given or [Path("config.yaml")])
