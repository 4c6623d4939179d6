"""Names of files that commands look for before they load anything, and of workloads."""

from __future__ import annotations

import re
from pathlib import Path

from launchwise.base.errors import UserError

SPEC_FILE = "spec.yaml"
"""Specification of a workload, in its folder."""

WORKLOAD = r"^[a-z][a-z0-9_]*$"
"""Pattern of the names of workloads."""


def check_folder_name(folder: Path) -> None:
    """Insist that a folder's name is one that a workload may have.

    Raises
    ------
    UserError
        When it is not, with a name near to it.
    """
    name = folder.name
    if not re.fullmatch(WORKLOAD, name):
        near = re.sub(r"[^a-z0-9_]", "_", name.lower()).lstrip("0123456789_") or "kernel"
        message = "names the workload: lower-case letters, digits and _, a letter first"
        raise UserError(folder, "", f"{message}; such as {near}")
