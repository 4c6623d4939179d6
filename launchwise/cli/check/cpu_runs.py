"""Runs small problems of a workload on the CPU device, in a process that may crash or hang."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.work import usable_cores
from launchwise.cli.check import FAILED, LEFT_OUT, OK, Step
from launchwise.cli.check.cases import Cases, Planned
from launchwise.cpu.device import CpuDevice
from launchwise.cpu.toolchain import CannotRun
from launchwise.measuring.process import KILLED_S, MeasuringProcess
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem, label
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload


class Died(Exception):
    """The process ended, or was ended because it did not answer; the message says which."""


class Silent(Died):
    """It did not answer in time."""


class CpuProcess:
    """A process of :mod:`launchwise.cli.check.on_cpu` for a workload; it ends with the block."""

    def __init__(self, folder: Path) -> None:
        self._command = [sys.executable, "-m", "launchwise.cli.check.on_cpu", str(folder)]
        self._start()

    def _start(self) -> None:
        self._process, self._is_loaded = MeasuringProcess(self._command, os.environ), False

    def __enter__(self) -> CpuProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.close()

    def run(self, job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Its answer to one job; a process that has died is started anew. Raises Silent when there
        is none within so many seconds of its processor's time, however busy the machine is, or
        when it waits as long for nothing. Raises Died when the process dies."""
        if self._process.popen.poll() is not None:
            self._process.close()
            self._start()
        process = self._process
        # Its first line says that it is loaded.
        self._is_loaded = self._is_loaded or bool(process.heard(None))
        begun = used = _processor_s(process)
        process.send(job)
        while not select.select([process.events], [], [], begun + seconds - used + POLL_S)[0]:
            before, used = used, _processor_s(process)
            if used >= begun + seconds or used == before:
                process.kill()
                process.exit_code(KILLED_S)
                raise Silent(f"did not finish within {seconds:g} s") from None
        line = process.heard(None)
        if not line:
            code = process.exit_code(KILLED_S)
            raise Died(process.last_words() or f"ended with code {code}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _processor_s(process: MeasuringProcess) -> float:
    """Processor's time of a process, s; 0 of one that has ended."""
    with contextlib.suppress(OSError):
        # The number that Linux gives to the clock of another process.
        return time.clock_gettime((~process.popen.pid << 3) | 2)
    return 0.0


# Of the processor's time, not of the clock:
SILENCE_S = 10.0  # Limit of one configuration, without its compilation, s
WIDE_S = 3.0  # Limit of a configuration of a size above the threads of a block, s
VARIANT_S = 30.0  # Of all runs of a variant, after which none is tried, s
WIDE_VARIANT_S = 6.0  # After which none of a size above a block is, s
POLL_S = 0.05  # Pause between two looks at a process that has not answered, s
MOST_DEATHS = 3  # Processes that crash or hang before no further configuration is tried

MOST_SMALL_ITEMS = 1 << 16
"""Most work items, or numbers in memory, of a problem that every right kernel ends in time."""

BYTES_PER_ITEM = 4

MOST_VALUES = 8  # Values of a tunable that are told


def few(values: Sequence[Value]) -> str:
    """Values with commas, the first ones where there are many."""
    more = ["..."] if values[MOST_VALUES:] else []
    return ",".join([*map(str, values[:MOST_VALUES]), *more])


MOST_WATCHED = 3
"""Problems of a variant whose first run notices updates that a GPU loses: it takes longer."""


@dataclass(frozen=True)
class Job:
    run: Planned
    watched: bool
    builds: list[Future[None]]  # compilations that it waits for


def run_on_cpu(
    folder: Path,
    spec: Spec,
    workload: Workload,
    gpu: Mapping[str, Any],
    listed: Sequence[Problem] | None,
    given: Sequence[Problem] | None,
) -> Iterator[Step]:
    """Run problems and yield the outcome of each configuration. Builds are compiled ahead, on every
    core. ``gpu``: limits of the GPU that configurations must keep. ``listed``, ``given``: problems
    of ``sweep.yaml``, and of the command line, which go first; small ones are drawn where there are
    neither. Raises UserError when the spec or the workload's own code is wrong."""
    cases, drawn = Cases(spec, gpu), given is not None
    # The process loads its libraries while this one looks for problems.
    with CpuProcess(folder) as process, _Ahead(folder, cases, workload) as ahead:
        cases.plan(listed, given)
        yield from (Step("cpu", LEFT_OUT, f"{name}: {why}") for name, why in cases.left_out)
        runs = _Runs(cases, process, is_drawn=given is None and listed is None)
        jobs = deque(map(ahead.job, cases.runs))
        while jobs:
            job = jobs.popleft()
            yield runs.outcome(job)
            if runs.takes_too_long and not drawn:
                # The least that there is, in place of the problems of a sweep.
                drawn = True
                known = [each.problem for each in cases.runs]
                fewer = [each for each in cases.drawn() if each not in known]
                jobs.extendleft(map(ahead.job, cases.of(fewer)[::-1]))
    if said := runs.values_left_out():
        yield Step("values", LEFT_OUT, f"{said}: a sweep verifies them before it times them")


class _Runs:
    """Runs in a process that may crash or hang. A run that does not end in time fails where its
    problem is small and its kernel compiled by g++: then it never ends. In Triton's interpreter,
    which takes longer, it fails where no run of its variant ended. Others are too much work, and so
    are those of the variant with no less memory."""

    def __init__(self, cases: Cases, process: CpuProcess, is_drawn: bool) -> None:
        self._is_drawn = is_drawn
        self._spec, self._cases, self._process = cases.spec, cases, process
        self._deaths = 0
        # Variant to the processor's time of its runs, s.
        self._spent = defaultdict[str, float](float)
        # What compilers said; told for one run each.
        self._refused = set[str]()
        # Variant to the least memory, B, of a run that was too much work.
        self._most: dict[str, float] = {}
        self._ended: set[str] = set()
        # Whether a problem that is not small was too much work.
        self.takes_too_long = False
        self._tried: list[Planned] = []

    def values_left_out(self) -> str:
        """Values of tunables that no run had, and sizes that none had above a block, in words; ''
        where runs had all, or none ran."""
        missing, ran = [], [each.configuration for each in self._tried]
        for name, tunable in self._spec.tunables.items():
            users = [each for each, one in self._spec.variants.items() if name in one.tunables]
            tried = [each[name] for each in ran if each["variant"] in users]
            values = [value for value in tunable.values if value not in tried]
            if tried and values:
                missing.append(f"{name}={few(values)}")
        missing += self._cases.never_above(self._tried)
        return f"no run had {' or '.join(missing)}" if missing else ""

    def outcome(self, job: Job) -> Step:
        run, variant = job.run, str(job.run.configuration["variant"])
        status, said = self._outcome(job, variant)
        if status == OK:
            self._ended.add(variant)
        if status not in (LEFT_OUT, FAILED):
            self._tried.append(run)
        name = f"{label(run.configuration, self._spec)} at {assigned(run.problem)}"
        larger = self._is_drawn and run.problem != self._cases.runs[0].problem
        return Step("cpu", status, f"{name}: {said}", variant, larger)

    def _outcome(self, job: Job, variant: str) -> tuple[str, str]:
        run, needed = job.run, self._cases.size(job.run.problem)[1]
        if self._deaths == MOST_DEATHS:
            return LEFT_OUT, f"not tried: {self._deaths} configurations crashed or hung"
        if self._spent[variant] > (WIDE_VARIANT_S if run.wide else VARIANT_S):
            return LEFT_OUT, "not tried: its variant has had its processor's time"
        if needed >= self._most.get(variant, math.inf):
            return LEFT_OUT, "not tried: no less work than a run that did not end in time"
        try:
            return self._asked(job, variant)
        except Died as death:
            is_little = _is_little(self._cases, run)
            is_slow = self._spec.variants[variant].is_triton and variant in self._ended
            if isinstance(death, Silent) and (run.wide or is_slow or not is_little):
                if not run.wide:
                    self._most[variant] = needed
                    self.takes_too_long |= not is_little
                return LEFT_OUT, f"{death}: too much work for the CPU device"
            self._deaths += 1
            return FAILED, str(death)

    def _asked(self, job: Job, variant: str) -> tuple[str, str]:
        run = job.run
        for build in job.builds:
            try:
                build.result()
            except CannotRun as refused:
                return LEFT_OUT, str(refused)
            except LaunchFailed as refused:
                is_known = str(refused) in self._refused
                self._refused.add(str(refused))
                return LEFT_OUT if is_known else FAILED, str(refused)
        limit = WIDE_S if run.wide else SILENCE_S
        asked = {"problem": run.problem, "configuration": run.configuration, "watched": job.watched}
        try:
            found = self._process.run(asked, limit)
        except Silent:
            self._spent[variant] += limit
            raise
        if "error" in found:
            raise UserError(*found["error"])
        self._spent[variant] += found["cpu_s"]
        if found["status"] != OK:
            return found["status"], found["reason"]
        reference = self._spec.reference
        if reference is not None and reference.compare:
            return OK, f"{reference.compare} agrees"
        error, allowed = found["max_error"], found["tolerance"]
        return OK, f"largest error {error:.3g}, allowed {allowed:.3g}"


def _is_little(cases: Cases, run: Planned) -> bool:
    """Whether it is so little work that every right kernel of g++ ends in time."""
    items, needed = cases.size(run.problem)
    return max(items, needed / BYTES_PER_ITEM) <= MOST_SMALL_ITEMS


class _Ahead:
    """Compiles builds on every core, each once, for the process that will run them."""

    def __init__(self, folder: Path, cases: Cases, workload: Workload) -> None:
        self._workload, self._cases, spec = workload, cases, cases.spec
        self._devices = [CpuDevice(folder, spec.headers, watched=each) for each in (False, True)]
        self._pool = ThreadPoolExecutor(usable_cores())
        self._futures: dict[tuple[str, bool], Future[None]] = {}
        # Variant to the problems of watched runs.
        self._watched = defaultdict[str, list[Problem]](list)

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def job(self, run: Planned) -> Job:
        """A run whose builds are being compiled; the first of all makes what the others share."""
        variant = str(run.configuration["variant"])
        known, verified = self._watched[variant], self._cases.spec.variants[variant].verified
        # Code that races as it was published is declared.
        watched = verified and len(known) < MOST_WATCHED and run.problem not in known
        watched = watched and _is_little(self._cases, run)
        known += [run.problem] if watched else []
        own = self._workload.build(run.problem, run.configuration)
        builds = [*self._workload.check_builds(run.problem), own]
        for build in builds:
            if (build.key, watched) not in self._futures:
                first = next(iter(self._futures.values()), None)
                made = self._pool.submit(self._compile, build, watched, first)
                self._futures[build.key, watched] = made
        return Job(run, watched, [self._futures[build.key, watched] for build in builds])

    def _compile(self, build: Build, watched: bool, first: Future[None] | None) -> None:
        if first is not None:
            first.exception()
        self._devices[watched].prepare(build)
