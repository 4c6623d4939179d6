"""Kernels that library functions compile once and keep in the user's cache."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.storage import digest, digest_files
from launchwise.measuring.compile import compile_bundle, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.builds import Build
from launchwise.workloads.sources import included_files
from launchwise.workloads.spec import Spec


def kept_bundle(folder: Path, spec: Spec, builds: Sequence[Build], arch: str) -> Path:
    """A bundle of a workload's builds in the user's cache (XDG), compiled when it is not there.
    Raises UserError without nvcc, or when it knows no such architecture."""
    sources = list(dict.fromkeys(build.source for build in builds))
    mark = digest(
        [
            fingerprint(folder, nvcc_release()),
            digest_files(included_files(folder, sources)),
            *(build.key for build in builds),
        ]
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "launchwise"
    path = cache / f"{folder.name}-{arch}-{mark}.cubins"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        compile_bundle(folder, spec, builds, arch, path, os.cpu_count() or 1)
    return path
