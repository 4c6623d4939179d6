"""States of a workload's folder: which files decide what its rows mean, and which states agree."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.imports import ROOT, library_files
from launchwise.base.storage import digest, digest_files
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.workloads.sources import included_files
from launchwise.workloads.workload import host_file

FLAGS = ["-std=c++17", "-O3", "-Xptxas", "-v"]
"""Options of nvcc."""

MEASURING = ROOT / "launchwise" / "cuda" / "child.py"
"""Modules that every measuring process runs."""

SOURCES = ("*.cu", "*.cuh", "*.h", "spec.yaml")


def fingerprint(folder: Path, release: str) -> str:
    """Hash of every file that determines the results and run times of the kernels of ``folder``."""
    return digest([digest_files(deciding_files(folder)), FLAGS, release])


PREDECESSORS_FILE = "predecessors.yaml"
"""File beside ``spec.yaml``: earlier states of the folder whose rows remain valid."""


class Predecessor(Strict):
    """An earlier state of a workload's folder that measured the same."""

    sources: str = Field(pattern=r"^[0-9a-f]{16}$", description="digest of its deciding files")
    commit: str = Field(description="a commit that had it")
    why: str = Field(description="what has changed since, and why times mean the same")


def earlier_fingerprints(folder: Path, release: str) -> list[str]:
    """:func:`fingerprint` of the states that ``predecessors.yaml`` lists; none without one.

    Raises
    ------
    UserError
        When the file is not a list of predecessors.
    """
    path = folder / PREDECESSORS_FILE
    if not path.is_file():
        return []
    listed = read_yaml(path)
    if not isinstance(listed, list):
        raise UserError(path, "", "must be a list")
    states = [validated(Predecessor, each, path) for each in listed]
    return [digest([each.sources, FLAGS, release]) for each in states]


def deciding_files(folder: Path) -> list[Path]:
    """Files that decide what a workload's kernels compute and how they are run.

    CUDA sources, headers that they include from elsewhere (``kernels/common/``), ``spec.yaml``,
    ``host/workload.py``, and the files of its package and of the library that it imports at module
    level, except those that every sweep depends on.
    """
    own = [path for pattern in SOURCES for path in folder.glob(pattern)]
    known = {path.resolve() for path in own}
    names = [path.name for path in own if path.suffix != ".yaml"]
    own += [path for path in included_files(folder, names) if path not in known]
    host = host_file(folder)
    if not host.is_file():
        return own
    shared = set(library_files([MEASURING]))
    code = library_files([host], lazy=False)
    return [*own, host, *(path for path in code if path not in shared)]
