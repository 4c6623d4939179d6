"""Checks of a workload, from its files to compiled kernels; each returns one line."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.cli.check.compiling import CHECK, Outcome, compiled
from launchwise.cli.check.cpu_process import CpuProcess
from launchwise.cli.check.cpu_runs import run_on_cpu
from launchwise.cli.check.signatures import check_signatures
from launchwise.cli.check.small_problems import SEED
from launchwise.cli.check.sweep_files import listed_problems
from launchwise.cli.check.unused import refused_variant, unused_values
from launchwise.cli.problems import problems_of
from launchwise.experiment.checking import check_space
from launchwise.experiment.derived import derived_study
from launchwise.experiment.discovery import SWEEP_FILE, find_studies
from launchwise.experiment.loading import TOO_FEW
from launchwise.workloads.builds import Build
from launchwise.workloads.checks import corners
from launchwise.workloads.declared.own_functions import check_own_functions, own_error
from launchwise.workloads.loading import load_workload
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.sampling import drawn_of
from launchwise.workloads.space import Problem, baseline, feasible, gpu_of_architecture
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.workload import Workload

MOST_BUILDS = 8
"""Builds of a variant that are compiled: the first, the last and some between."""

MOST_LINES = 5
"""Lines with a question that are named."""

_ASKS = re.compile(r"(^|\s)# \? ")

MOST_REASONS = 3
"""Reasons of the last line for what was left out."""


OK = "ok"
OPEN = "open"
LEFT_OUT = "left out"
REFUSED = "refused"
SOME_REFUSED = "some refused"
WRONG = "wrong"
FAILED = "failed"
"""Statuses of steps; ``open``: a draft with questions; ``wrong``, ``failed``: runs on the CPU."""


@dataclass(frozen=True)
class Step:
    """A part of the check, with its status and one line."""

    # ``spec``, ``expressions``, ``sweep``, ``host``, ``compile`` or ``cpu``.
    name: str
    # One of :data:`OK` and those below it.
    status: str
    # What was found, or the reason.
    said: str
    # Variant of a run.
    variant: str = ""
    # Runs on the CPU that it stands for.
    runs: int = 1
    # Whether a run of the variant was left out for the same reason before.
    again: bool = False

    def as_facts(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        facts = {"name": self.name, "status": self.status, "said": self.said}
        return {**facts, "passed": self.status in (OK, OPEN)}


def checked(
    folder: Path,
    arch: str,
    threads: int,
    process: CpuProcess | None = None,
    words: Sequence[str] = (),
) -> Iterator[Step]:
    """Check the workload in ``folder`` step by step.

    Parameters
    ----------
    process
        Runs small problems on the CPU device, too, while nvcc works.
    words
        Problems that it runs in place of small ones, as words ``NAME=VALUE``.

    Raises
    ------
    UserError
        At the first mistake that later steps cannot do without: file, key and what is wrong, in
        one line.
    """
    spec = load_spec(folder)
    count = len(spec.variants)
    known = (
        f"{count} variant{'s' if count > 1 else ''}, {spec.size} configurations, constraints aside"
    )
    given = problems_of(spec, words, "check") if words else None
    check_signatures(folder, spec)
    yield Step("spec", OK, known)
    if questions := open_questions(folder):
        yield Step("spec", OPEN, questions)
    if said := corners.complaint(spec):
        raise UserError(folder / SPEC_FILE, *said)
    problems = corners.corner_problems(spec)
    tried = len(problems) * len(corners.corner_configurations(spec))
    yield Step("expressions", OK, f"have values at {tried} corners of the space")
    listed = listed_problems(folder, spec)
    if never := refused_variant(spec, problems):
        raise UserError(folder / SPEC_FILE, *never)
    gpu = gpu_of_architecture(arch)
    unused = [f"{name}={value}" for name, value in unused_values(spec, problems, gpu)]
    if unused:
        values = f"{', '.join(unused)} {'is' if len(unused) == 1 else 'are'}"
        yield Step("expressions", LEFT_OUT, f"{values} in no feasible configuration on {arch}")
    if listed is not None:
        _check_space(folder, spec, listed)
        yield Step("sweep", OK, _of_sweep(folder, spec, listed))
    workload = load_workload(folder, spec)
    try:
        builds = chosen_builds(spec, workload, problems, gpu)
    except UserError:
        raise
    except Exception as error:
        raise own_error(folder, error) from error
    yield Step("host", OK, f"{type(workload).__name__} names {len(builds)} builds for the corners")
    if process is not None and shutil.which("g++") is None:
        raise UserError("check", "--cpu", "g++ is not on the PATH")
    missing: UserError | None = None
    try:
        check_own_functions(folder, spec)
    except UserError as error:
        missing = error  # What can be compiled is compiled first.
    on_cpu = _on_cpu(folder, spec, workload, process, gpu, given) if missing is None else ()
    yield from _compiled_meanwhile(folder, spec, builds, arch, threads, on_cpu)
    if missing is not None:
        raise missing


def _check_space(folder: Path, spec: Spec, listed: Sequence[Problem]) -> None:
    try:
        check_space(spec, listed)
    except ValueError as error:
        raise UserError(folder / SWEEP_FILE, "problems", str(error)) from error


def _of_sweep(folder: Path, spec: Spec, listed: Sequence[Problem]) -> str:
    said = f"the baseline may run each of {len(listed)} problems"
    lacks_study = not find_studies({spec.workload: folder}) and derived_study(spec, listed) is None
    return f"{said}; no study: {TOO_FEW}" if lacks_study and spec.arguments else said


def _compiled_meanwhile(
    folder: Path,
    spec: Spec,
    builds: Mapping[Build, str],
    arch: str,
    threads: int,
    on_cpu: Iterable[Step],
) -> Iterator[Step]:
    """Steps of nvcc, then those on the CPU, which run while it works."""
    with ThreadPoolExecutor(1) as pool:
        compiling: Future[Outcome] | None = None
        if shutil.which("nvcc") is None:
            yield Step("compile", LEFT_OUT, "nvcc is not on the PATH")
        else:
            compiling = pool.submit(compiled, folder, spec, builds, arch, threads)
        waiting: list[Step] = []
        for step in on_cpu:
            waiting.append(step)
            if compiling is not None and compiling.done():
                yield from _of_nvcc(compiling.result(), arch, spec)
                compiling = None
            if compiling is None:
                yield from waiting
                waiting = []
        if compiling is not None:
            yield from _of_nvcc(compiling.result(), arch, spec)
        yield from waiting


def _on_cpu(
    folder: Path,
    spec: Spec,
    workload: Workload,
    process: CpuProcess | None,
    gpu: Mapping[str, Any],
    given: Sequence[Problem] | None,
) -> Iterator[Step]:
    if process is not None:
        known = set()
        for run in run_on_cpu(folder, spec, workload, process, gpu, given):
            key = run.status, run.variant, run.said
            again = run.status == LEFT_OUT and run.variant != "" and key in known
            known.add(key)
            said = f"{run.name}: {run.said}"
            yield Step("cpu", run.status, said, run.variant, run.runs, again)


def _of_nvcc(found: Outcome, arch: str, spec: Spec) -> Iterator[Step]:
    for source, why in found.left_out.items():
        yield Step("compile", LEFT_OUT, f"{source}: {why}")
    whole = found.taken + len(found.refused)
    if not whole:
        return
    if not found.refused:
        yield Step("compile", OK, f"{whole} builds compile for {arch}")
        if found.crowded:
            most = gpu_of_architecture(arch)["gpu_shared_per_block_bytes"]
            name, needed = max(found.crowded, key=lambda each: each[1])
            first = _named(spec, baseline(spec)) in dict(found.crowded)
            said = f"{len(found.crowded)} of {whole} builds{', the baseline among them,' * first}"
            limit = f"need more shared memory per block than {arch} has ({most} B)"
            yield Step("compile", REFUSED, f"{said} {limit}: {name}: {needed} B")
        return
    yield Step("compile", SOME_REFUSED, f"{found.taken} of {whole} builds compile for {arch}")
    for name, why in found.refused.items():
        yield Step("compile", REFUSED, f"{name}: {why}")


def open_questions(folder: Path) -> str:
    """Number of lines that a draft leaves to a person, and which; '' for none."""
    lines = (folder / SPEC_FILE).read_text(encoding="utf-8").splitlines()
    asking = [str(number) for number, line in enumerate(lines, 1) if _ASKS.search(line)]
    if not asking:
        return ""
    few = ", ".join(asking[:MOST_LINES]) + (", ..." if asking[MOST_LINES:] else "")
    is_one = len(asking) == 1
    said = f"{len(asking)} {'line is' if is_one else 'lines are'} to be decided"
    return f"{said}: # ? in {'line' if is_one else 'lines'} {few} of {SPEC_FILE}"


def verdict(folder: Path, steps: Sequence[Step], cpu: bool) -> str:
    """Why a check that came to its end is no success; '' where it is one.

    Parameters
    ----------
    cpu
        Whether runs on the CPU were asked for.

    Raises
    ------
    UserError
        For the first run whose results are wrong, or that fails.
    """
    runs = [step for step in steps if step.name == "cpu"]
    wrong = [step for step in runs if step.status in (WRONG, FAILED)]
    if wrong:
        name, _, why = wrong[0].said.partition(": ")
        more = f"; {len(wrong) - 1} others are wrong or fail" if len(wrong) > 1 else ""
        message = f"{wrong[0].status} on the CPU: {why} ({name}){more}"
        raise UserError(folder / SPEC_FILE, f"variants.{wrong[0].variant}", message)
    if cpu and not any(step.status == OK for step in runs):
        if not (said := summary(runs)):
            return "nothing was verified on the CPU: no configuration is feasible"
        return f"nothing was verified on the CPU, {said}"
    compiled = [step for step in steps if step.name == "compile"]
    if not cpu and compiled and all(step.status == LEFT_OUT for step in compiled):
        return f"nothing was compiled: {compiled[0].said}"
    return ""


def summary(steps: Sequence[Step]) -> str:
    """How many runs on the CPU are left out, with the most frequent reasons; '' without any."""
    runs = [step for step in steps if step.name == "cpu"]
    reasons: Counter[str] = Counter()
    for step in runs:
        if step.status == LEFT_OUT and step.runs:
            reasons[step.said.partition(": ")[2]] += step.runs
    if not reasons:
        return ""
    most = reasons.most_common(MOST_REASONS)
    said = "; ".join(f"{count}: {reason}" for reason, count in most) if most[1:] else most[0][0]
    others = reasons.total() - sum(count for _, count in most)
    more = f"; {others} for other reasons" if others else ""
    whole = sum(step.runs for step in runs)
    return f"{reasons.total()} of {whole} runs are left out: {said}{more}"


def chosen_builds(
    spec: Spec,
    workload: Workload,
    problems: Sequence[Problem],
    gpu: Mapping[str, Any] = UNKNOWN_GPU,
) -> dict[Build, str]:
    """Builds of the baseline and of feasible corners, with what they are builds of.

    A variant none of whose corners is feasible has a drawn one, if any problem allows one.
    """
    found: dict[Build, str] = {}
    per_variant: dict[str, int] = {}
    for problem in problems:
        for build in workload.check_builds(problem):
            found.setdefault(build, CHECK)
        for configuration in corners.corner_configurations(spec):
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
