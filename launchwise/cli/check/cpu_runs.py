"""Runs small problems of a workload on the CPU device and reports every one of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.parallel import usable_cores
from launchwise.cli.check import small_runs
from launchwise.cli.check.cpu_process import CpuProcess, Died, Silent
from launchwise.cli.check.listed_values import Listed, listed_problems
from launchwise.cli.check.macro_values import MOST_RUNS, MacroRuns, macro_runs
from launchwise.cli.check.slow_runs import SlowRuns
from launchwise.cli.check.wide_sizes import wide_problems
from launchwise.cpu.device import CpuDevice
from launchwise.cpu.toolchain import CannotRun
from launchwise.experiment.discovery import SWEEP_FILE
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from launchwise.workloads.space import Configuration, Problem, label
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

SILENCE_S = 30.0
"""Time limit of one configuration, without its compilation, s."""

WIDE_S = 5.0
"""Time limit of all problems with a size above the threads of a block, s."""

TOTAL_S = 120.0
"""Time after which no further configuration is tried, s."""

NO_LESS_WORK = "no less work than a run that did not end in time"

MOST_DEATHS = 3
"""Processes that crash or hang before no further configuration is tried."""


@dataclass(frozen=True)
class Run:
    """Outcome of a configuration.

    Parameters
    ----------
    name
        Configuration and problem, in words.
    variant
        The configuration's; '' where a whole problem is left out.
    status
        ``ok``, ``wrong``, ``failed`` or ``left out``.
    said
        The largest error, or the reason.
    runs
        Runs that it stands for: several that were not tried, 0 for a remark on those planned.
    """

    name: str
    variant: str
    status: str
    said: str
    runs: int = 1


@dataclass(frozen=True)
class _Job:
    """A configuration of a problem, and the compilations that it waits for."""

    problem: Problem
    configuration: Configuration
    builds: list[Future[None]]
    wide: bool = False


def run_on_cpu(
    folder: Path,
    spec: Spec,
    workload: Workload,
    process: CpuProcess,
    given: Sequence[Problem] | None = None,
) -> Iterator[Run]:
    """Run problems and yield the outcome of each configuration: small ones where none are given.

    Builds are compiled ahead, on every core.

    Raises
    ------
    UserError
        When the spec or the workload's own code is wrong.
    """
    until = time.monotonic() + TOTAL_S
    deaths, spent = 0, 0.0
    compare = None if spec.reference is None else spec.reference.compare
    process.open(folder, 4 * small_runs.MEMORY_BYTES, small_runs.SEED)
    with _Ahead(folder, spec) as ahead:
        planned, left_out = _planned(folder, spec, workload, ahead, given)
        yield from left_out
        slow = SlowRuns(spec)
        jobs = deque(planned)
        known = [job.problem for job in planned]
        while jobs:
            job = jobs.popleft()
            why = ""
            if deaths == MOST_DEATHS:
                why = f"{deaths} configurations crashed or hung"
            elif time.monotonic() > until:
                why = f"time limit ({TOTAL_S:g} s)"
            elif job.wide and spent > WIDE_S:
                why = f"time limit of sizes above a block ({WIDE_S:g} s)"
            if why:
                count = len(jobs) + 1
                name = f"{count} runs from {assigned(job.problem)} on"
                yield Run(name, "", "left out", f"not tried: {why}", count)
                return
            variant = str(job.configuration["variant"])
            name = f"{label(job.configuration, spec)} at {assigned(job.problem)}"
            if slow.covers(job.problem, job.configuration):
                yield Run(name, variant, "left out", f"not tried: {NO_LESS_WORK}")
                continue
            begun = time.monotonic()
            status, said = _outcome(job, process, compare, slow)
            spent += time.monotonic() - begun if job.wide else 0.0
            if status == "died":
                status, deaths = "failed", deaths + 1
            elif status == "slow":
                status = "left out"
                if not job.wide:
                    slow.add(job.problem, job.configuration)
                if not job.wide and given is None:
                    fewer = [each for each in slow.smaller(job.problem) if each not in known]
                    known += fewer
                    jobs.extendleft(reversed(_of_problems(spec, workload, ahead, fewer)))
            elif status == "ok":
                slow.ended(job.configuration)
            yield Run(name, variant, status, said)


def _of_problems(
    spec: Spec, workload: Workload, ahead: _Ahead, problems: Sequence[Problem]
) -> list[_Job]:
    """Jobs of problems, whose builds are being compiled."""
    return [
        _job(workload, ahead, problem, each)
        for problem in problems
        for each in small_runs.chosen(spec, problem)
    ]


def _job(workload: Workload, ahead: _Ahead, problem: Problem, configuration: Configuration) -> _Job:
    return _Job(problem, configuration, ahead.compile(_builds(workload, problem, configuration)))


def _planned(
    folder: Path, spec: Spec, workload: Workload, ahead: _Ahead, given: Sequence[Problem] | None
) -> tuple[list[_Job], list[Run]]:
    """Configurations of problems, whose builds are being compiled, and what is left out."""
    jobs: list[_Job] = []
    left_out: list[Run] = []
    small = small_runs.small_problems(folder, spec) if given is None else list(given)
    for problem in small:
        chosen = small_runs.chosen(spec, problem)
        said = _too_large(spec, problem)
        if not said and not chosen:
            said = f"{assigned(problem)} has no feasible configuration"
        if said:
            left_out.append(Run(assigned(problem), "", "left out", said))
            continue
        jobs += [_job(workload, ahead, problem, each) for each in chosen]
    drawn = given is None and not (folder / SWEEP_FILE).is_file()
    listed = listed_problems(spec, small) if drawn else Listed()
    for number, problem in enumerate(listed.problems):
        # One configuration each: values that builds read cost a compilation.
        choice = small_runs.chosen(spec, problem)
        for each in choice[number % len(choice) :][:1] if choice else ():
            jobs.append(_job(workload, ahead, problem, each))
    if listed.left_out:
        left_out.append(Run("listed values", "", "left out", listed.left_out, 0))
    planned = [(job.problem, job.configuration) for job in jobs]
    most = MOST_RUNS if drawn else 0
    of_macros = macro_runs(spec, planned, small, most) if given is None else MacroRuns()
    for problem, each in of_macros.runs:
        jobs.append(_job(workload, ahead, problem, each))
    if of_macros.left_out:
        left_out.append(Run("macros", "", "left out", of_macros.left_out, 0))
    for wide in wide_problems(spec, small) if drawn else ():
        if wide.too_large:
            left_out.append(Run(assigned(wide.problem), "", "left out", wide.too_large))
            continue
        builds = [
            (each, _builds(workload, wide.problem, each))
            for each in small_runs.chosen(spec, wide.problem)
        ]
        # Builds that the size itself changes are compiled for one configuration only.
        known = [(each, needed) for each, needed in builds if ahead.knows(needed)]
        jobs += [
            _Job(wide.problem, each, ahead.compile(needed), wide=True)
            for each, needed in known or builds[:1]
        ]
    return jobs, left_out


def _outcome(
    job: _Job, process: CpuProcess, compare: str | None, slow: SlowRuns
) -> tuple[str, str]:
    """Status of a configuration, and what is said of it: ``died`` where its process did.

    ``slow`` where it was too much work. ``compare`` names a comparison of the user's own.
    """
    for build in job.builds:
        try:
            build.result()
        except CannotRun as refused:
            return "left out", str(refused)
        except LaunchFailed as refused:
            return "failed", str(refused)
    asked = {"problem": job.problem, "configuration": job.configuration}
    try:
        found = process.run(asked, WIDE_S if job.wide else SILENCE_S)
    except Silent as death:
        if job.wide or slow.may_be(job.problem, job.configuration):
            return "slow", f"{death}: too much work for the CPU device"
        return "died", str(death)
    except Died as death:
        return "died", str(death)
    if "error" in found:
        raise UserError(*found["error"])
    if found["status"] != "ok":
        return found["status"], found["reason"]
    if compare:
        return "ok", f"{compare} agrees"
    return "ok", f"largest error {found['max_error']:.3g}, allowed {found['tolerance']:.3g}"


def _too_large(spec: Spec, problem: Problem) -> str:
    needed = float(spec.value(spec.work.footprint_bytes, problem))
    if needed <= small_runs.MEMORY_BYTES:
        return ""
    return f"needs {needed / 1e6:.0f} MB, more than the CPU device allows"


def _builds(workload: Workload, problem: Problem, configuration: Configuration) -> list[Build]:
    return [*workload.check_builds(problem), workload.build(problem, configuration)]


class _Ahead:
    """Compiles builds on every core, each once, for the process that will run them."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self._device = CpuDevice(folder, spec.headers)
        self._pool = ThreadPoolExecutor(usable_cores())
        self._futures: dict[str, Future[None]] = {}
        self._first: Future[None] | None = None

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def compile(self, builds: list[Build]) -> list[Future[None]]:
        """Futures of builds; the first of all makes what the others share."""
        found: list[Future[None]] = []
        for build in builds:
            if build.key not in self._futures:
                future = self._pool.submit(self._compile, build, self._first)
                self._futures[build.key] = future
                self._first = self._first or future
            found.append(self._futures[build.key])
        return found

    def knows(self, builds: list[Build]) -> bool:
        """Whether all of these are being compiled already."""
        return all(build.key in self._futures for build in builds)

    def _compile(self, build: Build, first: Future[Any] | None) -> None:
        if first is not None:
            first.exception()
        self._device.prepare(build)
