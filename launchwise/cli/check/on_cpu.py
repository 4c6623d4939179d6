"""Runs configurations of a workload on the CPU device, in a process that may crash or hang.

It reads what to run as JSON from standard input, and writes a JSON line when a configuration
begins (``start``) and when it has ended (``status``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.cpu.device import CpuDevice
from launchwise.cpu.library import CannotCompile
from launchwise.measuring.check_results import complaint
from launchwise.workloads.device import LaunchFailed, OutOfMemory
from launchwise.workloads.launches import HostRun
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.workload import Workload, load_workload

ROUNDS = 3
"""Runs of each configuration: launches go forward, backward and shuffled."""


def main() -> None:
    """Run what standard input asks."""
    asked = json.load(sys.stdin)
    folder = Path(asked["folder"])
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers, memory_bytes=asked["memory_bytes"])
    try:
        if said := workload.self_check(device, asked["problem"], asked["seed"]):
            _say(status="wrong", reason=said, configuration=asked["configurations"][0])
            return
        for configuration in asked["configurations"]:
            _say(start=configuration)
            found = outcome(workload, spec, device, asked["problem"], configuration, asked["seed"])
            _say(configuration=configuration, **found)
    except UserError as error:
        _say(error=[str(error.where), error.key, error.message])


def outcome(
    workload: Workload,
    spec: Spec,
    device: CpuDevice,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Outcome of a configuration: ``status`` (ok, wrong, failed or left out), and why.

    With the largest error and what is allowed, where its results were checked.
    """
    error, tolerance = 0.0, 0.0
    try:
        session = workload.open(device, problem, workload.layout(configuration), seed)
        try:
            work = session.launch(configuration)
            for _ in range(ROUNDS):
                session.poison()
                if isinstance(work, HostRun):
                    work.run()
                else:
                    for launch in work.launches:
                        device.launch(launch)
                found = session.check()
                if wrong := complaint(found):
                    return {"status": "wrong", "reason": wrong}
                error, tolerance = max(error, found.max_error), found.tolerance
        finally:
            session.close()
    except CannotCompile as failure:
        return {"status": "left out", "reason": str(failure)}
    except (LaunchFailed, OutOfMemory) as failure:
        return {"status": "failed", "reason": str(failure)}
    return {"status": "ok", "reason": "", "max_error": error, "tolerance": tolerance}


def _say(**event: Any) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main()
