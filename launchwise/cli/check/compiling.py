"""Compiles builds of corners of a space; what nvcc said is kept until a file changes."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.places import ROOT
from launchwise.base.storage import digest, digest_files, write_json
from launchwise.cli.check.small_problems import SEED
from launchwise.cli.check.steps import LEFT_OUT, OK, REFUSED, SOME_REFUSED, Step
from launchwise.cpu.toolchain import private_folder
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle, left_out, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.builds import Build
from launchwise.workloads.checks.corners import corner_configurations
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.sampling import drawn_of
from launchwise.workloads.space import Problem, baseline, feasible, gpu_of_architecture
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

CODE = ("measuring/**/*.py", "workloads/**/*.py")
"""Files of the library that decide what nvcc is asked."""

CHECK = "check"  # What builds are of that compare outputs
MOST_BUILDS = 8  # Builds of a variant that are compiled: the first, the last and some between


def chosen_builds(
    spec: Spec,
    workload: Workload,
    problems: Sequence[Problem],
    gpu: Mapping[str, Any] = UNKNOWN_GPU,
) -> dict[Build, str]:
    """Builds of the baseline and of feasible corners, with what they are builds of. A variant none
    of whose corners is feasible has a drawn one, if any problem allows one."""
    found: dict[Build, str] = {}
    per_variant: dict[str, int] = {}
    for problem in problems:
        for build in workload.check_builds(problem):
            found.setdefault(build, CHECK)
        for configuration in corner_configurations(spec):
            variant = str(configuration["variant"])
            allowed = configuration == baseline(spec) or feasible(spec, problem, configuration, gpu)
            if per_variant.get(variant, 0) >= MOST_BUILDS or not allowed:
                continue
            build = workload.build(problem, configuration)
            if build not in found:
                per_variant[variant] = per_variant.get(variant, 0) + 1
                found[build] = _named(spec, configuration)
    for variant in (each for each in spec.variants if each not in per_variant):
        for problem in problems:
            if (drawn := drawn_of(spec, problem, variant, SEED, gpu)) is not None:
                found.setdefault(workload.build(problem, drawn), _named(spec, drawn))
                break
    return found


def _named(spec: Spec, configuration: Mapping[str, Any]) -> str:
    names = spec.variants[str(configuration["variant"])].tunables
    values = ", ".join(f"{name}={configuration[name]}" for name in names)
    return f"{configuration['variant']} {values}".strip()


def compiled(
    folder: Path, spec: Spec, builds: Mapping[Build, str], arch: str, threads: int
) -> list[Step]:
    """Compile builds for an architecture, look every kernel up, and say what was refused.

    ``builds``: builds to the configurations that they are of, in words, or :data:`CHECK`. Those of
        the latter alone are not compiled.
    Raises UserError when nvcc refuses every build of a source, or a build does not hold its kernel.
    """
    missing = left_out(builds, arch)
    steps = [Step("compile", LEFT_OUT, f"{source}: {why}") for source, why in missing.items()]
    asked = {build: name for build, name in builds.items() if build.source not in missing}
    if not asked or (missing and set(asked.values()) <= {CHECK}):
        return steps
    kept = _kept(folder, builds, arch, missing)
    known = _read(kept)
    if known is None:
        with tempfile.TemporaryDirectory(prefix="launchwise-check-") as scratch:
            path = Path(scratch, "check.cubins")
            compile_bundle(folder, spec, list(asked), arch, path, threads)
            bundle = Bundle(path)
            known = {"refused": dict(bundle.refused), "shared_bytes": _shared_bytes(bundle)}
        write_json(kept, known)
    whole, refused = len(asked), known["refused"]
    named = {name: refused[build.key] for build, name in asked.items() if build.key in refused}
    if named:
        said = f"{whole - len(named)} of {whole} builds compile for {arch}"
        steps.append(Step("compile", SOME_REFUSED, said))
        return steps + [Step("compile", REFUSED, f"{name}: {why}") for name, why in named.items()]
    steps.append(Step("compile", OK, f"{whole} builds compile for {arch}"))
    most = gpu_of_architecture(arch)["gpu_shared_per_block_bytes"]
    needed = [(known["shared_bytes"].get(build.key, 0), name) for build, name in asked.items()]
    if crowded := [(size, name) for size, name in needed if size > most]:
        is_first = any(name == _named(spec, baseline(spec)) for _, name in crowded)
        said = f"{len(crowded)} of {whole} builds{', the baseline among them,' * is_first}"
        limit = f"need more shared memory per block than {arch} has ({most} B)"
        size, name = max(crowded, key=lambda each: each[0])
        steps.append(Step("compile", REFUSED, f"{said} {limit}: {name}: {size} B"))
    return steps


def _shared_bytes(bundle: Bundle) -> dict[str, int]:
    """Builds to the largest shared memory per block that a compiler chose for their kernels."""
    chosen = {
        key: [each["launch"]["shared_bytes"] for each in kernels.values() if each.get("launch")]
        for key, kernels in bundle.index["builds"].items()
    }
    return {key: max(sizes) for key, sizes in chosen.items() if sizes}


def _kept(folder: Path, builds: Mapping[Build, str], arch: str, missing: Mapping[str, str]) -> Path:
    """Where the outcome of these sources, builds, compiler and code is kept."""
    code = digest_files(path for each in CODE for path in (ROOT / "launchwise").glob(each))
    sources = fingerprint(folder, nvcc_release())
    keys = sorted(build.key for build in builds)
    asked = [sources, str(folder), arch, code, keys, missing, "shared_bytes"]
    return private_folder("nvcc") / f"{digest(asked)}.json"


def _read(path: Path) -> dict[str, dict[str, Any]] | None:
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
        return found
    return None
