"""Stage 2 on all cores of the host, part by part: only the ends of parts wait for all streams.

The host reduces what a stream leaves of the interface system as soon as it arrives, while later
parts are still copied to the device. Once two equations of each part are solved, each stream gets
its part of the solution and goes on, while the host substitutes the next.
"""

from __future__ import annotations

from typing import Any

from launchwise.workloads.workload import Buffer

from .cores import PartitionedSystem
from .host_solution import HostArrays, HostSolution
from .interface_solvers import pivots_of
from .launches import Arrays, DeviceSolution
from .plan import Choice


class OverlappedSolution(HostSolution):
    """As :class:`HostSolution` with the host's solver ``cores``, and no recursion.

    Its stages are timed one after the other, as those of the others.
    """

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
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
    how = (choice.streams, choice.finish_on_host, choice.host_solver)
    in_parts = choice.finish_on_host and choice.host_solver == "cores" and len(solution.cuts) == 1
    kind = OverlappedSolution if in_parts else HostSolution
    return kind(solution, system, x, host, *how)
