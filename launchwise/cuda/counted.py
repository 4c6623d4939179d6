"""The process that Nsight Compute profiles: runs each configuration once and lists its kernels.

    ncu --profile-from-start off ... python -m launchwise.cuda.counted job.json launches.json

The job names the workload's folder, the bundle of its kernels, the seed, slice_sms and the runs
(problem, configuration). The profiler is on only while a configuration runs; before that it ran
once and was checked, so that what is read is of a right and loaded kernel.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.measuring.serving import problem_seed
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Device, HostRun, Launch, Runnable
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import Session


class Recorded:
    """Device that records launches while recording is on, and delegates everything else."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.noted: list[dict[str, Any]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def launch(self, launch: Launch, stream: Any = None) -> None:
        """Queue a kernel and record the launch."""
        if self.noted is not None:
            self.noted.append(
                {
                    "symbol": launch.build.symbol(launch.kernel),
                    "kernel": launch.kernel,
                    "grid_blocks": math.prod(launch.grid),
                    "block_threads": math.prod(launch.block),
                }
            )
        self._device.launch(launch, stream)


Profiling = Callable[[], AbstractContextManager[None]]  # Turns the profiler on for a block of code


def run(job: Mapping[str, Any], device: Device, profiling: Profiling) -> list[list[dict[str, Any]]]:
    """Launches of every run of ``job``: symbol, kernel, grid_blocks and block_threads. Raises
    UserError when a configuration of a verified variant computes something wrong."""
    folder = Path(job["folder"])
    workload = load_workload(folder, load_spec(folder))
    recorded = Recorded(device)
    found = []
    opened: tuple[Any, Session] | None = None
    try:
        for each in job["runs"]:
            problem, configuration = each["problem"], each["configuration"]
            key = (problem, workload.layout(configuration))
            if opened is None or opened[0] != key:
                if opened is not None:
                    opened[1].close()
                    opened = None
                seed = problem_seed(job["seed"], problem)
                opened = key, workload.open(recorded, problem, key[1], seed)
            found.append(_run_one(recorded, opened[1], configuration, profiling))
    finally:
        if opened is not None:
            opened[1].close()
    return found


def _run_one(
    device: Recorded, session: Session, configuration: Mapping[str, Any], profiling: Profiling
) -> list[dict[str, Any]]:
    work = session.launch(configuration)
    session.poison()
    once = _once(device, work)
    once()
    finding = session.check()
    # A variant that is not verified need not be right.
    variant = session.workload.spec.variants[str(configuration["variant"])]
    if finding.wrong and variant.verified:
        raise UserError("counters", "", f"{dict(configuration)}: {finding.wrong}")
    # What the first run changed is put back.
    session.poison()
    device.noted = []
    with profiling():
        once()
        device.synchronize()
    noted, device.noted = device.noted, None
    return noted


def _once(device: Recorded, work: Runnable) -> Callable[[], None]:
    if isinstance(work, HostRun):
        return work.run

    def launch_all() -> None:
        for launch in work.launches:
            device.launch(launch)

    return launch_all


@contextmanager
def _cuda_profiler() -> Any:
    import pycuda.driver as cuda

    cuda.start_profiler()
    try:
        yield
    finally:
        cuda.stop_profiler()


def main(asked: Path, made: Path) -> None:
    """Run the job that ``asked`` holds and write its launches to ``made``."""
    from launchwise.cuda.device import CudaDevice

    job = json.loads(asked.read_text())
    device = CudaDevice(job["slice_sms"])
    device.add_bundle(Path(job["bundle"]))
    made.write_text(json.dumps(run(job, device, _cuda_profiler)))
    device.close()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except UserError as error:
        sys.exit(str(error))
