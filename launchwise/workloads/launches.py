"""Work that host code hands to a device: launches, sequences of them, runs of the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from launchwise.workloads.builds import Build


@dataclass(frozen=True)
class Restore:
    """An array that a launch changes, and the copy that it is put back from before a launch."""

    kept: Any
    array: Any


@dataclass(frozen=True)
class Launch:
    """A kernel with everything that it is launched with.

    ``arguments`` are NumPy scalars and :class:`Buffer` objects, in the order of the kernel's
    parameters; ``shared_bytes`` is dynamic shared memory. ``solves`` says how often one launch
    solves the problem, such as twice for two time steps: its time counts for each. ``restores``
    are put back before each timed launch, outside of the timed region.
    """

    build: Build
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Any, ...]
    shared_bytes: int = 0
    solves: int = 1
    restores: tuple[Restore, ...] = ()
    main: ClassVar[int] = 0

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Itself, as the one launch of a :class:`LaunchSequence`."""
        return (self,)


@dataclass(frozen=True)
class LaunchSequence:
    """Launches that run one after the other, timed together.

    ``main`` is the index of the main one; ``restores`` as those of a :class:`Launch`, for all.
    """

    launches: tuple[Launch, ...]
    main: int = 0
    restores: tuple[Restore, ...] = ()
    solves: ClassVar[int] = 1


class HostRun(ABC):
    """Work that the host drives: copies, kernels on several streams, arithmetic of its own.

    It is timed by the host's clock, from its call to its return.
    """

    launches: tuple[Launch, ...]
    """Kernels that it uses."""

    main: int = 0
    """The main kernel: its resources stand for the run."""

    solves: ClassVar[int] = 1
    restores: tuple[Restore, ...] = ()

    @abstractmethod
    def run(self) -> None:
        """Run once and wait for the end."""


class LibraryRun(ABC):
    """Work of somebody else's library on the device, to compare with.

    Its methods may raise anything; the comparison then goes on without it.
    """

    version: str
    """Name and version of the library."""

    launches: tuple[Launch, ...] = ()
    """None of the workload's own kernels."""

    solves: ClassVar[int] = 1
    restores: ClassVar[tuple[Restore, ...]] = ()

    def restore(self) -> None:
        """Queue what makes good again what a run overwrites; not timed."""
        return

    @abstractmethod
    def queue(self, stream: Any) -> None:
        """Queue the work once on ``stream`` (None: the default stream) without waiting."""

    def deliver(self) -> None:
        """Queue what brings the result to where the session's check looks; not timed."""
        return


Runnable = Launch | LaunchSequence | HostRun
"""Work of a configuration that solves its problem once."""
