"""Facts about Python files and digests of scripts, kept from one run of Snakemake to the next.

Parsing the library takes seconds, following names a second, and every job reads the Snakefile
again. Facts are kept by the digest of a file's content; digests of scripts as long as no Python
file of the project or of a workload changes. Both are JSON files, which are replaced as a whole.
One that is missing, damaged or of another version is ignored; of several writers the last one wins.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from launchwise.base.storage import digest_in_order
from launchwise.workflow import (
    code_digest,
    code_facts,
    code_graph,
    code_handlers,
    code_names,
    code_text,
)
from launchwise.workflow.code_facts import Facts, facts_of

FOLDER = Path(".snakemake/launchwise")
"""In the folder that Snakemake runs in."""

MOST = 2000
"""Files whose facts are kept; beyond that, only those of files that were asked for."""

EMPTY = Facts(units=[], imports={}, loads=[], unused=[], stars=[])
"""A package without ``__init__.py``."""


class KeptFacts:
    """Facts about files, kept by their content.

    Parameters
    ----------
    file
        Where they are kept.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._kept: dict[str, Facts] | None = None
        self._of_files: dict[Path, Facts] = {}
        self._used: set[str] = set()
        self._new = 0
        atexit.register(self.save, least=1)

    def __call__(self, path: Path) -> Facts:
        """Facts about a file; a file that is no Python is one statement, told by its bytes."""
        known = self._of_files.get(path)
        if known is None:
            known = self._of_files[path] = self._read(path)
        return known

    def save(self, least: int = 20) -> None:
        """Keep what was found, if that is of at least so many files."""
        if self._new >= least and self._kept is not None:
            kept = self._kept
            if len(kept) > MOST:
                kept = {key: kept[key] for key in self._used}
            store(self._file, {"version": version(), "facts": kept})
            self._new = 0

    def _read(self, path: Path) -> Facts:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return EMPTY
        if self._kept is None:
            self._kept = _kept_facts(self._file)
        key = hashlib.sha256(content).hexdigest()[:32]
        self._used.add(key)
        if key not in self._kept:
            self._kept[key] = _facts(content, key)
            self._new += 1
        return self._kept[key]


class KeptDigests:
    """Digests, kept as long as a state lasts.

    Parameters
    ----------
    file
        Where they are kept.
    state
        Another state than before begins anew.
    """

    def __init__(self, file: Path, state: str) -> None:
        self._file, self._state = file, state
        stored = load(file)
        same = isinstance(stored, dict) and stored.get("state") == [state, *version()]
        found = stored.get("digests") if same else None
        pairs = found.items() if isinstance(found, dict) else ()
        self._digests = {key: value for key, value in pairs if isinstance(value, str)}

    def get(self, key: str) -> str | None:
        """A digest, None if it is not known."""
        return self._digests.get(key)

    def keep(self, key: str, value: str) -> None:
        """Keep a digest."""
        self._digests[key] = value
        store(self._file, {"state": [self._state, *version()], "digests": self._digests})


@cache
def version() -> tuple[Any, ...]:
    """Digest of the code that finds facts, and the version of Python whose syntax it reads."""
    modules = (code_names, code_text, code_handlers, code_facts, code_graph, code_digest)
    files = [Path(str(module.__file__)) for module in modules]
    return (digest_in_order(files), *sys.version_info[:2])


def load(file: Path) -> Any:
    """Content of a JSON file; None where it is missing or damaged."""
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def store(file: Path, content: Any) -> None:
    """Replace a JSON file as a whole; nothing happens where that is impossible.

    Without flushing it to disk: what a crash damages is ignored.
    """
    scratch = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(json.dumps(content, separators=(",", ":")))
        os.chmod(scratch, 0o644)
        os.replace(scratch, file)
    except OSError:
        if scratch is not None:
            with contextlib.suppress(OSError):
                os.unlink(scratch)


def _facts(content: bytes, key: str) -> Facts:
    try:
        return facts_of(content.decode())
    except (SyntaxError, ValueError, RecursionError):
        unit = code_facts.Unit(
            defines=[],
            effect=True,
            main=False,
            texts=[key for _ in code_text.LEVELS],
            uses=[[] for _ in code_text.LEVELS],
            imports={},
            needs=code_text.BARE,
            dynamic=False,
            whole=False,
            hooks=False,
        )
        return {**EMPTY, "units": [unit]}


def _kept_facts(file: Path) -> dict[str, Facts]:
    content = load(file)
    try:
        if content["version"] != [*version()]:
            return {}
        return {key: facts for key, facts in content["facts"].items() if _is_whole(facts)}
    except (TypeError, KeyError, AttributeError):
        return {}


def _is_whole(facts: Any) -> bool:
    return EMPTY.keys() == facts.keys() and all(
        code_facts.Unit.__annotations__.keys() == unit.keys() for unit in facts["units"]
    )
