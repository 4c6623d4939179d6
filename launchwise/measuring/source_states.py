"""States of a workload's folder: files that decide what its rows mean, and equivalent states."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT, in_repository, library_files
from launchwise.base.storage import digest, digest_files, digest_in_order
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.measuring import openmp
from launchwise.workloads.builds import COMPARE_HALF_SOURCE, COMPARE_SOURCE, DIGEST_SOURCE
from launchwise.workloads.declared.declared_workload import host_file
from launchwise.workloads.sources import OFFLOADING, TRITON, included_files, source_text
from launchwise.workloads.spec import Spec

FLAGS = ["-std=c++17", "-O3", "-Xptxas", "-v"]  # Options of nvcc
MEASURING = ROOT / "launchwise" / "cuda" / "child.py"  # Modules that every measuring process runs

SOURCES = ("*.cu", "*.cuh", "*.h", "*.c", "host/*.c", "spec.yaml")


def fingerprint(folder: Path, release: str) -> str:
    """Hash of every file that determines the results and run times of the kernels of ``folder``.
    With the releases of the compilers: nvcc's, and that of Triton where a file imports it."""
    return digest([digest_of_sources(folder), FLAGS, *_releases(folder, release)])


def _releases(folder: Path, nvcc: str) -> list[str]:
    """Releases of nvcc and, where a file of the folder imports it, of the installed Triton."""
    if not _of_triton(folder):
        return [nvcc]
    try:
        return [nvcc, f"triton {metadata.version('triton')}"]
    except metadata.PackageNotFoundError:
        return [nvcc, "triton"]


def digest_of_sources(folder: Path) -> str:
    """Digest of every file that decides what the rows of a workload mean."""
    return _digest(folder, deciding_files(folder))


@dataclass(frozen=True)
class SourceState:
    """Digests of the files that decide what the rows of a workload's folder mean."""

    sources: str  # of all of them
    host: str  # of the Python and C code that prepares inputs, launches kernels and checks outputs
    # Variant to the digest of its source, with what it includes and its compiler's options.
    kernels: Mapping[str, str]

    def as_facts(self) -> dict[str, Any]:
        """As the metadata of a table hold it."""
        return asdict(self)

    def agrees(self, other: SourceState, variant: str) -> bool:
        """Whether rows of a variant mean the same in both states."""
        if self.sources == other.sources:
            return True
        same = self.kernels.get(variant) == other.kernels.get(variant) is not None
        return same and self.host == other.host


def source_state(folder: Path, spec: Spec) -> SourceState:
    """State of a workload's folder as it is now."""
    files = deciding_files(folder)
    of_variants = _of_triton(folder)
    return SourceState(
        sources=digest_of_sources(folder),
        host=_digest(
            folder, [path for path in files if _is_of_host(path) and path not in of_variants]
        ),
        kernels={
            name: _kernel_digest(folder, variant.source, spec.headers)
            for name, variant in spec.variants.items()
            if variant.source is not None
        },
    )


def _is_of_host(path: Path) -> bool:
    """Whether a file belongs to all variants: C beside ``spec.yaml`` is the source of one."""
    return path.suffix == ".py" or (path.suffix == ".c" and path.parent.name == "host")


def watched_paths(folder: Path) -> list[Path]:
    """What git watches to say whether a workload's kernels have changed. Patterns of sources and
    the folder of the host's code, so that deleted files count, and files that import Triton; what
    the folder shares with others is left out."""
    return [*(folder / name for name in SOURCES), folder / "host", *_of_triton(folder)]


def _of_triton(folder: Path) -> list[Path]:
    """Files of a workload's folder that import Triton: they may import each other."""
    pattern = re.compile(r"^\s*(?:import|from)\s+triton\b", re.MULTILINE)
    return [path for path in sorted(folder.glob(f"*{TRITON}")) if pattern.search(source_text(path))]


def _kernel_digest(folder: Path, source: str, headers: Sequence[str]) -> str:
    if source.endswith(TRITON):
        return digest([digest_files(_of_triton(folder))])
    if source.endswith(OFFLOADING):
        return digest([digest_files(included_files(folder, [source])), openmp.FLAGS])
    return digest([digest_files(included_files(folder, [source, *headers])), FLAGS])


def _digest(folder: Path, files: list[Path]) -> str:
    """Digest of files; how the path of their folder is written makes no difference."""
    inside = folder.resolve()
    whole = sorted((path.resolve() for path in files), key=in_repository)
    own = [path for path in whole if path.is_relative_to(inside)]
    return digest_in_order([*(path for path in whole if path not in own), *own])


PREDECESSORS_FILE = "predecessors.yaml"
"""File beside ``spec.yaml``: earlier states of the folder whose rows remain valid."""


class Predecessor(Strict):
    """An earlier state of a workload's folder that measured the same."""

    sources: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{16}$",
        description="digest of its deciding files; without it, its journals are not continued",
    )
    commit: str = Field(pattern=r"^[0-9a-f]{7,40}$", description="a commit that had it")
    variants: list[str] | None = Field(
        None, min_length=1, description="variants whose rows remain valid; all when left out"
    )
    why: str = Field(description="what has changed since, and why times mean the same")

    def vouches(self, commit: str, state: SourceState | None, variant: str) -> bool:
        """Whether rows of a variant, measured at ``commit`` and in ``state``, remain valid."""
        known = state is not None and state.sources == self.sources
        named = self.variants is None or variant in self.variants
        return named and (known or commit.removesuffix("+changes").startswith(self.commit))


def predecessors(folder: Path) -> list[Predecessor]:
    """Entries of ``predecessors.yaml``; none without the file. Raises UserError when the file is
    not a list of predecessors."""
    path = folder / PREDECESSORS_FILE
    if not path.is_file():
        return []
    listed = read_yaml(path)
    if not isinstance(listed, list):
        raise UserError(path, "", "must be a list")
    return [validated(Predecessor, each, path) for each in listed]


def earlier_fingerprints(folder: Path, release: str) -> list[str]:
    """:func:`fingerprint` of the states whose journals are continued. Those that
    ``predecessors.yaml`` lists with a digest and for all variants. Raises UserError when the file
    is not a list of predecessors."""
    whole = [each for each in predecessors(folder) if each.sources and each.variants is None]
    return [digest([each.sources, FLAGS, *_releases(folder, release)]) for each in whole]


def strangers(
    made: Collection[tuple[str, str]],
    states: Mapping[str, SourceState],
    now: SourceState,
    earlier: Collection[Predecessor],
) -> list[tuple[str, str]]:
    """Rows of an earlier sweep that would mean something else today: those of ``made`` (commit and
    variant) whose kernel or host code has changed since. ``states``: commit to the state in which
    its rows were measured, where the sweep holds it. ``now``: state of the folder. ``earlier``:
    states that somebody vouches for."""
    return [
        (commit, variant)
        for commit, variant in made
        if not (commit in states and states[commit].agrees(now, variant))
        and not any(each.vouches(commit, states.get(commit), variant) for each in earlier)
    ]


def deciding_files(folder: Path) -> list[Path]:
    """Files that decide what a workload's kernels compute and how they are run.

    CUDA sources, headers that they include from elsewhere (``kernels/common/``), files that import
    Triton, C sources of the host, ``spec.yaml``, ``host/workload.py``, and the files of its package
    and of the library that it imports at module level, except those that every sweep depends on.
    Without host code, the kernel of the project that compares outputs.
    """
    own = [path for pattern in SOURCES for path in folder.glob(pattern)] + _of_triton(folder)
    known = {path.resolve() for path in own}
    names = [path.name for path in own if path.suffix != ".yaml"]
    host = host_file(folder)
    if names and not host.is_file():
        names += [COMPARE_SOURCE, COMPARE_HALF_SOURCE, DIGEST_SOURCE]
    own += [path for path in included_files(folder, names) if path not in known]
    if not host.is_file():
        return own
    shared = set(library_files([MEASURING]))
    code = library_files([host], lazy=False)
    return [*own, host, *(path for path in code if path not in shared)]
