"""The code of a rule, as one of its parameters: another digest reruns it.

Snakemake detects edits of a script only. With the files as inputs, a comment would rerun a stage,
and Snakemake would ask for their sizes over and over while jobs wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from launchwise.base.imports import ROOT, library_files
from launchwise.base.storage import digest, digest_in_order
from launchwise.workflow.code_cache import FOLDER, KeptDigests, KeptFacts
from launchwise.workflow.code_digest import Behaviour
from launchwise.workflow.code_graph import PACKAGE


class Code:
    """Digests of what scripts do.

    Parameters
    ----------
    workloads
        Folders of the workloads, whose code scripts may import dynamically.
    root
        Folder of the project.
    folder
        Where digests are kept between runs.
    """

    def __init__(
        self, workloads: Iterable[Path] = (), root: Path = ROOT, folder: Path = FOLDER
    ) -> None:
        self._root = root
        self._users = sorted(
            path.resolve() for workload in workloads for path in workload.rglob("*.py")
        )
        self._facts = KeptFacts(folder / "code_facts.json")
        self._behaviour = Behaviour(root, self._facts, self._callers())
        self._kept = KeptDigests(folder / "code_digests.json", self._state())

    def __call__(self, *start: str) -> str:
        """Digest of what some files of code do, with all that they reach.

        Parameters
        ----------
        start
            Paths from the root of the project, such as ``scripts/clean.py``.
        """
        key = digest(sorted(start))
        known = self._kept.get(key)
        if known is None:
            files = [self._root / path for path in start]
            known = self._behaviour.digest(files, lambda: set(library_files(files)))
            self._facts.save()
            self._kept.keep(key, known)
        return known

    def _callers(self) -> list[Path]:
        """Code of workloads that a script may run: not their tests, nor sections of the report."""
        left_out = {"tests", "studies"}
        return [path for path in self._users if not left_out & set(path.parts)]

    def _state(self) -> str:
        """Digest of every Python file that a digest of code may depend on."""
        own = [path for name in (PACKAGE, "scripts") for path in (self._root / name).rglob("*.py")]
        files = [*sorted(own), *self._users]
        return digest([[str(self._root), *map(str, files)], digest_in_order(files)])
