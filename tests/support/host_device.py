"""The CPU as a device that the measuring process can time; its times mean nothing.

As a program: the measuring process with this device.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from launchwise.cpu.device import CpuDevice
from launchwise.cpu.loaded import memory_of
from launchwise.experiment.method import Method, Repeats
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.job import Hear, Part
from launchwise.measuring.measure import OnDevice
from launchwise.measuring.repeats import Repeated
from launchwise.measuring.serving import Task, serve
from launchwise.workloads.builds import Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Launch, LibraryRun
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec, load_spec

__all__ = ["METHOD", "HostDevice", "HostParts", "measured_rows", "memory_of", "rows_of_folder"]

METHOD = Method(
    repeats=Repeats(minimum=1, maximum=1, few=1),
    slow_factor=1e9,
    graph_below_us=0,
    control_s=0,
    rest=False,
    energy_ms=0,
)


class HostParts:
    """Nothing to wait for: the host device compiles what it launches."""

    seconds = 0.0

    def listen(self, hear: Hear) -> None:
        """One part that holds every build; the host device does not read it."""
        hear(compiled(Part(Path(os.devnull), None)))

    def want(self, builds: Iterable[Build], likely: Iterable[Build] = ()) -> None:
        """They are there."""

    def wait(self) -> None:
        """As soon as they are asked for."""


def compiled(part: Part) -> Future[Part]:
    """A part that is there, as those are that a compiler makes."""
    future: Future[Part] = Future()
    future.set_result(part)
    return future


class HostDevice(CpuDevice):
    """See :class:`launchwise.measuring.measure.TimingDevice`."""

    l2_bytes = 1 << 16
    # Builds that it holds, if it is to wait for its bundles as a GPU does.
    bundles: list[Bundle] | None = None

    def timed(self, work: OnDevice, repeats: int, flush: bool) -> list[float]:
        """Milliseconds of each run."""
        times = []
        for _ in range(repeats):
            if isinstance(work, LibraryRun):
                work.restore()
            begin = time.perf_counter()
            if isinstance(work, LibraryRun):
                work.queue(None)
            for launch in work.launches:
                self.launch(launch)
            times.append((time.perf_counter() - begin) * 1e3)
        return times

    def replayed(self, work: OnDevice, repeats: int, launches: int) -> Repeated:
        """A CPU has no graphs: launches in a row."""
        times = []
        for _ in range(repeats):
            times.append(sum(self.timed(work, launches, flush=False)) / launches)
        return Repeated(times, "events", launches)

    def sustain(self, work: OnDevice, launches: int) -> None:
        """Run so often."""
        self.timed(work, launches, flush=False)

    def throttled(self) -> bool:
        """Not that it would say."""
        return False

    def add_bundle(self, path: Path) -> None:
        """Kernels are compiled from their sources here, when they are launched."""
        if self.bundles is not None:
            self.bundles.append(Bundle(path))

    def holds(self, build: Build) -> bool:
        """Whether it need not wait for it."""
        return self.bundles is None or any(each.holds(build) for each in self.bundles)

    def resources(self, launch: Launch) -> dict[str, Any]:
        """A CPU has none of these."""
        return {"registers": 1, "spill_bytes": 0, "shared_bytes": 0, "occupancy": None}


def of_job(job: dict[str, Any], kind: type[HostDevice], memory_bytes: int = 1 << 30) -> HostDevice:
    """A device of this kind for a job's workload."""
    folder, cache = Path(job["folder"]), Path(job["cache"])
    device = kind(folder, load_spec(folder).headers, memory_bytes=memory_bytes, cache=cache)
    device.bundles = [] if job.get("waits_for_bundles") else None
    return device


def rows_of_folder(
    folder: Path,
    cache: Path,
    problem: Problem,
    configurations: list[Configuration],
    method: Method = METHOD,
    kind: type[HostDevice] = HostDevice,
) -> list[dict[str, Any]]:
    """:func:`measured_rows` on a new device of a kind."""
    spec = load_spec(folder)
    device = kind(folder, spec.headers, cache=cache)
    return measured_rows(device, folder, spec, problem, configurations, method)


def measured_rows(
    device: HostDevice,
    folder: Path,
    spec: Spec,
    problem: Problem,
    configurations: list[Configuration],
    method: Method,
) -> list[dict[str, Any]]:
    """What a measuring process says of some configurations of the workload in ``folder``."""
    said: list[dict[str, Any]] = []
    tasks = [Task(problem, configurations)]
    serve(device, load_workload(folder, spec), method, tasks, 1, said.append)
    return [event for event in said if event["event"] == "row"]


if __name__ == "__main__":
    # Made-up cards replace this module by one that imports the device above.
    from launchwise.cuda.child import run

    sys.exit(run(lambda job: of_job(job, HostDevice)))
