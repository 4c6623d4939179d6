"""The code of a rule, as one of its parameters: another digest reruns it.

Snakemake compares the script of a rule alone, by the time of its file. A digest counts what the
script imports, too, and stays as it is in a copy of the project with other times.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from launchwise.base.imports import library_files
from launchwise.base.places import PACKAGE, shipped
from launchwise.base.storage import digest


class Code:
    """Digests of the code that scripts run."""

    def __init__(self) -> None:
        self._digests: dict[frozenset[str], str] = {}

    def __call__(self, *start: str) -> str:
        """Digest of some files and of all library files that they import, directly or indirectly.

        Names and places of the files do not count: the digest is the same in every folder, and in
        a wheel. Nor does the file with launchwise's version, which no result follows from.

        Parameters
        ----------
        start
            Python files: absolute, or from the root of the project, such as ``scripts/clean.py``.

        Raises
        ------
        FileNotFoundError
            When one of them is missing.
        """
        key = frozenset(start)
        if key not in self._digests:
            named = [shipped(path) for path in key]
            files = {*named, *library_files(named)} - {shipped(f"{PACKAGE}/__init__.py")}
            self._digests[key] = digest(sorted(map(_content, files)))
        return self._digests[key]


@cache
def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
