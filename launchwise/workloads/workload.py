"""Interface of a workload's host code: builds, buffers, reference, launches.

``host/workload.py`` of a workload's folder defines one subclass of :class:`Workload`. It talks to
the GPU through a :class:`Device` only, so that it can be read, typed and tested without CUDA. Host
code imports everything that it needs of this interface from here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from launchwise.workloads.builds import Build, check_build
from launchwise.workloads.device import (
    Allocations,
    Buffer,
    Captured,
    Closeable,
    Device,
    FunctionRun,
    HostRun,
    Launch,
    LaunchFailed,
    LaunchSequence,
    LibraryRun,
    OutOfMemory,
    Runnable,
    closed_on_error,
)
from launchwise.workloads.sampling import build_choices
from launchwise.workloads.space import LENIENT_GPU, Narrowing, baseline, feasible
from launchwise.workloads.spec import Spec

__all__ = ["Allocations", "Buffer", "Captured", "Closeable", "Device", "Finding", "FunctionRun"]
__all__ += ["HostRun", "Launch", "LaunchFailed", "LaunchSequence", "LibraryRun", "OutOfMemory"]
__all__ += ["Runnable", "Session", "Workload", "builds_in_order", "closed_on_error"]


@dataclass(frozen=True)
class Finding:
    """What verification found: the largest error, what is allowed, and what is wrong if any.

    ``more``: the ``findings`` that the spec names.
    """

    max_error: float
    tolerance: float
    wrong: str = ""
    more: Mapping[str, float] = field(default_factory=dict)


class Session(ABC):
    """One problem on one device, in one layout of its buffers: inputs made, reference known. A
    subclass allocates from ``memory``; in its constructor, inside :func:`closed_on_error`."""

    working_set_bytes: int
    """Bytes that one launch reads or writes: decides whether L2 must be flushed."""

    def __init__(
        self, workload: Workload, device: Device, problem: Mapping[str, Any], seed: int
    ) -> None:
        self.workload = workload
        self.device = device
        self.problem = dict(problem)
        self.seed = seed
        self.memory = Allocations(device)

    def run_check(
        self, kernel: str, blocks: int, *arguments: Any, threads: int = 256, shared_bytes: int = 0
    ) -> None:
        """Queue a kernel of ``check.cu`` on ``blocks`` blocks of ``threads`` threads."""
        build = self.workload.check_build(self.problem)
        shape = (blocks, 1, 1), (threads, 1, 1)
        self.device.launch(Launch(build, kernel, *shape, arguments, shared_bytes))

    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike, page_locked: bool) -> np.ndarray:
        """Uninitialised host memory, page-locked or pageable."""
        if not page_locked:
            return np.empty(shape, dtype)
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        return self.device.page_locked(nbytes).view(dtype).reshape(shape)

    @abstractmethod
    def launch(self, configuration: Mapping[str, Any]) -> Runnable:
        """Work that runs ``configuration``."""

    @abstractmethod
    def poison(self) -> None:
        """Fill the output with a pattern that marks unwritten elements."""

    @abstractmethod
    def check(self) -> Finding:
        """Compare the output with the float64 reference. Waits for the device."""

    def peer(self, name: str) -> LibraryRun:
        """What the library ``name``, one of the workload's ``peers``, does with this problem. It
        leaves its result where :meth:`check` looks for it."""
        raise NotImplementedError(name)

    def stages(self, work: Runnable) -> dict[str, float]:
        """Run ``work`` once more and time its stages: name of the stage to ms. Called after it was
        timed, so that marks between stages disturb no time; a workload whose spec names stages has
        one."""
        return {}

    def close(self) -> None:
        """Release the buffers."""
        self.memory.release()


class Workload(ABC):
    """A kernel family. Subclasses live in ``kernels/<workload>/host/workload.py``."""

    peers: tuple[str, ...] = ()
    """Libraries that solve the same problems; see :meth:`Session.peer`."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        self.folder = folder
        self.spec = spec
        self._checked: set[Hashable] = set()

    @abstractmethod
    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        """Build that holds the configuration's kernel. Of the configuration it may depend on the
        variant and on build tunables alone (see
        :meth:`launchwise.workloads.spec_fields.SpecFields.build_choice`)."""

    def check_build(self, problem: Mapping[str, Any]) -> Build:
        """Build of ``check.cu``, with ``REAL`` set where problems have a ``dtype``."""
        return check_build(str(problem["dtype"]) if "dtype" in problem else None)

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """Builds that a session needs besides those of :meth:`build`; by default ``check.cu``."""
        return [self.check_build(problem)]

    def layout(self, configuration: Mapping[str, Any]) -> Hashable:
        """Configurations of one layout share a session; by default all do."""
        return ()

    def self_check(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Check the device's reference once per :meth:`check_key`: what is wrong, or ''. Called
        before every problem."""
        key = self.check_key(problem)
        if key in self._checked:
            return ""
        complaint = self.check_reference(device, problem, seed)
        if not complaint:
            self._checked.add(key)
        return complaint

    def check_key(self, problem: Mapping[str, Any]) -> Hashable:
        """Problems of one key have the same reference code; by default the same check builds."""
        return tuple(self.check_builds(problem))

    @abstractmethod
    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Compare the device's inputs and reference with NumPy's on a small problem like this one.
        Returns what is wrong, in one line; '' when nothing is."""

    @abstractmethod
    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> Session:
        """Make inputs and reference of ``problem`` on ``device``."""


def builds_in_order(
    workload: Workload,
    problems: list[dict[str, Any]],
    parts_of: Mapping[tuple[Any, ...], Narrowing] | None = None,
) -> list[Build]:
    """Every build that measuring ``problems`` needs, once, in the order of need.

    ``parts_of``: what is measured of problems, by their values (see
        :func:`launchwise.workloads.space.narrowings`); everything when left out.
    """
    first = baseline(workload.spec)
    needed: dict[Build, None] = {}
    for problem in problems:
        needed |= dict.fromkeys(workload.check_builds(problem))
        parts = (parts_of or {}).get(tuple(problem.values()))
        if parts and feasible(workload.spec, problem, first, LENIENT_GPU):
            # It is measured wherever a part of the space is.
            needed[workload.build(problem, first)] = None
        for spec in [part.of(workload.spec) for part in parts] if parts else [workload.spec]:
            for configuration in build_choices(spec, problem):
                needed[workload.build(problem, configuration)] = None
    return list(needed)
