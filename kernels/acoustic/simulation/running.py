"""A simulation from the arrays of a caller to traces and snapshots."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Buffer, Launch, OutOfMemory

from ...calling.driver import Argument, Card
from .problem import Grid, Position, ricker, wavelets_of
from .wave import THREADS, Wave, points_build

Told = Callable[[int], None]  # called with the number of steps that are done
CHUNK = 50  # steps that are queued before progress is reported


class TooLittleMemory(MemoryError):
    """A simulation needs more memory than the device has free."""


@dataclass(frozen=True)
class Asked:
    """A simulation, checked as far as the velocity is not needed."""

    grid: Grid
    sources: list[Position]
    steps: int
    wavelet: np.ndarray | None
    """Shape (steps,), or (sources, steps); None for a Ricker wavelet of ``frequency``, Hz."""
    frequency: float | None
    receivers: list[Position]
    snapshots: list[int]  # steps after which u is kept, in ascending order
    time_step: float | None
    absorbing: int  # width of the absorbing layer, points

    def wavelets(self, time_step: float) -> np.ndarray:
        """f at each step; ValueError for a frequency that is none."""
        if self.wavelet is not None:
            return self.wavelet
        assert self.frequency is not None
        return ricker(self.frequency, time_step, self.steps)


@dataclass(frozen=True)
class Shot:
    """Result of a simulation."""

    traces: Any
    """u at each receiver after each step: type of the velocity, shape (steps, receivers)."""
    snapshots: Any  # u after the steps that were asked for: shape (snapshots, nz, ny, nx)
    time_step: float  # seconds
    configuration: Mapping[str, Any]  # kernel and tunables that ran


class Run:
    """One simulation on a machine that has its kernels at hand.

    ``time_step``: seconds; NaN before :meth:`begin`.
    """

    def __init__(
        self,
        machine: Card,
        spec: Spec,
        asked: Asked,
        configuration: Mapping[str, Any],
        stream: int,
    ) -> None:
        self.machine, self.asked, self.stream = machine, asked, stream
        self._spec, self._configuration = spec, configuration
        self._velocity: Buffer | None = None
        self._wave: Wave | None = None
        self.time_step = math.nan

    def insist_on_memory(self, more: int = 0) -> None:
        """Raise TooLittleMemory when three arrays and ``more`` bytes are not free."""
        grid, asked = self.asked.grid, self.asked
        itemsize = grid.dtype.itemsize
        traces = asked.steps * (len(asked.receivers) + len(asked.sources)) * itemsize
        needed = 3 * grid.array_bytes + traces + more
        free = self.machine.free_memory()
        if needed > free:
            raise TooLittleMemory(
                f"a grid of {grid.shape} points needs {needed / 1e9:.2f} GB, "
                f"{free / 1e9:.2f} GB are free"
            )

    def _queue(self, kernel: str, *arguments: Any, pointers: tuple[int, ...] = ()) -> None:
        build = points_build(self.asked.grid.dtype.name)
        launch = Launch(build, kernel, (1024, 1, 1), (THREADS, 1, 1), arguments)
        prepared = self.machine.prepared([launch], self.stream)
        prepared(pointers)
        self.machine.settle()
        prepared.close()

    def examine(self, velocity: Buffer | Argument, *pointers: int) -> float:
        """The largest velocity of an array without padding; ValueError when one is no velocity."""
        grid = self.asked.grid
        count = math.prod(grid.shape)
        findings = self.machine.allocate(16)
        try:
            found = np.zeros(2, np.uint64)
            self.machine.write(findings, found, self.stream)
            self._queue("examine", velocity, np.int64(count), findings, pointers=pointers)
            self.machine.read(findings, found, self.stream)
        finally:
            self.machine.release(findings)
        if found[0]:
            raise ValueError(
                f"velocity: {int(found[0])} of {count} values are NaN, infinite, 0 or negative"
            )
        return float(found[1:].view(np.float64)[0])

    def begin(self, fastest: float, velocity: Buffer | Argument, *pointers: int) -> None:
        """Allocate and prepare.

        ``fastest``: the largest velocity, m/s.
        ``velocity``, ``pointers``: rows without padding; the address where it is an argument of the
        caller's.
        """
        grid, asked = self.asked.grid, self.asked
        self.time_step = grid.checked_time_step(asked.time_step, fastest)
        layer = grid.damping(asked.absorbing, self.time_step, fastest) if asked.absorbing else None
        values = asked.wavelets(self.time_step)
        try:
            self._velocity = self.machine.allocate(grid.array_bytes)
            nz, ny, nx = grid.shape
            sizes = np.int32(nx), np.int64(nz * ny), np.int32(grid.pitch)
            self._queue("pad", self._velocity, velocity, *sizes, pointers=pointers)
            speeds = [self._velocity_at(each) for each in asked.sources]
            added = wavelets_of(
                values, len(asked.sources), asked.steps, speeds, grid, self.time_step
            )
            self._wave = Wave(self.machine, grid, self._velocity, self.stream, self._spec)
            self._wave.prepare(
                self._configuration, self.time_step, layer, asked.sources, added, asked.receivers
            )
        except OutOfMemory as error:
            raise TooLittleMemory(str(error)) from error

    def _velocity_at(self, position: Position) -> float:
        assert self._velocity is not None
        grid, value = self.asked.grid, np.empty(1, self.asked.grid.dtype)
        itemsize = grid.dtype.itemsize
        place = self.machine.part(self._velocity, grid.at(position) * itemsize, itemsize)
        self.machine.read(place, value, self.stream)
        return float(value[0])

    def steps(self, snapshot: Callable[[int, Wave], None], told: Told | None) -> None:
        """All time steps; ``snapshot`` is called after those that are to be kept."""
        assert self._wave is not None
        ends = sorted({*self.asked.snapshots, self.asked.steps})
        if told is not None:
            ends = sorted({*ends, *range(CHUNK, self.asked.steps, CHUNK)})
        done, kept = 0, 0
        for end in ends:
            self._wave.advance(end - done)
            done = end
            if end in self.asked.snapshots:
                snapshot(kept, self._wave)
                kept += 1
            if told is not None:
                self.machine.settle()
                told(done)

    def traces(self) -> np.ndarray:
        """u at the receivers after each step: ``dtype``, shape (steps, receivers). Waits."""
        assert self._wave is not None
        found = np.empty((self.asked.steps, len(self.asked.receivers)), self.asked.grid.dtype)
        if found.size:
            self.machine.read(self._wave.traces, found, self.stream)
        self.machine.settle()
        return found

    def close(self) -> None:
        """Release everything."""
        if self._wave is not None:
            self._wave.close()
        if self._velocity is not None:
            self.machine.release(self._velocity)
        self._wave = self._velocity = None
