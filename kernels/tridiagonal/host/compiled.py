"""The solver's kernels, compiled once and kept in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from launchwise.base.storage import digest, digest_files
from launchwise.measuring.compile import compile_bundle, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.sources import included_files
from launchwise.workloads.spec import load_spec

from .launches import LAYOUTS, build

FOLDER = Path(__file__).resolve().parents[1]


def cache_folder() -> Path:
    """Where compiled kernels are kept: the user's cache (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "launchwise"


def kernels(arch: str, more: Sequence[str] = ()) -> Path:
    """A bundle of the solver's kernels for an architecture, compiled when it is not there.

    Parameters
    ----------
    more
        Further sources of the workload's folder, by their paths in it.

    Raises
    ------
    UserError
        Without nvcc, or when it knows no such architecture.
    """
    release = nvcc_release()
    mark = fingerprint(FOLDER, release)
    if more:
        mark = digest([mark, digest_files(included_files(FOLDER, more))])
    path = cache_folder() / f"tridiagonal-{arch}-{mark}.cubins"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        types = [np.dtype(name) for name in ("float32", "float64")]
        builds = [build(layout, dtype) for layout in (*LAYOUTS, "finish") for dtype in types]
        builds += [Build.of(source, real_macro(dtype.name)) for source in more for dtype in types]
        compile_bundle(FOLDER, load_spec(FOLDER), builds, arch, path, os.cpu_count() or 1)
    return path
