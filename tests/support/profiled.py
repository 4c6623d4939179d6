"""The CPU under a profiler that counts what is launched while it is on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.host_device import HostDevice

LOG = Path(__file__).resolve().parent / "logs" / "ncu_h200.csv"
"""Of an H200: runs of the tridiagonal workload, a staged one of 1 000 rows and a blockwise one of
20 000, both with m = 10."""


class Switch:
    """A profiler that counts how often it is on."""

    def __init__(self) -> None:
        self.on = False
        self.times = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        assert not self.on
        self.on, self.times = True, self.times + 1
        yield
        self.on = False


class Watched(HostDevice):
    """Counts what is launched while the profiler is on, as Nsight Compute would."""

    switch: Switch
    seen: list[str]

    def launch(self, launch: Any, stream: Any = None) -> None:
        """Launch, and see it."""
        if self.switch.on:
            self.seen.append(launch.build.symbol(launch.kernel))
        super().launch(launch, stream)
