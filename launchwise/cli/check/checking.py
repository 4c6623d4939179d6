"""Checks of a workload, from its files to compiled kernels; each returns one line."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.cli.check.signatures import check_signatures
from launchwise.cli.check.small_runs import run_on_cpu
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads import corners
from launchwise.workloads.builds import Build
from launchwise.workloads.packages import own_error
from launchwise.workloads.parts import SPEC_FILE
from launchwise.workloads.space import Configuration, Problem, baseline, feasible
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.workload import Workload, load_workload

MOST_BUILDS = 8
"""Builds of a variant that are compiled: the first, the last and some between."""


@dataclass(frozen=True)
class Step:
    """A check that a workload passed, or a skipped check with the reason.

    Parameters
    ----------
    name
        ``spec``, ``expressions``, ``host``, ``compile`` or ``cpu``.
    passed
        False for one that was left out.
    said
        One line.
    """

    name: str
    passed: bool
    said: str


def checked(folder: Path, arch: str, threads: int, cpu: bool = False) -> Iterator[Step]:
    """Check the workload in ``folder`` step by step.

    Parameters
    ----------
    cpu
        Whether small problems are run on the CPU device, too.

    Raises
    ------
    UserError
        At the first mistake: file, key and what is wrong, in one line.
    """
    spec = load_spec(folder)
    count = len(spec.variants)
    known = (
        f"{count} variant{'s' if count > 1 else ''}, {spec.size} configurations, constraints aside"
    )
    check_signatures(folder, spec)
    yield Step("spec", True, known)
    if said := corners.complaint(spec):
        raise UserError(folder / SPEC_FILE, *said)
    problems = corners.corner_problems(spec)
    tried = len(problems) * len(corners.corner_configurations(spec))
    yield Step("expressions", True, f"have values at {tried} corners of the space")
    workload = load_workload(folder, spec)
    try:
        builds = chosen_builds(spec, workload, problems)
    except UserError:
        raise
    except Exception as error:
        raise own_error(folder, error) from error
    yield Step(
        "host", True, f"{type(workload).__name__} names {len(builds)} builds for the corners"
    )
    if shutil.which("nvcc") is None:
        yield Step("compile", False, "nvcc is not on the PATH")
    else:
        yield compiled(folder, spec, builds, arch, threads)
    if cpu:
        yield from _on_cpu(folder, spec)


def _on_cpu(folder: Path, spec: Spec) -> Iterator[Step]:
    if shutil.which("g++") is None:
        raise UserError("check", "--cpu", "g++ is not on the PATH")
    for run in run_on_cpu(folder, spec):
        yield Step("cpu", run.passed, f"{run.name}: {run.said}")


def chosen_builds(spec: Spec, workload: Workload, problems: list[Problem]) -> dict[Build, str]:
    """Builds of the baseline and of feasible corners, with what they are builds of."""
    found: dict[Build, str] = {}
    per_variant: dict[str, int] = {}
    for problem in problems:
        for build in workload.check_builds(problem):
            found.setdefault(build, "check")
        for configuration in corners.corner_configurations(spec):
            variant = str(configuration["variant"])
            if per_variant.get(variant, 0) >= MOST_BUILDS or not _allowed(
                spec, problem, configuration
            ):
                continue
            build = workload.build(problem, configuration)
            if build not in found:
                per_variant[variant] = per_variant.get(variant, 0) + 1
                found[build] = _named(spec, configuration)
    return found


def _allowed(spec: Spec, problem: Problem, configuration: Configuration) -> bool:
    return configuration == baseline(spec) or feasible(spec, problem, configuration)


def _named(spec: Spec, configuration: Mapping[str, Any]) -> str:
    names = spec.variants[str(configuration["variant"])].tunables
    values = ", ".join(f"{name}={configuration[name]}" for name in names)
    return f"{configuration['variant']} {values}".strip()


def compiled(
    folder: Path, spec: Spec, builds: Mapping[Build, str], arch: str, threads: int
) -> Step:
    """Compile builds for an architecture and look every kernel up.

    Raises
    ------
    UserError
        When nvcc refuses the source, or a build does not hold its kernel.
    """
    with tempfile.TemporaryDirectory(prefix="launchwise-check-") as scratch:
        path = Path(scratch, "check.cubins")
        compile_bundle(folder, spec, list(builds), arch, path, threads)
        bundle = Bundle(path)
    refused = {build: bundle.refused[build.key] for build in builds if build.key in bundle.refused}
    said = f"{len(builds) - len(refused)} builds compile for {arch}"
    if refused:
        build, why = next(iter(refused.items()))
        said += f"; nvcc refuses {len(refused)}, such as {builds[build]}: {why}"
    return Step("compile", True, said)
