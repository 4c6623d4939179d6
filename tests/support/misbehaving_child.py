"""A measuring process one of whose configurations misbehaves as the job says (see faulty_child)."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from faulty_child import is_marked
from host_device import HostDevice

from launchwise.cuda.child import run
from launchwise.measuring.measure import OnDevice
from launchwise.workloads.spec import load_spec


class MisbehavingDevice(HostDevice):
    """A host device on which the marked configuration does something bad."""

    mischief = ""
    parent = 0

    def timed(self, work: OnDevice, repeats: int, flush: bool) -> list[float]:
        """See HostDevice."""
        marked = is_marked(work.launches[0])
        if marked:
            self._misbehave()
        times = super().timed(work, repeats, flush)
        if self.mischief == "dawdle":
            return [1000.0 if marked else 1.0] * repeats
        return times

    def _misbehave(self) -> None:
        print("no licence", file=sys.stderr, flush=True)
        if self.mischief == "exit":
            os._exit(0)
        elif self.mischief == "interrupt":
            os.kill(self.parent, signal.SIGTERM)


def open_device(job: dict[str, Any]) -> HostDevice:
    """A misbehaving device for the job's workload."""
    folder = Path(job["folder"])
    device = MisbehavingDevice(folder, load_spec(folder).headers, cache=Path(job["cache"]))
    device.mischief = job.get("mischief", "")
    device.parent = job.get("parent", 0)
    return device


if __name__ == "__main__":
    sys.exit(run(open_device))
