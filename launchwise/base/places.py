"""Where launchwise's own files lie: in a clone of its repository, and in an installed wheel alike.

Files that are no modules of the package (the Snakefile, ``rules/``, ``scripts/``, ``kernels/``,
``schemas/``, tables of cards) are named by their path in the repository. A wheel holds them in
``launchwise/shipped/``, by the same paths; what it leaves out (recorded sweeps, tests, documents)
is missing there. What users have lies in the folder that a command runs in.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = "launchwise"
ROOT = Path(__file__).resolve().parents[2]
"""Folder that holds the package: the clone, or ``site-packages``."""

_IN_WHEEL = ROOT / PACKAGE / "shipped"
SHIPPED = _IN_WHEEL if _IN_WHEEL.is_dir() else ROOT
"""Folder that holds everything else; in a clone the same."""

IN_CLONE = SHIPPED == ROOT

GPU_EXTRA = "`make gpu`" if IN_CLONE else '`pip install "launchwise[gpu]"`'
"""What installs the packages that measuring on a GPU needs."""

RECORDED_ELSEWHERE = "" if IN_CLONE else "take recorded sweeps in with launchwise data, "
"""What helps, too, where recorded data are missing: a wheel leaves them out."""


def shipped(path: str | Path = "") -> Path:
    """A file or folder of launchwise, by its path in the repository; it need not exist.

    ``path``: such as ``rules/common.smk`` or ``launchwise/cuda/child.py``.
    """
    return (ROOT if Path(path).parts[:1] == (PACKAGE,) else SHIPPED) / path


def is_module(path: Path) -> bool:
    """Whether a file is one of the package's own modules."""
    shipped_there = not IN_CLONE and path.is_relative_to(SHIPPED)
    return path.is_relative_to(ROOT / PACKAGE) and not shipped_there


def in_repository(path: Path) -> Path:
    """The place that a file of launchwise has in a clone; other paths stay. For orders and names
    that must be the same for a clone and a wheel of it."""
    return ROOT / path.relative_to(SHIPPED) if path.is_relative_to(SHIPPED) else path


def here_or_shipped(path: str | Path, here: Path = Path()) -> Path:
    """A path of the settings: below ``here``, else launchwise's own of that name. A path that is in
    neither is below ``here``."""
    own = here / path
    apart = Path(path).is_absolute() or ".." in Path(path).parts
    return own if apart or own.exists() or not shipped(path).exists() else shipped(path)
