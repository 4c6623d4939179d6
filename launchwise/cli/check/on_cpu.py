"""Runs configurations of a workload on the CPU device, in a process that may crash or hang.

Its argument is the folder of the workload. It reads JSON lines from standard input, a problem and a
configuration each, and answers with a JSON line per configuration."""

from __future__ import annotations

import itertools
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.work import end_with_the_starter
from launchwise.cli.check.cases import MEMORY_BYTES
from launchwise.cli.check.small_problems import SEED
from launchwise.cpu.device import ORDERS, CpuDevice
from launchwise.cpu.loaded import GUARDS
from launchwise.cpu.toolchain import CannotRun
from launchwise.measuring.repeats import complaint
from launchwise.workloads.declared.declared_session import UNCHANGED
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import HostRun, LaunchFailed, OutOfMemory
from launchwise.workloads.output_check import NEVER_WRITTEN
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.workload import Workload

_CEIL_DIV = re.compile(r"ceil_div\(\s*([^,()]+?)\s*, \s*([^,()]+?)\s*\)")


def hint(
    reason: str, spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str:
    """The key that a failure points to, to be added to its reason; '' for none."""
    if "bytes of dynamic shared memory" in reason:
        return f"; shared_bytes of variants.{configuration['variant']} sets them"
    if "beyond the end of a buffer" in reason:
        names = {**UNKNOWN_GPU, **problem, **configuration}
        grids = itertools.chain(*spec.variants[str(configuration["variant"])].grids)
        for length, block in _CEIL_DIV.findall(" ".join(grids)):
            try:
                size, side = (int(spec.value(text, names)) for text in (length, block))
            except ValueError:
                continue
            if side > 1 and size % side:
                named = block if block == str(side) else f"{block} = {side}"
                return (
                    f"; {length} = {size} is no multiple of {named}: a bound is missing or wrong, "
                    f'or the spec needs constraints: ["{length} % {block} == 0"]'
                )
    return ""


def doubt(spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> str:
    """Why wrong results on the CPU say nothing about a GPU; '' where they do."""
    names = {**configuration, **problem}
    kinds = {argument.dtype(names).name for argument in spec.arguments.values()}
    if spec.variants[str(configuration["variant"])].is_triton and "bfloat16" in kinds:
        known = "Triton's interpreter does not compute in bfloat16"
        return f"{known}: check another type, or cast to float32 in the kernel"
    return ""


ROUNDS = len(ORDERS)  # Runs of each configuration: once in each order of threads and warps

UNINITIALISED = "; written, from memory that nothing wrote before: shared, local, beyond an array?"

LEFT_ALONE = "; what a kernel leaves alone on purpose, such as a halo, needs role: inout"

RACE = (
    "; right in another order of threads: is a barrier or __syncwarp() missing, a local unset, "
    "or an index beyond shared memory?"
)

BEYOND = "; right with other contents beyond arrays: is a mask missing or wrong?"


def main(folder: Path) -> None:
    """Run what standard input asks of a workload, after a line that says that it is loaded."""
    end_with_the_starter()
    # What the user's code prints is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    runner = Runner(folder)
    for found in itertools.chain([{}], map(runner.answer, map(json.loads, sys.stdin))):
        answers.write(json.dumps(found) + "\n")
        answers.flush()


class Runner:
    def __init__(self, folder: Path) -> None:
        self._spec = load_spec(folder)
        self._workload = load_workload(folder, self._spec)
        self._devices = [
            CpuDevice(folder, self._spec.headers, memory_bytes=4 * MEMORY_BYTES, watched=watched)
            for watched in (False, True)
        ]
        self._checked: dict[str, str] = {}

    def answer(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Outcome of a configuration of a problem, and the time that it took; or an error."""
        problem, key, begun = job["problem"], json.dumps(job["problem"]), time.process_time()
        found: dict[str, Any]
        device = self._devices[job["watched"]]
        try:
            if key not in self._checked:
                self._checked[key] = self._workload.self_check(device, problem, SEED) or ""
            if said := self._checked[key]:
                found = {"status": "wrong", "reason": said}
            else:
                one = self._workload, self._spec, device, problem, job["configuration"]
                found = outcome(*one, SEED)
        except UserError as error:
            found = {"error": [error.where, error.key, error.message]}
            if error.message.endswith(UNCHANGED):
                found = {"status": "left out", "reason": f"its reference {error.message}"}
        return {**found, "cpu_s": time.process_time() - begun}


def outcome(
    workload: Workload,
    spec: Spec,
    device: CpuDevice,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Outcome of a configuration: ``status`` (ok, wrong, failed or left out), and why. With the
    largest error and what is allowed, where its results were checked."""
    error, tolerance = 0.0, 0.0
    wrong, right = list[str](), 0
    is_triton = spec.variants[str(configuration["variant"])].is_triton
    try:
        session = workload.open(device, problem, workload.layout(configuration), seed)
        try:
            work = session.launch(configuration)
            # Instances of Triton have one order; only contents beyond arrays differ.
            for number in range(len(GUARDS) if is_triton else ROUNDS):
                device.begin_round(number)
                session.poison()
                if isinstance(work, HostRun):
                    work.run()
                else:
                    for launch in work.launches:
                        device.launch(launch)
                found = session.check()
                if said := complaint(found):
                    wrong.append(said)
                    continue
                right += 1
                error, tolerance = max(error, found.max_error), found.tolerance
        finally:
            session.close()
    except CannotRun as failure:
        return {"status": "left out", "reason": str(failure)}
    except (LaunchFailed, OutOfMemory) as failure:
        said = str(failure)
        said += hint(said, spec, problem, configuration)
        return {"status": "failed", "reason": said}
    if wrong:
        if not right and (blamed := doubt(spec, problem, configuration)):
            return {"status": "left out", "reason": blamed}
        return {
            "status": "wrong",
            "reason": wrong[0] + BEYOND if is_triton and right else _why(wrong, right),
        }
    return {"status": "ok", "reason": "", "max_error": error, "tolerance": tolerance}


def _why(wrong: list[str], right: int) -> str:
    """What is said of wrong results in all orders of threads, or in some. Fresh shared memory holds
    what outputs are filled with in one order, something else in another."""
    if right:
        return wrong[0] + RACE
    written = [said for said in wrong if NEVER_WRITTEN not in said]
    if not written:
        return wrong[0] + LEFT_ALONE
    return written[0] + (UNINITIALISED if len(written) < len(wrong) else "")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
