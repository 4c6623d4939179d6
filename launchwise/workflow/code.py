"""The code of a rule, as one of its parameters: another digest reruns it.

Snakemake detects edits of a script only. With the files as inputs, a comment would rerun a stage,
and Snakemake would ask for their sizes over and over while jobs wait.

Every job reads the Snakefile again. So facts about files are kept by the content of a file, and
digests as long as no Python file of the project or of a workload changes, in one JSON file. Both
are kept for all projects of a user, too: to find them takes seconds in a new folder. A file that is
missing, damaged or of another version is ignored; of several writers the last one wins.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import PACKAGE, ROOT, shipped
from launchwise.base.storage import digest, digest_files, user_cache, write_text
from launchwise.workflow import code_facts, code_graph
from launchwise.workflow.code_facts import REST, Facts, Part, facts_of
from launchwise.workflow.code_graph import Graph

FILE = Path(".snakemake/launchwise/code.json")
"""In the folder that Snakemake runs in."""

SHARED = "code.json"
"""Facts and digests in the user's cache."""
MOST_SHARED = 2000
"""Files whose facts are shared: those of several versions of the project."""
MOST_STATES = 50
"""States of the code whose digests are shared."""

_Kept = dict[str, Any]


class Code:
    """Digests of what scripts do.

    Parameters
    ----------
    workloads
        Folders of the workloads, whose code scripts may import dynamically.
    root
        Folder of the project.
    file
        Where facts and digests are kept between runs.
    """

    def __init__(
        self, workloads: Iterable[Path] = (), root: Path = ROOT, file: Path = FILE
    ) -> None:
        self._root, self._file = root, file
        users = sorted(path.resolve() for each in workloads for path in each.rglob("*.py"))
        own = [path for name in (PACKAGE, "scripts") for path in self._place(name).rglob("*.py")]
        self._keys = {str(path): _key(path.read_bytes()) for path in (*sorted(own), *users)}
        self._facts: dict[str, Facts] = {}
        # Scripts run neither tests nor sections of the report.
        users = [path for path in users if not {"tests", "studies"} & set(path.parts)]
        self._graph = Graph(root, self._facts_of, users)
        self._version = [digest_files([Path(each.__file__ or "") for each in _MODULES])]
        self._version += map(str, sys.version_info[:2])
        # Equal in every copy of the project, as digests are.
        named = sorted((self._graph.place(path), key) for path, key in self._keys.items())
        self._state = digest([*self._version, named])
        self._shared: _Kept | None = None
        self._kept = self._read()
        self._found: dict[str, Facts] = {}
        self._changed = False
        atexit.register(self.save)

    def __call__(self, *start: str) -> str:
        """Digest of what some files of code do, with all that they reach.

        Parameters
        ----------
        start
            Paths from the root of the project, such as ``scripts/clean.py``.
        """
        key = " ".join(sorted(start))
        digests = self._kept["digests"]
        if key not in digests:
            shared = self._of_all_projects()["digests"].get(self._state, {})
            digests[key] = shared.get(key) or self._graph.digest(map(self._place, start))
            self._changed = True
        return str(digests[key])

    def _place(self, path: str) -> Path:
        return shipped(path) if self._root == ROOT else self._root / path

    def save(self) -> None:
        """Keep what was found; nothing happens where that is impossible."""
        if self._changed:
            asked = {*self._keys.values()}
            facts = {key: each for key, each in self._kept["facts"].items() if key in asked}
            content = {**self._kept, "facts": facts}
            with contextlib.suppress(UserError):
                write_text(self._file, json.dumps(content, separators=(",", ":")))
            self._share()
            self._changed = False

    def _share(self) -> None:
        """Add what was found to what all projects share, the newest last."""
        shared = self._read_shared()
        digests = shared["digests"].pop(self._state, {})
        found = {**digests, **self._kept["digests"]}
        if self._found or found != digests:
            facts = {**shared["facts"], **self._found}
            states = {**shared["digests"], self._state: found}
            content = {
                "version": self._version,
                "facts": dict([*facts.items()][-MOST_SHARED:]),
                "digests": dict([*states.items()][-MOST_STATES:]),
            }
            with contextlib.suppress(UserError):
                write_text(user_cache() / SHARED, json.dumps(content, separators=(",", ":")))
            self._found = {}

    def _facts_of(self, path: str) -> Facts:
        """Facts about a file; a file that is no Python is one statement, told by its bytes."""
        if path not in self._facts:
            content = Path(path).read_bytes() if Path(path).is_file() else b""
            key = self._keys[path] = _key(content)
            if key not in self._kept["facts"]:
                self._kept["facts"][key] = self._shared_or_found(content, key)
            self._facts[path] = self._kept["facts"][key]
        return self._facts[path]

    def _shared_or_found(self, content: bytes, key: str) -> Facts:
        facts: dict[str, Facts] = self._of_all_projects()["facts"]
        if key not in facts:
            facts[key] = self._found[key] = _found(content, key)
        return facts[key]

    def _of_all_projects(self) -> _Kept:
        """What all projects share, read once."""
        if self._shared is None:
            self._shared = self._read_shared()
        return self._shared

    def _read_shared(self) -> _Kept:
        """Facts by the content of a file, and digests by the state of the code."""
        try:
            kept = json.loads((user_cache() / SHARED).read_bytes())
            if kept["version"] == self._version:
                return {name: dict(kept[name]) for name in ("facts", "digests")}
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            pass
        return {"facts": {}, "digests": {}}

    def _read(self) -> _Kept:
        """What is kept; digests only of this very state."""
        new: _Kept = {"version": self._version, "state": self._state, "digests": {}, "facts": {}}
        try:
            kept = json.loads(self._file.read_bytes())
            if kept.keys() != new.keys() or kept["version"] != self._version:
                return new
            return kept if kept["state"] == self._state else {**new, "facts": kept["facts"]}
        except (OSError, ValueError, RecursionError, AttributeError):
            return new


_MODULES = (code_facts, code_graph)
"""What facts and digests depend on."""


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _found(content: bytes, key: str) -> Facts:
    try:
        return facts_of(content.decode())
    except (SyntaxError, ValueError, RecursionError):
        parts = {REST: Part(text=key, reads=[])}
        return Facts(parts=parts, binds=[], imports={}, loads=[])
