"""Solutions that the host takes part in: it copies, drives streams, solves the interface system.

The paper's mode: the system lies in host memory, stage 1 runs on the device, the host solves the
interface system, stage 3 runs on the device. The sub-systems are dealt out to streams, so that one
part is copied while another is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.workload import Buffer, HostRun, Launch

from .cores import PartitionedSystem
from .interface_solvers import HOST_SOLVERS, compile_solver, pivots_of
from .launches import Arrays, DeviceSolution
from .plan import Choice, Level
from .stage_times import EventClock, NoClock, median_times

STAGES = ("t1_h2d", "t1_comp", "t1_d2h", "t2_d", "t2_h", "t3_h2d", "t3_comp", "t3_d2h")
"""Copies to the device, computing and copies back of stages 1 and 3; the interface system on the
device and on the host."""


@dataclass(frozen=True)
class HostArrays:
    """A system and the place of its solution in host memory: shape (rows,) each."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    d: np.ndarray
    x: np.ndarray


@dataclass(frozen=True)
class Chunk:
    """Neighbouring groups of sub-systems of the outermost level that one stream looks after."""

    first: int
    groups: int
    first_row: int
    rows: int
    stream: Any

    @property
    def own_rows(self) -> slice:
        """Their rows."""
        return slice(self.first_row, self.first_row + self.rows)

    @property
    def interface_rows(self) -> slice:
        """What they leave of the interface system."""
        return slice(2 * self.first, 2 * (self.first + self.groups))


def chunks(level: Level, streams: list[Any]) -> list[Chunk]:
    """Deal the groups out to streams, in order, as evenly as can be."""
    bounds = [level.groups * number // len(streams) for number in range(len(streams) + 1)]
    found = []
    for number, stream in enumerate(streams):
        first, last = bounds[number], bounds[number + 1]
        if first < last:
            begin = first * level.group_rows
            end = level.rows if last == level.groups else last * level.group_rows
            found.append(Chunk(first, last - first, begin, end - begin, stream))
    return found


class HostSolution(HostRun):
    """One system solved with the host's help as a choice says, everything allocated once.

    Parameters
    ----------
    solution
        Levels, kernels and interface systems; one level at least.
    system, x
        On the device; filled from ``host`` where that is given.
    host
        The system in host memory and the place of its solution there; None when both stay on the
        device.
    choice
        Streams beyond the number of sub-systems (or joined groups) idle.

    Raises
    ------
    NoCompiler
        When what a solver is written in cannot be compiled.
    """

    def __init__(
        self,
        solution: DeviceSolution,
        system: Arrays,
        x: Buffer,
        host: HostArrays | None,
        choice: Choice,
    ) -> None:
        self._solve = HOST_SOLVERS[choice.host_solver]
        self._finish_on_host = choice.finish_on_host
        if choice.finish_on_host:
            compile_solver(choice.host_solver, solution.dtype)
        self._solution = solution
        self._device = solution.device
        self._system = system
        self._x = x
        self._host = host
        self._itemsize = solution.dtype.itemsize
        self._chunks = chunks(
            solution.cuts[0], [self._device.stream() for _ in range(choice.streams)]
        )
        innermost = solution.cuts[-1].interface_rows
        self._interface = [self._page_locked(innermost) for _ in range(4)]
        self._reduce = [self._launch("reduce", chunk) for chunk in self._chunks]
        self._substitute = [self._launch("substitute", chunk) for chunk in self._chunks]
        self.launches = (*self._reduce[:1], *self._substitute[:1])

    def _page_locked(self, rows: int) -> np.ndarray:
        return self._device.page_locked(rows * self._itemsize).view(self._solution.dtype)

    def _launch(self, stage: str, chunk: Chunk) -> Launch:
        """A stage of one chunk: its rows are a system of their own, as far as kernels can see."""
        level = self._solution.cuts[0]
        own = Level(chunk.rows, level.m, level.joined)
        inner = self._solution.interface(0)
        rows = [self._part(each, chunk.own_rows) for each in self._system.each]
        if stage == "reduce":
            into = [self._part(each, chunk.interface_rows) for each in inner.each]
            return self._solution.stage(stage, own, (*rows, *into))
        found = self._part(inner.d, chunk.interface_rows), self._part(self._x, chunk.own_rows)
        return self._solution.stage(stage, own, (*rows, *found), first_row=chunk.first_row)

    def _part(self, buffer: Buffer, rows: slice) -> Buffer:
        size = self._itemsize
        return self._device.part(buffer, rows.start * size, (rows.stop - rows.start) * size)

    def run(self) -> None:
        for chunk, launch in zip(self._chunks, self._reduce, strict=True):
            self._copy_in(chunk)
            self._device.launch(launch, chunk.stream)
        self._solve_interface(NoClock())
        for chunk, launch in zip(self._chunks, self._substitute, strict=True):
            self._device.launch(launch, chunk.stream)
            self._copy_out(chunk)
        self._device.synchronize()

    def staged(self) -> dict[str, float]:
        """Milliseconds of each stage, medians of several runs; nothing is overlapped."""
        return median_times(self._staged_once)

    def _staged_once(self) -> dict[str, float]:
        """As :meth:`run`, but a stage begins when all streams have done the one before."""
        clock = EventClock(self._device)
        for chunk in self._chunks:
            self._copy_in(chunk)
        clock.mark("t1_h2d")
        for chunk, launch in zip(self._chunks, self._reduce, strict=True):
            self._device.launch(launch, chunk.stream)
        clock.mark("t1_comp")
        self._solve_interface(clock)
        for chunk, launch in zip(self._chunks, self._substitute, strict=True):
            self._device.launch(launch, chunk.stream)
        clock.mark("t3_comp")
        for chunk in self._chunks:
            self._copy_out(chunk)
        clock.mark("t3_d2h")
        self._device.synchronize()
        return clock.spent(STAGES)

    def _copy_in(self, chunk: Chunk) -> None:
        if self._host is not None:
            host = (self._host.a, self._host.b, self._host.c, self._host.d)
            for source, buffer in zip(host, self._system.each, strict=True):
                to = self._part(buffer, chunk.own_rows)
                self._device.upload(to, source[chunk.own_rows], chunk.stream)

    def _copy_out(self, chunk: Chunk) -> None:
        if self._host is not None:
            found = self._part(self._x, chunk.own_rows)
            self._device.download(found, self._host.x[chunk.own_rows], chunk.stream)

    def _solve_interface(self, clock: NoClock) -> None:
        """Stage 2: levels below the outermost on the device, the rest on the host or in a block."""
        inwards, outwards = self._solution.inwards(), self._solution.outwards()
        if not self._finish_on_host:
            inwards.append(self._solution.finish())
        if inwards:
            # They need what all streams have done; with one level each chunk goes its own way.
            self._device.synchronize()
            for launch in inwards:
                self._device.launch(launch)
            clock.mark("t2_d")
        if self._finish_on_host:
            for stream, rows in self._parts():
                self._fetch_rows(stream, rows)
            clock.mark("t1_d2h")
            self._device.synchronize()
            with clock.host("t2_h"):
                solution = self._solve(*self._interface)
                if solution is not self._interface[3]:
                    self._interface[3][:] = solution
            for stream, rows in self._parts():
                self._return_rows(stream, rows)
            clock.mark("t3_h2d")
        for launch in outwards:
            self._device.launch(launch)
        if inwards:
            self._device.synchronize()
            clock.mark("t2_d")

    def _parts(self) -> Iterator[tuple[Any, slice]]:
        """What of the innermost interface system goes over which stream; None is the default."""
        if len(self._solution.cuts) > 1:
            yield None, slice(0, len(self._interface[3]))
            return
        for chunk in self._chunks:
            yield chunk.stream, chunk.interface_rows

    def _fetch_rows(self, stream: Any, rows: slice) -> None:
        innermost = self._solution.interface(-1)
        for array, buffer in zip(self._interface, innermost.each, strict=True):
            self._device.download(self._part(buffer, rows), array[rows], stream)

    def _return_rows(self, stream: Any, rows: slice) -> None:
        x, buffer = self._interface[3], self._solution.interface(-1).d
        self._device.upload(self._part(buffer, rows), x[rows], stream)


class OverlappedSolution(HostSolution):
    """As :class:`HostSolution`, with stage 2 on all cores of the host, part by part; no recursion.

    The host reduces what a stream leaves of the interface system as soon as it arrives, while later
    parts are still copied to the device. Once two equations of each part are solved, each stream
    gets its part of the solution and goes on, while the host substitutes the next. Its stages are
    timed one after the other, as those of the others.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        pieces = [chunk.interface_rows for chunk in self._chunks]
        self._pieces = PartitionedSystem(self._interface, pieces)

    def run(self) -> None:
        device, rows = self._device, len(self._interface[3])
        arrived = []
        for chunk, launch in zip(self._chunks, self._reduce, strict=True):
            self._copy_in(chunk)
            device.launch(launch, chunk.stream)
            self._fetch_rows(chunk.stream, chunk.interface_rows)
            arrived.append(device.event(chunk.stream))
        with pivots_of(rows):
            for number, event in enumerate(arrived):
                device.wait(event)
                self._pieces.reduce(number)
            self._pieces.solve_ends()
            for number, chunk in enumerate(self._chunks):
                self._pieces.substitute(number)
                self._return_rows(chunk.stream, chunk.interface_rows)
                device.launch(self._substitute[number], chunk.stream)
                self._copy_out(chunk)
        device.synchronize()


def solution_with_host(
    solution: DeviceSolution, system: Arrays, x: Buffer, host: HostArrays | None, choice: Choice
) -> HostSolution:
    """A solution as a choice says; parameters and errors as of HostSolution."""
    in_parts = choice.finish_on_host and choice.host_solver == "cores" and len(solution.cuts) == 1
    kind = OverlappedSolution if in_parts else HostSolution
    return kind(solution, system, x, host, choice)
