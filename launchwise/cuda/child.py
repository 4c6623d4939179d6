"""The measuring process: reads a job from standard input, says events on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from launchwise.bundle import Bundle
from launchwise.errors import UserError
from launchwise.measure import LaunchFailed, Task, TimingDevice, serve
from launchwise.settings import Method
from launchwise.spec import load_spec
from launchwise.workload import load_workload


def run(open_device: Callable[[dict[str, Any]], TimingDevice]) -> int:
    """Serve one job; exit code 0 when all of it is measured, 3 when the context is lost.

    The job is one JSON object: folder, method, seed, tasks, and what ``open_device`` needs.
    Anything else that prints goes to standard error, so that only events are on the pipe.
    """
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def say(event: dict[str, Any]) -> None:
        pipe.write(json.dumps(event, separators=(",", ":")) + "\n")
        pipe.flush()

    job = json.loads(sys.stdin.read())
    try:
        folder = Path(job["folder"])
        workload = load_workload(folder, load_spec(folder))
        tasks = [Task(**task) for task in job["tasks"]]
        device = open_device(job)
        if device.sms != job.get("expected_sms", device.sms):
            message = f"the device has {device.sms} SMs, its profile {job['expected_sms']}"
            raise UserError("sweep", "", message)
        serve(device, workload, Method.model_validate(job["method"]), tasks, job["seed"], say)
    except (LaunchFailed, UserError) as error:
        say({"event": "fatal", "reason": str(error)})
        return 3
    return 0


def open_cuda(job: dict[str, Any]) -> TimingDevice:
    """The first visible CUDA device with the job's bundle loaded."""
    from launchwise.cuda.device import CudaDevice

    return CudaDevice(Bundle(job["bundle"]), job["slice_sms"])


if __name__ == "__main__":
    code = run(open_cuda)
    sys.stdout.flush()
    # A lost context makes PyCUDA's own clean-up complain; the process ends here anyway.
    os._exit(code)
