"""A measuring process on a device whose times are those that the job says.

Kernels do run (verification is real), but what a launch took is staged: ``time_ms`` (1 by default),
5 % more from launch number ``slower_from`` on, and 30 % more in two of three launches up to number
``disturbed_until``. All launches of a timing take the same random part longer or shorter, with
standard deviation ``noise``, and twice as long from launch number ``doubled_from`` on. Launches
that one of ``delayed`` numbers take a hundred times as long. Each timing really waits ``pause_s``.
"""

import random
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from host_device import HostDevice

from launchwise.cuda.child import run
from launchwise.measuring.measure import OnDevice
from launchwise.measuring.rows import Repeated
from launchwise.workloads.spec import load_spec


class StagedDevice(HostDevice):
    """See the module."""

    time_ms = 1.0
    slower_from = 10**9
    disturbed_until = 0
    pause_s = 0.0
    noise = 0.0
    doubled_from = 10**9
    delayed: tuple[int, ...] = ()
    launches = 0
    draws = random.Random(0)

    def _staged(self) -> float:
        self.launches += 1
        disturbed = self.launches <= self.disturbed_until and self.launches % 3
        slower = 1.05 if self.launches > self.slower_from else 1.0
        doubled = 2.0 if self.launches > self.doubled_from else 1.0
        delayed = 100.0 if self.launches in self.delayed else 1.0
        return self.time_ms * slower * doubled * delayed * (1.3 if disturbed else 1.0)

    def _staged_together(self, repeats: int) -> list[float]:
        factor = 1.0 + self.noise * self.draws.gauss(0.0, 1.0)
        return [factor * self._staged() for _ in range(repeats)]

    def timed(self, work: OnDevice, repeats: int, flush: bool) -> list[float]:
        """One real launch, staged times."""
        for launch in work.launches:
            self.launch(launch)
        time.sleep(self.pause_s)
        return self._staged_together(repeats)

    def replayed(self, work: OnDevice, repeats: int, launches: int) -> Repeated:
        """Staged times of many launches."""
        return Repeated(self._staged_together(repeats), "graph", launches)

    def sustain(self, work: OnDevice, launches: int) -> None:
        """As long as so many launches would take."""
        time.sleep(launches * self.time_ms / 1e3)


def open_device(job: dict[str, Any]) -> HostDevice:
    """A staged device for the job's workload."""
    folder = Path(job["folder"])
    device = StagedDevice(folder, load_spec(folder).headers, cache=Path(job["cache"]))
    staged = ("time_ms", "slower_from", "disturbed_until", "pause_s", "noise", "doubled_from")
    for name in (*staged, "delayed", "l2_bytes"):
        if name in job:
            setattr(device, name, job[name])
    return device


if __name__ == "__main__":
    sys.exit(run(open_device))
