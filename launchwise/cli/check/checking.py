"""Checks of a workload, from its files to compiled kernels; each step is one line."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, raising
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import ROOT
from launchwise.base.storage import digest, digest_files, write_json
from launchwise.base.typed import read_yaml, validated
from launchwise.cli.check import LEFT_OUT, OK, OPEN, REFUSED, SOME_REFUSED, Step
from launchwise.cli.check.cpu_runs import few, run_on_cpu
from launchwise.cli.check.signatures import check_signatures
from launchwise.cli.check.small_problems import SEED, SmallProblems
from launchwise.cli.words import problems_of
from launchwise.cpu.toolchain import private_folder
from launchwise.experiment import study_checks
from launchwise.experiment.discovery import STUDY_FILE, SWEEP_FILE, derived_study, find_studies
from launchwise.experiment.loading import TOO_FEW
from launchwise.experiment.method import Sweep
from launchwise.experiment.study import Study, StudyFile
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle, left_out, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.builds import Build
from launchwise.workloads.checks import corners
from launchwise.workloads.checks.corners import corner_configurations
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.declared.own_functions import check_own_functions, own_error
from launchwise.workloads.parts import UNKNOWN_GPU, Value
from launchwise.workloads.sampling import Draws, drawn_of
from launchwise.workloads.sources import cpu_limit
from launchwise.workloads.space import (
    LENIENT_GPU,
    Problem,
    baseline,
    feasible,
    gpu_of_architecture,
    label,
    problems,
)
from launchwise.workloads.spec import Spec, load_spec
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
                found[build] = label(configuration, spec)
    for variant in (each for each in spec.variants if each not in per_variant):
        for problem in problems:
            if (drawn := drawn_of(spec, problem, variant, SEED, gpu)) is not None:
                found.setdefault(workload.build(problem, drawn), label(drawn, spec))
                break
    return found


def compiled(
    folder: Path, spec: Spec, builds: Mapping[Build, str], arch: str, threads: int
) -> list[Step]:
    """Compile builds for an architecture, look every kernel up, and say what was refused.
    ``builds``: builds to the configurations that they are of, in words, or :data:`CHECK`. Those of
    the latter alone are not compiled. Raises UserError when nvcc refuses every build of a source,
    or a build does not hold its kernel."""
    missing = left_out(builds, arch)
    steps = [Step("compile", LEFT_OUT, f"{source}: {why}") for source, why in missing.items()]
    asked = {build: name for build, name in builds.items() if build.source not in missing}
    if not asked or (missing and set(asked.values()) <= {CHECK}):
        return steps
    kept = _kept(folder, builds, arch, missing)
    known: dict[str, dict[str, Any]] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(kept.read_text(encoding="utf-8"))
    if not known:
        with tempfile.TemporaryDirectory(prefix="launchwise-check-") as scratch:
            path = Path(scratch, "check.cubins")
            compile_bundle(folder, spec, list(asked), arch, path, threads)
            bundle = Bundle(path)
            # The most shared memory per block that a compiler chose for kernels of a build.
            chosen = {}
            for key, kernels in bundle.index["builds"].items():
                own = [one["launch"] for one in kernels.values() if one.get("launch")]
                chosen[key] = max((one["shared_bytes"] for one in own), default=0)
            known = {"refused": dict(bundle.refused), "shared_bytes": chosen}
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
        is_first = any(name == label(baseline(spec), spec) for _, name in crowded)
        said = f"{len(crowded)} of {whole} builds{', the baseline among them,' * is_first}"
        limit = f"need more shared memory per block than {arch} has ({most} B)"
        size, name = max(crowded, key=lambda each: each[0])
        steps.append(Step("compile", REFUSED, f"{said} {limit}: {name}: {size} B"))
    return steps


def _kept(folder: Path, builds: Mapping[Build, str], arch: str, missing: Mapping[str, str]) -> Path:
    """Where the outcome of these sources, builds, compiler and code is kept."""
    code = digest_files(path for each in CODE for path in (ROOT / "launchwise").glob(each))
    sources = fingerprint(folder, nvcc_release())
    keys = sorted(build.key for build in builds)
    asked = [sources, str(folder), arch, code, keys, missing, "shared_bytes"]
    return private_folder("nvcc") / f"{digest(asked)}.json"


MOST_CORNERS = 8  # Corners of a space that problems near are searched for, at 0.1 s each


def refused_variant(spec: Spec, problems: Sequence[Problem]) -> tuple[str, str] | None:
    """The first variant that constraints keep from every problem: key of these, and what is said. A
    variant of which this is not certain passes: a large space may hold what no search finds."""
    small, tried = SmallProblems(spec, LENIENT_GPU), list[Problem]()
    for name, variant in spec.variants.items():
        if _may_run(spec, name, problems):
            continue
        tried = tried or [*problems, *small.drawn()]
        corners = [each for each in small.corners if each["variant"] == name][:MOST_CORNERS]
        near = (small.near(problem, [each]) for each in corners for problem in tried)
        if _may_run(spec, name, tried) or any(each is not None for each in near):
            continue
        asked = [(f"variants.{name}.constraints", text) for text in variant.constraints]
        asked += [("constraints", text) for text in spec.constraints]
        never = [(key, text) for key, text in asked if not _holds(spec, tried, name, text)]
        named = " and ".join(text for _, text in never)
        together = "the constraints of the variant and of the workload do not hold together"
        said = f"{named} never holds" if never else together
        why = f"{said}, in none of its configurations for {len(tried)} problems"
        return (never or asked)[0][0], f"no configuration of {name} may run: {why}"
    return None


def _may_run(
    spec: Spec, variant: str, problems: Sequence[Problem], gpu: Mapping[str, Any] = LENIENT_GPU
) -> bool:
    """Whether there is a feasible configuration, or may be one that was not found."""
    every = (Draws(spec, each, gpu, SEED) for each in problems)
    found = (
        each.draw(random.Random(SEED), (), variant) or not each.ended(variant) for each in every
    )
    return any(found)


def _holds(spec: Spec, problems: Sequence[Problem], variant: str, text: str) -> bool:
    """Whether a constraint, alone, leaves a variant any configuration."""
    own = spec.variants[variant].model_copy(update={"constraints": [text]})
    alone = spec.model_copy(update={"variants": {variant: own}, "constraints": []})
    try:
        return _may_run(alone, variant, problems)
    except ValueError:
        return True  # What stands before it keeps it from being asked.


def narrowed(spec: Spec, problems: Sequence[Problem], gpu: Mapping[str, Any]) -> tuple[Spec, str]:
    """The spec without values of tunables that the limits of a GPU exclude; and which these are,
    the baseline first, in words."""
    first, tunables, said = baseline(spec), spec.tunables, list[str]()
    lenient = {**gpu, "gpu_max_threads_per_block": 1 << 40, "gpu_shared_per_block_bytes": 1 << 40}

    def is_lost(name: str, value: Value) -> bool:
        one = tunables[name].model_copy(update={"values": [value]})
        alone = spec.model_copy(update={"tunables": {**tunables, name: one}})
        users = [each for each, variant in spec.variants.items() if name in variant.tunables]
        asked = [partial(_may_run, alone, each, problems) for each in users]
        return not any(one(gpu) for one in asked) and any(one(lenient) for one in asked)

    corners = [
        one
        for one in corner_configurations(spec)
        if any(feasible(spec, each, one, gpu) for each in problems)
    ]
    if first not in corners:
        said.append("the baseline")
    for name, one in spec.tunables.items():
        # Limits exclude no value between two that they allow.
        if {one.values[0], one.values[-1]} <= {each[name] for each in corners}:
            continue
        lost = [value for value in one.values if is_lost(name, value)]
        if 0 < len(lost) < len(one.values):
            said.append(f"{name}={few(lost)}")
            kept = [value for value in one.values if value not in lost]
            tunables = {**tunables, name: one.model_copy(update={"values": kept})}
    return spec.model_copy(update={"tunables": tunables}), " and ".join(said)


MOST_LINES = 5  # Lines with a question that are named

_ASKS = re.compile(r"(^|\s)# \? ")


def checked(
    folder: Path, arch: str, threads: int, cpu: bool = False, words: Sequence[str] = ()
) -> Iterator[Step]:
    """Check the workload in ``folder`` step by step. ``cpu``: whether small problems run on the CPU
    device, too, while nvcc works. ``words``: problems that run there in place of small ones, as
    words ``NAME=VALUE``. Raises UserError at the first mistake that later steps cannot do without:
    file, key and what is wrong, in one line."""
    with cpu_limit(folder):
        spec = load_spec(folder)
        check_signatures(folder, spec)
    given = problems_of(spec, words, "check") if words else None
    gpu = gpu_of_architecture(arch)
    with cpu_limit(folder):
        known, listed = yield from _of_files(folder, spec)
        workload = load_workload(folder, spec)
        less, said = narrowed(spec, known, gpu)
    if said:
        yield Step("values", LEFT_OUT, f"{arch} cannot run {said} at any corner of the space")
    try:
        builds = chosen_builds(spec, workload, known, gpu)
    except UserError:
        raise
    except Exception as error:
        raise own_error(folder, error) from error
    yield Step("host", OK, f"{type(workload).__name__} names {len(builds)} builds for the corners")
    if cpu and shutil.which("g++") is None:
        raise UserError("check", "--cpu", "g++ is not on the PATH")
    missing: UserError | None = None
    try:
        check_own_functions(folder, spec)
    except UserError as error:
        missing = error  # What can be compiled is compiled first.
    on_cpu: Iterable[Step] = ()
    if cpu and missing is None:
        on_cpu = run_on_cpu(folder, less, workload, gpu, listed, given)
    with ThreadPoolExecutor(1) as pool:
        compiling: Future[list[Step]] | None = None
        if shutil.which("nvcc") is None:
            yield Step("compile", LEFT_OUT, "nvcc is not on the PATH")
        else:
            compiling = pool.submit(compiled, folder, spec, builds, arch, threads)
        # What a compiler refuses does not keep the other one's kernels from running.
        yield from on_cpu
        yield from compiling.result() if compiling is not None else ()
    if missing is not None:
        raise missing


def _of_files(
    folder: Path, spec: Spec
) -> Generator[Step, None, tuple[list[Problem], list[Problem] | None]]:
    """Steps that read files alone; gives corner problems, and those of ``sweep.yaml`` if any."""
    variants = f"{len(spec.variants)} variant{'s' * (len(spec.variants) > 1)}"
    yield Step("spec", OK, f"{variants}, {spec.size} configurations, constraints aside")
    if questions := open_questions(folder):
        yield Step("spec", OPEN, questions)
    if said := corners.complaint(spec):
        raise UserError(folder / SPEC_FILE, *said)
    known = corners.corner_problems(spec)
    tried = len(known) * len(corners.corner_configurations(spec))
    yield Step("expressions", OK, f"have values at {tried} corners of the space")
    studies, listed = read_studies(folder, spec), listed_problems(folder, spec)
    if never := refused_variant(spec, known):
        raise UserError(folder / SPEC_FILE, *never)
    if listed is not None:
        try:
            study_checks.check_space(spec, listed)
        except ValueError as error:
            raise UserError(folder / SWEEP_FILE, "problems", str(error)) from error
        whole = f"the baseline may run each of {len(listed)} problems"
        short = spec.arguments and not (studies or derived_study(spec, listed))
        more = f"; no study: {TOO_FEW}" if short else ""
        yield Step("sweep", OK, whole + more)
    return known, listed


def read_studies(folder: Path, spec: Spec) -> dict[str, Path]:
    """Folders of a workload's studies. Raises UserError where one names what it has not."""
    found = find_studies({spec.workload: folder})
    for path in (one / STUDY_FILE for one in found.values()):
        own = validated(StudyFile, read_yaml(path), path)
        with raising(partial(UserError, path)):
            study_checks.check_study(Study(workload=spec.workload, **dict(own)), spec)
    return found


def listed_problems(folder: Path, spec: Spec) -> list[Problem] | None:
    """Problems of ``sweep.yaml``; None without one. Raises UserError when what it lists is no
    problem, configuration or row of the workload."""
    path = folder / SWEEP_FILE
    if not path.is_file():
        return None
    sweep = validated(Sweep, read_yaml(path), path)
    with raising(lambda key, message: UserError(path, f"problems{key}", message)):
        study_checks.check_blocks(spec, sweep.problems, sweep.strategy.kind)
    with raising(lambda key, message: UserError(path, f"anew{key}", message)):
        study_checks.check_rows(spec, sweep.anew)
    return problems(spec, sweep.problems)


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
