"""One side of a comparison: sweeps of a folder, a file or a git commit."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow

from launchwise.base.arrays import read_parquet
from launchwise.base.errors import UserError
from launchwise.base.names import inside as within
from launchwise.base.storage import MOST_BYTES
from launchwise.tables.files import kind_of, read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec

SWEEPS = "sweeps"  # Folder of `results/` that holds sweeps
BLIND = "blind"  # Folder of a recorded GPU that holds the sweeps of its blind tests
Key = tuple[str, str]  # GPU and workload


@dataclass(frozen=True)
class Side:
    name: str  # as the user named it
    files: Mapping[Key, Path]  # parquet file of each sweep
    scratch: Path | None = None  # folder of files that were taken out of a commit

    def shown(self, path: Path) -> str:
        """A file as the user knows it."""
        if self.scratch is None:
            return str(path)
        return f"{self.name}: {path.relative_to(self.scratch).as_posix()}"

    def read(self, key: Key, spec: Spec) -> pd.DataFrame:
        """Rows of a sweep, with the columns of today's schema. Raises UserError when the file does
        not fit the workload."""
        path = self.files[key]
        try:
            return read_table(path, measurement_schema(spec))
        except UserError as error:
            raise UserError(self.shown(path), error.key, error.message) from error


@contextmanager
def opened(named: str, repository: Path) -> Iterator[Side]:
    """Sweeps that a word of the command line names; those of a commit exist within the block.

    ``named``: ``results/`` of a checkout, a folder with ``GPU/WORKLOAD.parquet``, the folder of one
    GPU, a Parquet file, or ``git:COMMIT`` (see :func:`launchwise.comparing.sides.write_sweeps`).
    ``repository``: a folder inside the repository of commits.
    Raises UserError when it is missing, holds no sweep or two of one workload on one GPU, or a file
    cannot be read.
    """
    if not named.startswith(PREFIX):
        yield _side(named, Path(named), None)
        return
    with tempfile.TemporaryDirectory(prefix="launchwise-compare-") as folder:
        scratch = Path(folder)
        write_sweeps(named, repository, scratch)
        yield _side(named, scratch, scratch)


def _side(named: str, path: Path, scratch: Path | None) -> Side:
    if not path.exists():
        raise UserError(named, "", "is missing: neither a folder nor a file")
    files: dict[Key, Path] = {}
    side = Side(named, files, scratch)
    for file in _candidates(path):
        try:
            key = _key(file) if path == file or kind_of(file) == "measurements" else None
        except UserError as error:
            raise UserError(side.shown(file), error.key, error.message) from error
        if key is None:
            continue
        if key in files:
            gpu, workload = key
            message = f"holds {workload} on {gpu}, as {side.shown(files[key])} does"
            raise UserError(side.shown(file), "", message)
        files[key] = file
    if not files:
        message = f"holds no sweep: no {SWEEPS}/GPU/WORKLOAD.parquet, no GPU/WORKLOAD.parquet"
        raise UserError(named, "", message)
    return side


def _candidates(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    top = path / SWEEPS if (path / SWEEPS).is_dir() else path
    # Blind tests lie inside a recorded GPU's folder, with sweeps of their own.
    of_gpus = [file for file in sorted(top.glob("*/*.parquet")) if file.parent.name != BLIND]
    return of_gpus or sorted(top.glob("*.parquet"))


def _key(path: Path) -> Key:
    """GPU and workload of a sweep. Raises UserError when the file is no sweep of one workload on
    one GPU, or cannot be read."""
    if (kind := kind_of(path)) != "measurements":
        raise UserError(path, "", f"holds {kind}, not measurements")
    names = ("gpu", "workload")
    try:
        table = read_parquet(path, names)
        found = [table[name].unique().to_pylist() for name in names]
    except (OSError, ValueError, KeyError, pyarrow.ArrowException) as error:
        raise UserError(path, "", f"cannot be read (truncated?): {error}") from error
    for name, values in zip(names, found, strict=True):
        if len(values) != 1:
            said = f"has {', '.join(map(str, values))}: one is allowed" if values else "has no row"
            raise UserError(path, name, said)
    return str(found[0][0]), str(found[1][0])


PREFIX = "git:"
RECORDED = "data/recorded"  # Folder that is read where none is named
_FILE = "100"  # Start of git's mode of a plain file, neither link nor submodule


def write_sweeps(named: str, repository: Path, folder: Path) -> None:
    """Write every Parquet file of a commit's folder below ``folder``, by its path in that one.

    ``named``: ``git:COMMIT`` or ``git:COMMIT:FOLDER``; the folder is named from the top of the
    repository and is :data:`RECORDED` when left out. ``repository``: a folder inside the
    repository.
    Raises UserError when git is not installed, there is no repository, commit or folder.
    """
    commit, _, inside = named.removeprefix(PREFIX).partition(":")
    inside = inside.strip("/") or RECORDED
    top = _git(repository, "rev-parse", "--git-dir")
    if top is None:
        raise UserError(named, "", f"{repository.resolve()} is not in a git repository")
    tree = _git(repository, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}")
    if not commit or tree is None:
        raise UserError(named, "", f"the repository has no commit {commit!r}")
    # Named by its tree, a folder is listed from its own top, wherever git is run.
    listed = _git(repository, "ls-tree", "-rlz", "--full-tree", f"{_text(tree)}:{inside}")
    if listed is None:
        raise UserError(named, "", f"the commit has no folder {inside}")
    for line in os.fsdecode(listed).split("\0"):
        facts, _, name = line.partition("\t")
        if not name.endswith(".parquet") or not facts.startswith(_FILE):
            continue
        *_, blob, size = facts.split()
        if int(size) > MOST_BYTES:
            raise UserError(named, name, f"is longer than {MOST_BYTES:,} bytes")
        content = _git(repository, "cat-file", "blob", blob)
        if content is None:
            raise UserError(named, name, "cannot be read from the repository")
        path = within(folder, name, named, inside)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _git(repository: Path, *arguments: str) -> bytes | None:
    """Output of git; None where it fails. Raises UserError when git is not installed."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=repository, capture_output=True, check=False, timeout=600
        )
    except FileNotFoundError as error:
        raise UserError("git", "", "is not installed") from error
    return done.stdout if done.returncode == 0 else None


def _text(printed: bytes) -> str:
    return os.fsdecode(printed).strip()
