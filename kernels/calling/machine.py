"""The device as plans see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from launchwise.workloads.device import Buffer, Device
from launchwise.workloads.launches import Launch


@dataclass
class Argument:
    """An array of the caller among the arguments of prepared launches: each run has its address.

    ``number`` is its place among the addresses that a run is given.
    """

    number: int
    nbytes: int


class CudaError(RuntimeError):
    """The driver refused something; also for what went wrong before on the same device."""


class Prepared(Protocol):
    """Launches in order on a stream."""

    def __call__(self, pointers: tuple[int, ...]) -> None:
        """Queue them; takes the addresses of the caller's arrays. Raises CudaError."""

    def close(self) -> None:
        """Release what belongs to them, once nothing is queued any more."""


class Machine(Protocol):
    """A device that prepares launches once and queues them often, from any thread.

    Attributes
    ----------
    name
        For messages.
    shared_limit
        Shared memory that a block may have, bytes.
    sms
        Streaming multiprocessors.
    """

    name: str
    shared_limit: int
    sms: int

    def allocate(self, nbytes: int) -> Buffer:
        """Device memory; OutOfMemory when it cannot be had."""

    def release(self, buffer: Buffer) -> None:
        """Give memory back, which no queued work uses any more."""

    def part(self, buffer: Buffer, offset: int, nbytes: int) -> Buffer:
        """Some bytes of a buffer."""

    def free_memory(self) -> int:
        """Bytes that can be allocated."""

    def prepared(self, launches: Sequence[Launch], stream: int) -> Prepared:
        """Launches in order on a stream, given by its handle.

        One thread at a time may run what is returned.
        """

    def write(self, buffer: Buffer, values: np.ndarray, stream: int) -> None:
        """Queue a copy of a small array to the start of ``buffer``."""

    def read(self, buffer: Buffer, values: np.ndarray, stream: int) -> None:
        """Fill ``values`` from the start of ``buffer``, after what is queued on the stream."""

    def tensor_map(
        self, buffer: Buffer, dtype: str, shape: tuple[int, ...], pitch: int, box: tuple[int, ...]
    ) -> np.ndarray:
        """See :meth:`launchwise.workloads.device.Device.tensor_map`."""

    def settle(self) -> None:
        """Wait for all work on the device."""


def as_device(machine: Machine) -> Device:
    """A machine for code that takes a device, but only allocates, releases and takes parts."""
    return cast(Device, machine)
