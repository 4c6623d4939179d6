"""Time steps on a device, and a simulation from the arrays of a caller to traces and snapshots."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.space import launch as launch_shape
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Buffer, Launch, OutOfMemory, closed_on_error

from ...calling.driver import Argument, Card, TooLittleMemory
from ..host.stencil import VECTOR_BYTES, boxes, one_step_macros, stencil_macros, streaming_macros
from .problem import Grid, Position, ricker, wavelets_of

POINTS = "simulation/points.cu"
THREADS = 256


def points_build(dtype: str) -> Build:
    return Build.of(POINTS, real_macro(dtype))


def step_build(grid: Grid, configuration: Mapping[str, Any], damped: bool, spec: Spec) -> Build:
    elements = grid.shape[0] * grid.shape[1] * grid.pitch
    defines = {
        **stencil_macros(grid.order, grid.dtype.name, elements),
        **streaming_macros(configuration, aligned=True),
        **one_step_macros(configuration, damped=damped),
    }
    return Build.of(spec.variants[str(configuration["variant"])].source, defines)


class Wave:
    """A wave field of one grid on one stream.

    Two arrays hold u at two times; each step overwrites the older one, of which each thread reads
    only what it writes.

    ``velocity``: m/s, rows padded as :attr:`.problem.Grid.pitch` says.
    ``stream``: handle.
    Raises OutOfMemory when its memory cannot be had.
    """

    def __init__(
        self, machine: Card, grid: Grid, velocity: Buffer, stream: int, spec: Spec
    ) -> None:
        self.machine = machine
        self.grid = grid
        self.stream = stream
        self.velocity = velocity
        self._spec = spec
        self._buffers: list[Buffer] = []
        self._prepared: list[Any] = []
        self._steps: list[Any] = []
        self._done = 0
        with closed_on_error(self):
            self.fields = [self._take(grid.array_bytes) for _ in range(2)]
            self.step_number = self._take(4)

    def _take(self, nbytes: int) -> Buffer:
        self._buffers.append(self.machine.allocate(max(nbytes, 4)))
        return self._buffers[-1]

    def _upload(self, values: np.ndarray) -> Buffer:
        buffer = self._take(values.nbytes)
        if values.nbytes:
            self.machine.write(buffer, np.ascontiguousarray(values), self.stream)
        return buffer

    def prepare(
        self,
        configuration: Mapping[str, Any],
        time_step: float,
        damping: np.ndarray | None,
        sources: Sequence[Position],
        wavelets: np.ndarray,
        receivers: Sequence[Position],
    ) -> None:
        """Prepare the launches of all steps; u is zero at the beginning."""
        grid = self.grid
        steps = wavelets.shape[1]
        self.traces = self._take(steps * len(receivers) * grid.dtype.itemsize)
        layer = None if damping is None else self._upload(damping)
        places = [
            self._upload(np.array([grid.at(each) for each in positions], np.int64))
            for positions in (sources, receivers)
        ]
        added = self._upload(wavelets)
        counts = np.int32(len(sources)), np.int32(len(receivers)), np.int32(steps)
        for new in (0, 1):
            u_new, u = self.fields[new], self.fields[1 - new]
            step = self.step(configuration, u_new, u, layer, time_step)
            points = Launch(
                points_build(grid.dtype.name),
                "points",
                (1, 1, 1),
                (THREADS, 1, 1),
                (
                    *(u_new, places[0], added, counts[0]),
                    *(places[1], self.traces, counts[1], counts[2], self.step_number),
                ),
            )
            self._steps.append(self.machine.prepared([step, points], self.stream))
        self._prepared += self._steps
        self._run(self._cleared())

    def _cleared(self) -> list[Launch]:
        kernel, shape = points_build(self.grid.dtype.name), ((1024, 1, 1), (THREADS, 1, 1))
        count = self.grid.array_bytes // self.grid.dtype.itemsize
        zero = np.zeros(1, np.int32)
        self.machine.write(self.step_number, zero, self.stream)
        return [Launch(kernel, "clear", *shape, (each, np.int64(count))) for each in self.fields]

    def step(
        self,
        configuration: Mapping[str, Any],
        u_new: Buffer,
        u: Buffer,
        damping: Buffer | None,
        time_step: float,
    ) -> Launch:
        """One time step; ``u_new`` holds the older field before."""
        grid, spec = self.grid, self._spec
        build = step_build(grid, configuration, damping is not None, spec)
        nz, ny, nx = grid.shape
        chunk = -(-(nz - grid.order) // int(configuration["z_chunks"]))
        scale = (time_step / grid.spacing) ** 2
        sizes = (*map(np.int32, (nx, ny, nz, grid.pitch, chunk)), grid.dtype.type(scale))
        layer = np.uint64(0) if damping is None else damping
        # Block and shared memory are those of a cube; the grid of blocks is this one's.
        cube = {"n": nx, "dtype": grid.dtype.name, "order": grid.order}
        whole = {**dict.fromkeys(spec.tunable_columns, 1), **configuration, "row_padding": 1}
        block, _ = launch_shape(spec, cube, whole)
        variant = spec.variants[str(configuration["variant"])]
        shared = int(spec.value(variant.shared_bytes, cube, whole))
        vector = VECTOR_BYTES // grid.dtype.itemsize
        first = grid.radius // vector * vector
        blocks = (
            -(-(nx - grid.radius - first) // int(configuration["tile_x"])),
            -(-(ny - grid.order) // int(configuration["tile_y"])),
            -(-(nz - grid.order) // chunk),
        )
        if configuration["variant"] == "stream":
            arguments: tuple[Any, ...] = (u_new, u, u_new, self.velocity, layer, *sizes)
        else:
            maps = self._maps(configuration, u, u_new)
            arguments = (u_new, maps, layer, *sizes)
        return Launch(build, str(configuration["variant"]), blocks, block, arguments, shared)

    def _maps(self, configuration: Mapping[str, Any], u: Buffer, u_old: Buffer) -> Buffer:
        grid = self.grid
        halo, tile = boxes(grid.order, grid.dtype.name, configuration)
        maps = [
            self.machine.tensor_map(each, grid.dtype.name, grid.shape, grid.pitch, box)
            for each, box in ((u, halo), (u_old, tile), (self.velocity, tile))
        ]
        return self._upload(np.concatenate(maps))

    def _run(self, launches: list[Launch], *pointers: int) -> None:
        prepared = self.machine.prepared(launches, self.stream)
        self._prepared.append(prepared)
        prepared(pointers)

    def advance(self, steps: int) -> None:
        """Queue time steps; does not wait."""
        for _ in range(steps):
            # The older field is overwritten: the first one at the beginning.
            self._steps[self._done % 2](())
            self._done += 1

    def copy_field(self, to: Buffer | Argument, *pointers: int) -> None:
        """Queue a copy of u at the latest step, rows without padding, to device memory.

        ``pointers``: the address of an argument of the caller's.
        """
        nz, ny, nx = self.grid.shape
        latest = self.fields[(self._done - 1) % 2 if self._done else 1]
        kernel, shape = points_build(self.grid.dtype.name), ((4096, 1, 1), (THREADS, 1, 1))
        sizes = np.int32(nx), np.int64(nz * ny), np.int32(self.grid.pitch)
        self._run([Launch(kernel, "unpad", *shape, (to, latest, *sizes))], *pointers)

    def close(self) -> None:
        self.machine.settle()
        for prepared in self._prepared:
            prepared.close()
        for buffer in self._buffers:
            self.machine.release(buffer)
        self._prepared, self._steps, self._buffers = [], [], []


Told = Callable[[int], None]  # called with the number of steps that are done
CHUNK = 50  # steps that are queued before progress is reported


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
        self, machine: Card, spec: Spec, asked: Asked, configuration: Mapping[str, Any], stream: int
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
        if self._wave is not None:
            self._wave.close()
        if self._velocity is not None:
            self.machine.release(self._velocity)
        self._wave = self._velocity = None
