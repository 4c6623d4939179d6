"""Runs one configuration of a workload on the first GPU, verified and not timed.

A process of its own: what it runs may spoil the context. Reads folder, problem and configuration as
JSON from standard input; writes the outcome as the last line.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from launchwise.cli.check.on_cpu import outcome
from launchwise.cuda.device import CudaDevice
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec


class Verifying(CudaDevice):
    """A GPU, where rounds do not differ."""

    def begin_round(self, number: int) -> None:
        """Nothing: the hardware orders its threads."""


def found(asked: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Outcome of the configuration, as on the CPU device."""
    folder, problem, configuration = Path(asked["folder"]), asked["problem"], asked["configuration"]
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = Verifying()
    builds = [workload.build(problem, configuration), *workload.check_builds(problem)]
    arch = "sm_{}{}".format(*device.device.compute_capability())
    compile_bundle(folder, spec, builds, arch, scratch / "bundle", 1)
    device.add_bundle(scratch / "bundle")
    return outcome(workload, spec, device, problem, configuration, asked["seed"])  # type: ignore[arg-type]


if __name__ == "__main__":
    code = 1
    with tempfile.TemporaryDirectory() as place:
        try:
            print(json.dumps(found(json.load(sys.stdin), Path(place))), flush=True)
            code = 0
        except Exception:
            traceback.print_exc()
    # A lost context makes PyCUDA's own clean-up complain.
    os._exit(code)
