"""Small problems of a workload on the CPU device: are the results right?"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.discovery import SWEEP_FILE
from launchwise.experiment.method import Sweep
from launchwise.workloads import corners
from launchwise.workloads.drawn_problems import drawn_problems
from launchwise.workloads.parts import SPEC_FILE
from launchwise.workloads.space import (
    Configuration,
    Problem,
    feasible,
    label,
    problems,
)
from launchwise.workloads.spec import Spec

MOST_PROBLEMS = 4
MOST_CONFIGURATIONS = 4
"""Of each variant: the first, the last and some between."""

MEMORY_BYTES = 1 << 28
"""Problems that need more are left out: the CPU runs one thread at a time."""

SILENCE_S = 30.0
"""Time that a configuration may take, with its compilation, s."""

TOTAL_S = 30.0
"""Time after which no further configuration is tried, s."""

ODD = 13
"""Added to the smallest size, twice to the second parameter's and so on: blocks at the end of an
array are then not full, and a width is no height."""

SEED = 2026


@dataclass(frozen=True)
class Run:
    """Outcome of a configuration.

    Parameters
    ----------
    passed
        False for one that the CPU device cannot run; ``said`` is why.
    """

    name: str
    passed: bool
    said: str


def small_problems(folder: Path, spec: Spec) -> list[Problem]:
    """The smallest problems of ``sweep.yaml``; without one, the smallest sizes and odd ones.

    One for each combination of texts, such as types. All are problems of the workload; where the
    baseline is infeasible, the nearest that it may run comes first.

    Raises
    ------
    UserError
        When ``sweep.yaml`` lists what is no problem of the workload.
    """
    path = folder / SWEEP_FILE
    if path.is_file():
        try:
            listed = problems(spec, validated(Sweep, read_yaml(path), path).problems)
        except ValueError as error:
            raise UserError(path, "problems", str(error)) from error
        listed.sort(key=lambda each: float(spec.value(spec.work.footprint_bytes, each)))
        kinds: dict[str, Problem] = {}
        for problem in listed:
            kind = [value for value in problem.values() if isinstance(value, str)]
            kinds.setdefault(json.dumps(kind), problem)
        return list(kinds.values())[:MOST_PROBLEMS]
    sizes = {name: _sizes(spec, name, place) for place, name in enumerate(spec.problem)}
    smallest = {name: small for name, (small, _) in sizes.items()}
    odd = {name: larger for name, (_, larger) in sizes.items()}
    wanted = [smallest, odd]
    for problem in corners.corner_problems(spec):
        texts = {name: value for name, value in problem.items() if isinstance(value, str)}
        wanted.append({**odd, **texts})
    found = drawn_problems(spec, list({json.dumps(each): each for each in wanted}.values()))
    return found[:MOST_PROBLEMS]


def _sizes(spec: Spec, name: str, place: int) -> tuple[Any, Any]:
    """Smallest value of a parameter, and an odd one near it, another one for each ``place``."""
    parameter = spec.problem[name]
    if parameter.values is not None:
        listed = parameter.values
        if parameter.type == "integer":
            listed = sorted(listed)
        return listed[0], listed[min(1, len(listed) - 1)]
    low = parameter.minimum if parameter.minimum is not None else 1
    odd = low + (1 + place) * ODD
    return low, odd if parameter.maximum is None else min(odd, parameter.maximum)


def chosen(spec: Spec, problem: Problem) -> list[Configuration]:
    """The baseline, then corners: one of each variant, another of each, and so on.

    All are feasible; where nothing that is tried is, the list is empty.
    """
    first, *rest = corners.corner_configurations(spec)
    found = [first] if feasible(spec, problem, first) else []
    per_variant: dict[str, list[Configuration]] = {}
    for configuration in rest:
        if feasible(spec, problem, configuration) and configuration != first:
            per_variant.setdefault(str(configuration["variant"]), []).append(configuration)
    few = [_evenly(listed) for listed in per_variant.values()]
    found += [each for rank in itertools.zip_longest(*few) for each in rank if each is not None]
    return found


def _evenly(listed: list[Configuration]) -> list[Configuration]:
    """At most :data:`MOST_CONFIGURATIONS`, from the first to the last."""
    count = min(MOST_CONFIGURATIONS, len(listed))
    places = [round(i * (len(listed) - 1) / max(1, count - 1)) for i in range(count)]
    return [listed[place] for place in dict.fromkeys(places)]


def run_on_cpu(folder: Path, spec: Spec) -> Iterator[Run]:
    """Run small problems and yield the outcome of each configuration.

    Raises
    ------
    UserError
        At the first configuration that is wrong, fails or does not end.
    """
    began = time.monotonic()
    for problem in small_problems(folder, spec):
        where = ", ".join(f"{name}={value}" for name, value in problem.items())
        if not chosen(spec, problem):
            yield Run(where, False, "no feasible configuration")
            continue
        needed = float(spec.value(spec.work.footprint_bytes, problem))
        if needed > MEMORY_BYTES:
            yield Run(where, False, f"needs {needed / 1e6:.0f} MB, more than the CPU device allows")
            continue
        if time.monotonic() - began > TOTAL_S:
            yield Run(where, False, f"time limit reached ({TOTAL_S:g} s)")
            continue
        for configuration, event in _events(folder, spec, problem):
            name = f"{label(configuration, spec)} at {where}"
            if event["status"] in ("wrong", "failed"):
                raise UserError(
                    folder / SPEC_FILE,
                    f"variants.{configuration['variant']}",
                    f"{event['status']} on the CPU: {event['reason']} ({name})",
                )
            if event["status"] == "left out":
                yield Run(name, False, event["reason"])
            else:
                limit = f"{event['tolerance']:.3g}"
                yield Run(name, True, f"largest error {event['max_error']:.3g}, allowed {limit}")
            if time.monotonic() - began > TOTAL_S:
                yield Run(where, False, f"time limit ({TOTAL_S:g} s): others were not tried")
                break


def _events(
    folder: Path, spec: Spec, problem: Problem
) -> Iterator[tuple[Configuration, Mapping[str, Any]]]:
    """Configuration and outcome, from a process of its own.

    Raises
    ------
    UserError
        When the process says that the user is wrong, hangs, or dies.
    """
    configurations = chosen(spec, problem)
    asked = {
        "folder": str(folder),
        "problem": problem,
        "configurations": configurations,
        "memory_bytes": 4 * MEMORY_BYTES,
        "seed": SEED,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "launchwise.cli.check.on_cpu"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    in_hand = configurations[0]
    watch = _Watch(process)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked))
        process.stdin.close()
        for line in process.stdout:
            watch.again()
            event = json.loads(line)
            if "error" in event:
                place, key, message = event["error"]
                raise UserError(place, key, message)
            if "start" in event:
                in_hand = event["start"]
            else:
                yield event["configuration"], event
    finally:
        watch.end()
        said = process.stderr.read() if process.stderr is not None else ""
        code = process.wait()
    if code:
        raise _death(folder, spec, in_hand, problem, watch.bitten, code, said)


def _death(
    folder: Path,
    spec: Spec,
    configuration: Configuration,
    problem: Problem,
    hung: bool,
    code: int,
    said: str,
) -> UserError:
    """Why the process ended."""
    where = ", ".join(f"{name}={value}" for name, value in problem.items())
    name = f"{label(configuration, spec)} at {where}"
    last = said.strip().splitlines()[-1] if said.strip() else f"ended with code {code}"
    what = f"did not finish within {SILENCE_S:g} s" if hung else last
    key = f"variants.{configuration['variant']}"
    return UserError(folder / SPEC_FILE, key, f"failed on the CPU: {what} ({name})")


class _Watch:
    """Kills a process that prints nothing for too long."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.bitten = False
        self._timer = self._started()

    def _started(self) -> threading.Timer:
        timer = threading.Timer(SILENCE_S, self._bite)
        timer.daemon = True
        timer.start()
        return timer

    def _bite(self) -> None:
        self.bitten = True
        self._process.kill()

    def again(self) -> None:
        """Begin to wait anew."""
        self._timer.cancel()
        self._timer = self._started()

    def end(self) -> None:
        """Stop waiting; a process that still runs is killed."""
        self._timer.cancel()
        if self._process.poll() is None:
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
