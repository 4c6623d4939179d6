"""A path of this Python that a shell takes as one word.

Snakemake puts the path of its interpreter into shell lines as it is: in a folder whose name holds a
space, no script and no job on a cluster would start.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import sys
import tempfile
from pathlib import Path

from launchwise.base.storage import digest, user_cache


def is_one_word(path: str | Path) -> bool:
    """Whether a shell takes a path as one word without quotes."""
    return shlex.quote(str(path)) == str(path)


def name_in_one_word() -> None:
    """Let ``sys.executable`` be a path without spaces: through a link to this environment.

    The link lies in the user's cache, which nodes of a cluster share, or else in a temporary folder
    of this process. Where neither can be had, the path stays.
    """
    if is_one_word(sys.executable):
        return
    environment, inside = _environment(Path(sys.executable))
    link = user_cache() / "environments" / digest(str(environment))
    if not is_one_word(link) or not _linked(link, environment):
        folder = tempfile.TemporaryDirectory(prefix="launchwise-")
        atexit.register(folder.cleanup)
        link = Path(folder.name, "environment")
        if not is_one_word(link) or not _linked(link, environment):
            return
    sys.executable = str(link / inside)


def _environment(python: Path) -> tuple[Path, Path]:
    """Folder of the environment of an interpreter, and the interpreter's path inside.

    The environment is one folder above that of the interpreter: there Python looks for its packages
    by the path that it is called by.
    """
    above = python.absolute().parents[1]
    return above, python.absolute().relative_to(above)


def _linked(link: Path, environment: Path) -> bool:
    """Whether a link leads to the environment, made now if need be."""
    with contextlib.suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(environment)
    with contextlib.suppress(OSError):
        return os.readlink(link) == str(environment)
    return False
