"""The measuring process on a made-up card: kernels run on the CPU, the clock is made up.

What a configuration takes follows from the card and the launch alone, so that two sweeps of one
kind of card give the same rows. FAKE_CACHE is where compiled kernels are kept.
"""

import hashlib
import importlib.util
import os
import sys
import time
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

import yaml
from host_device import HostDevice
from made_up import visible

import launchwise
from launchwise.workloads.spec import load_spec

SAMPLES = Path(__file__).resolve().parents[1] / "samples.yaml"

_real = importlib.util.spec_from_file_location(
    "real_child", Path(launchwise.__file__).parent / "cuda" / "child.py"
)
assert _real is not None
assert _real.loader is not None
real_child = importlib.util.module_from_spec(_real)
_real.loader.exec_module(real_child)


class MadeUpCard(HostDevice):
    """A device whose times are the same whenever they are taken."""

    def __init__(self, folder, slice_sms):
        super().__init__(folder, load_spec(folder).headers, cache=Path(os.environ["FAKE_CACHE"]))
        card = visible()
        self.sms = slice_sms or card["sms"]
        self.rate = card["rate"] * self.sms
        self.pause_s = card["pause_s"]
        self.slowed = card.get("slowed", {})

    def timed(self, work, repeats, flush):
        """Milliseconds of each run; it is really run once."""
        time.sleep(self.pause_s)
        return [sum(map(self._milliseconds, work.launches))] * repeats

    def _milliseconds(self, launch):
        self.launch(launch)
        shape = f"{launch.build.key} {launch.kernel} {launch.grid} {launch.block}"
        noise = int(hashlib.sha256(shape.encode()).hexdigest(), 16) % 1000 / 1000
        threads = 1
        for count in (*launch.grid, *launch.block):
            threads *= count
        noise += self.slowed.get("x".join(map(str, launch.block)), 1) - 1
        return (1 + noise) * (1e3 + threads) / self.rate * 1e-3


def attributes_of(device):
    """What a driver would know of it."""
    card = visible()
    known = yaml.safe_load(SAMPLES.read_text())["profile"]
    for name in ("card", "driver", "toolkit", "commit", "measured_at", "ceilings"):
        del known[name]
    return {
        **known,
        "device_name": card["name"],
        "arch": card["arch"],
        "compute_capability": divmod(int(card["arch"].removeprefix("sm_")), 10),
        "sms": device.sms,
        "whole_card_sms": card["sms"],
        "cores": 128 * device.sms,
        "memory_bandwidth_gbs": 100.0 * card["rate"],
    }


if __name__ == "__main__":
    code = real_child.run(
        lambda job: MadeUpCard(Path(job["folder"]), job["slice_sms"]), attributes_of
    )
    sys.stdout.flush()
    os._exit(code)
