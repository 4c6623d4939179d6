"""The CPU as a machine of the tridiagonal solver: it runs the kernels' own sources at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kernels.calling.driver import Argument
from launchwise.cpu.loaded import CpuBuffer
from launchwise.workloads.device import Buffer, Launch
from tests.support.host_device import HostDevice


class HostMachine:
    """See :class:`kernels.calling.driver.Card`.

    ``queued``: stream of every run of prepared launches.
    """

    name = "device 0"
    shared_limit = 232448

    def __init__(self, device: HostDevice) -> None:
        self._device = device
        self.sms = device.sms
        self.queued: list[int] = []
        self.allocate = device.allocate
        self.release = device.release
        self.part = device.part

    def free_memory(self) -> int:
        """What is left."""
        return self._device.free_bytes

    def prepared(self, launches: Sequence[Launch], stream: int) -> HostLaunches:
        """Launches that run at once, one after the other."""
        return HostLaunches(self._device, launches, partial(self.queued.append, stream))

    def write(self, buffer: Buffer, values: np.ndarray, stream: int) -> None:
        """Copy."""
        self._device.upload(buffer, values)

    def read(self, buffer: Buffer, values: np.ndarray, stream: int) -> None:
        """Copy."""
        self._device.download(buffer, values)

    def tensor_map(self, *array: Any) -> np.ndarray:
        """There is no copy engine: LaunchFailed."""
        return self._device.tensor_map(*array)

    def settle(self) -> None:
        """Nothing is ever queued."""


class HostLaunches:
    """See :class:`kernels.calling.driver.PreparedLaunches`."""

    def __init__(
        self, device: HostDevice, launches: Sequence[Launch], note: Callable[[], None]
    ) -> None:
        self._device = device
        self._launches = launches
        self._note = note

    def __call__(self, pointers: tuple[int, ...]) -> None:
        """Run them."""

        def known(argument: Any) -> Any:
            if isinstance(argument, Argument):
                return CpuBuffer(argument.nbytes, pointers[argument.number])
            return argument

        self._note()
        for launch in self._launches:
            arguments = tuple(known(each) for each in launch.arguments)
            self._device.launch(replace(launch, arguments=arguments))

    def close(self) -> None:
        """Nothing is kept."""
