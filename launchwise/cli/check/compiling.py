"""Compiles chosen builds of a workload with nvcc; what nvcc said is kept until a file changes."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.places import ROOT
from launchwise.base.storage import digest, digest_files, write_json
from launchwise.cpu.toolchain import private_folder
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle, left_out, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.builds import Build
from launchwise.workloads.space import gpu_of_architecture
from launchwise.workloads.spec import Spec

CODE = [
    ROOT / "launchwise" / name
    for name in (
        *("measuring/bundle.py", "measuring/compile.py", "measuring/openmp.py"),
        *("measuring/triton_child.py", "measuring/triton_compiler.py"),
        *("workloads/triton_functions.py", "workloads/builds.py", "workloads/sources.py"),
    )
]
"""Files that decide what nvcc is asked."""

CHECK = "check"
"""What builds are of that compare outputs."""


@dataclass(frozen=True)
class Outcome:
    """Builds that compilers were asked for."""

    # Number of those that compile.
    taken: int
    # What is refused to what nvcc says against it.
    refused: Mapping[str, str]
    # Sources whose compiler is missing to what to install.
    left_out: Mapping[str, str]
    # Builds with shared memory per block, bytes, that Triton chose beyond the GPU's limit.
    crowded: Sequence[tuple[str, int]] = ()


def compiled(
    folder: Path, spec: Spec, builds: Mapping[Build, str], arch: str, threads: int
) -> Outcome:
    """Compile builds for an architecture and look every kernel up.

    Parameters
    ----------
    builds
        Builds to the configurations that they are of, in words, or :data:`CHECK`. Those of the
        latter alone are not compiled.

    Raises
    ------
    UserError
        When nvcc refuses every build of a source, or a build does not hold its kernel.
    """
    missing = left_out(builds, arch)
    kept = _kept(folder, builds, arch, missing)
    asked = {build: name for build, name in builds.items() if build.source not in missing}
    if missing and set(asked.values()) <= {CHECK}:
        return Outcome(0, {}, missing)
    known = _read(kept)
    if known is None:
        with tempfile.TemporaryDirectory(prefix="launchwise-check-") as scratch:
            path = Path(scratch, "check.cubins")
            compile_bundle(folder, spec, list(asked), arch, path, threads)
            bundle = Bundle(path)
            known = {"refused": dict(bundle.refused), "shared_bytes": _shared_bytes(bundle)}
        write_json(kept, known)
    refused, shared = known["refused"], known["shared_bytes"]
    named = {name: refused[build.key] for build, name in asked.items() if build.key in refused}
    most = gpu_of_architecture(arch)["gpu_shared_per_block_bytes"]
    needed = [(name, shared.get(build.key, 0)) for build, name in asked.items()]
    crowded = [(name, each) for name, each in needed if each > most]
    return Outcome(len(asked) - len(named), named, missing, crowded)


def _shared_bytes(bundle: Bundle) -> dict[str, int]:
    """Builds to the largest shared memory per block that a compiler chose for their kernels."""
    chosen = {
        key: [each["launch"]["shared_bytes"] for each in kernels.values() if each.get("launch")]
        for key, kernels in bundle.index["builds"].items()
    }
    return {key: max(sizes) for key, sizes in chosen.items() if sizes}


def _kept(folder: Path, builds: Mapping[Build, str], arch: str, missing: Mapping[str, str]) -> Path:
    """Where the outcome of these sources, builds, compiler and code is kept."""
    code = digest_files(CODE)
    sources = fingerprint(folder, nvcc_release())
    keys = sorted(build.key for build in builds)
    asked = [sources, str(folder), arch, code, keys, missing, "shared_bytes"]
    return private_folder("nvcc") / f"{digest(asked)}.json"


def _read(path: Path) -> dict[str, dict[str, Any]] | None:
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found
    return None
