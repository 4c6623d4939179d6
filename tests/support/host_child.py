"""The measuring process with the CPU as its device."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from host_device import HostDevice

from launchwise.cuda.child import run
from launchwise.workloads.spec import load_spec


def open_host(job: dict[str, Any]) -> HostDevice:
    """A host device for the job's workload."""
    folder = Path(job["folder"])
    cache = Path(job["cache"]) if "cache" in job else None
    return HostDevice(folder, load_spec(folder).headers, cache=cache)


if __name__ == "__main__":
    sys.exit(run(open_host))
