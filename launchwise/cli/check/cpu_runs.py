"""Runs small problems of a workload on the CPU device and reports every one of them."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.parallel import usable_cores
from launchwise.cli.check.cases import MEMORY_BYTES, Cases, Planned
from launchwise.cli.check.cpu_process import CpuProcess, Died, Silent
from launchwise.cli.check.small_problems import SEED, SmallProblems
from launchwise.cli.check.sweep_files import listed_problems
from launchwise.cpu.device import CpuDevice
from launchwise.cpu.toolchain import CannotRun
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from launchwise.workloads.space import Problem, label
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

SILENCE_S = 30.0
"""Time limit of one configuration, without its compilation, s."""

WIDE_S = 5.0
"""Time limit of all runs of a problem with a size above the threads of a block, s."""

TOTAL_S = 120.0
"""Time after which no further configuration is tried, s."""

NO_LESS_WORK = "no less work than a run that did not end in time"

MOST_DEATHS = 3
"""Processes that crash or hang before no further configuration is tried."""

MOST_SMALL_ITEMS = 1 << 16
"""Most work items, or numbers in memory, of a problem that every right kernel ends in time."""

BYTES_PER_ITEM = 4


@dataclass(frozen=True)
class Run:
    """Outcome of a configuration."""

    # Configuration and problem, in words.
    name: str
    # The configuration's; '' where a whole problem is left out.
    variant: str
    # ``ok``, ``wrong``, ``failed`` or ``left out``.
    status: str
    # The largest error, or the reason.
    said: str
    # Runs that it stands for: several that were not tried, 0 for a remark on those planned.
    runs: int = 1


@dataclass(frozen=True)
class _Job:
    """A run, and the compilations that it waits for."""

    run: Planned
    builds: list[Future[None]]


class _TooSlow:
    """Runs that did not end in time.

    Such a run fails where its problem is small and its kernel compiled by g++: then it does not
    end. In Triton's interpreter, which takes longer, it fails where no run of its variant ended.
    """

    def __init__(self, small: SmallProblems) -> None:
        self._small = small
        self._least: dict[str, float] = {}
        self.ended: set[str] = set()

    def may_be(self, run: Planned) -> bool:
        """Whether a run that did not end in time may be too much work, rather than endless."""
        variant = str(run.configuration["variant"])
        in_triton = self._small.spec.variants[variant].is_triton
        return run.wide or not self.is_little(run) or (in_triton and variant in self.ended)

    def is_little(self, run: Planned) -> bool:
        """Whether a problem is so little work that every right kernel of g++ ends in time."""
        items, needed = self._small.size(run.problem)
        return max(items, needed / BYTES_PER_ITEM) <= MOST_SMALL_ITEMS

    def add(self, run: Planned) -> None:
        """Note a run that was too much work."""
        variant, needed = str(run.configuration["variant"]), self._small.size(run.problem)[1]
        self._least[variant] = min(needed, self._least.get(variant, needed))

    def covers(self, run: Planned) -> bool:
        """Whether a run is as much work as one of its variant that was too much, or more."""
        least = self._least.get(str(run.configuration["variant"]), math.inf)
        return self._small.size(run.problem)[1] >= least


def run_on_cpu(
    folder: Path,
    spec: Spec,
    workload: Workload,
    process: CpuProcess,
    gpu: Mapping[str, Any],
    given: Sequence[Problem] | None = None,
) -> Iterator[Run]:
    """Run problems and yield the outcome of each configuration: small ones where none are given.

    Builds are compiled ahead, on every core.

    Parameters
    ----------
    gpu
        Limits of the GPU that configurations must keep.

    Raises
    ------
    UserError
        When the spec or the workload's own code is wrong.
    """
    until = time.monotonic() + TOTAL_S
    deaths, spent = 0, defaultdict[str, float](float)
    compare = None if spec.reference is None else spec.reference.compare
    process.open(folder, 4 * MEMORY_BYTES, SEED)
    cases = Cases(spec, gpu)
    cases.plan(listed_problems(folder, spec) if given is None else None, given)
    with _Ahead(folder, spec) as ahead:
        jobs = deque(ahead.job(workload, each) for each in cases.runs)
        for out in cases.left_out:
            yield Run(out.name, "", "left out", out.why, out.runs)
        slow = _TooSlow(cases.small)
        smaller = given is None
        while jobs:
            job = jobs.popleft()
            run, sizes = job.run, assigned(job.run.problem)
            variant = str(run.configuration["variant"])
            name = f"{label(run.configuration, spec)} at {sizes}"
            why = f"{deaths} configurations crashed or hung" if deaths == MOST_DEATHS else ""
            if time.monotonic() > until:
                why = f"time limit ({TOTAL_S:g} s)"
            if why:
                count = len(jobs) + 1
                yield Run(
                    f"{count} runs from {sizes} on", "", "left out", f"not tried: {why}", count
                )
                return
            if run.wide and spent[sizes] > WIDE_S:
                why = f"time limit of a size above a block ({WIDE_S:g} s)"
            elif slow.covers(run):
                why = NO_LESS_WORK
            if why:
                yield Run(name, variant, "left out", f"not tried: {why}")
                continue
            status, said, seconds = _outcome(job, process, compare, slow)
            spent[sizes] += seconds
            if status == "died":
                status, deaths = "failed", deaths + 1
            elif status == "slow":
                status = "left out"
                if not run.wide:
                    slow.add(run)
                if smaller and not run.wide and not slow.is_little(run):
                    # The least that there is, in place of the problems of a sweep.
                    smaller = False
                    known = [each.problem for each in cases.runs]
                    fewer = [each for each in cases.small.drawn() if each not in known]
                    jobs.extendleft(ahead.job(workload, each) for each in cases.of(fewer)[::-1])
            elif status == "ok":
                slow.ended.add(variant)
            yield Run(name, variant, status, said)


def _outcome(
    job: _Job, process: CpuProcess, compare: str | None, slow: _TooSlow
) -> tuple[str, str, float]:
    """Status of a run, what is said of it, and the seconds that it took.

    ``died`` where its process did, ``slow`` where it was too much work. ``compare`` names a
    comparison of the user's own.
    """
    for build in job.builds:
        try:
            build.result()
        except CannotRun as refused:
            return "left out", str(refused), 0.0
        except LaunchFailed as refused:
            return "failed", str(refused), 0.0
    asked = {"problem": job.run.problem, "configuration": job.run.configuration}
    limit = WIDE_S if job.run.wide else SILENCE_S
    try:
        found = process.run(asked, limit)
    except Silent as death:
        if slow.may_be(job.run):
            return "slow", f"{death}: too much work for the CPU device", limit
        return "died", str(death), limit
    except Died as death:
        return "died", str(death), 0.0
    if "error" in found:
        raise UserError(*found["error"])
    if found["status"] != "ok":
        return found["status"], found["reason"], found["cpu_s"]
    if compare:
        return "ok", f"{compare} agrees", found["cpu_s"]
    error, allowed = found["max_error"], found["tolerance"]
    return "ok", f"largest error {error:.3g}, allowed {allowed:.3g}", found["cpu_s"]


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

    def job(self, workload: Workload, run: Planned) -> _Job:
        """A run whose builds are being compiled; the first of all makes what the others share."""
        builds = [
            *workload.check_builds(run.problem),
            workload.build(run.problem, run.configuration),
        ]
        found: list[Future[None]] = []
        for build in builds:
            if build.key not in self._futures:
                future = self._pool.submit(self._compile, build, self._first)
                self._futures[build.key] = future
                self._first = self._first or future
            found.append(self._futures[build.key])
        return _Job(run, found)

    def _compile(self, build: Build, first: Future[Any] | None) -> None:
        if first is not None:
            first.exception()
        self._device.prepare(build)
