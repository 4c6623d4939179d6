"""A measuring process on a device whose times are those that the job says.

Kernels do run (verification is real), but what a launch took is staged: ``time_ms`` (1 by default),
5 % more from launch number ``slower_from`` on, and 30 % more in two of three launches up to number
``disturbed_until``. Each timing really waits ``pause_s``.
"""

import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from host_device import HostDevice, of_job

from launchwise.cuda.child import run
from launchwise.measuring.measure import OnDevice
from launchwise.measuring.repeats import Repeated


class StagedDevice(HostDevice):
    """See the module."""

    time_ms = 1.0
    slower_from = 10**9
    disturbed_until = 0
    pause_s = 0.0
    launches = 0

    def _staged(self) -> float:
        self.launches += 1
        disturbed = self.launches <= self.disturbed_until and self.launches % 3
        slower = 1.05 if self.launches > self.slower_from else 1.0
        return self.time_ms * slower * (1.3 if disturbed else 1.0)

    def timed(self, work: OnDevice, repeats: int, flush: bool) -> list[float]:
        """One real launch, staged times."""
        for launch in work.launches:
            self.launch(launch)
        time.sleep(self.pause_s)
        return [self._staged() for _ in range(repeats)]

    def replayed(self, work: OnDevice, repeats: int, launches: int) -> Repeated:
        """Staged times of many launches."""
        return Repeated([self._staged() for _ in range(repeats)], "graph", launches)

    def sustain(self, work: OnDevice, launches: int) -> None:
        """As long as so many launches would take."""
        time.sleep(launches * self.time_ms / 1e3)


def open_device(job: dict[str, Any]) -> HostDevice:
    """A staged device for the job's workload."""
    device = of_job(job, StagedDevice)
    for name in ("time_ms", "slower_from", "disturbed_until", "pause_s"):
        if name in job:
            setattr(device, name, job[name])
    return device


if __name__ == "__main__":
    sys.exit(run(open_device))
