"""Whether the folder for temporary files can hold any, asked before a run."""

from __future__ import annotations

import os
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.storage import FULL, why_not_written


def check_temporary_folder() -> None:
    """Insist that ``TMPDIR`` is not full: Snakemake's scheduler writes there what it solves.

    Of one that is missing or may not be written to, everybody takes ``/tmp`` instead.

    Raises
    ------
    UserError
        When it is.
    """
    named = os.environ.get("TMPDIR")
    refused = why_not_written(Path(named)) if named else None
    if refused is not None and refused.errno in FULL:
        message = f"cannot be written: {refused.strerror}: free space, or set another TMPDIR"
        raise UserError(f"TMPDIR={named}", "", message)
