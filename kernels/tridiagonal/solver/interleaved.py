"""Solves batches whose systems are interleaved: row i of system k at i * batch + k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.workload import Allocations, Buffer, Launch, closed_on_error

from ...calling.driver import Card, as_device
from ..host.launches import Arrays

SOURCE = "solver/interleaved_batch.cu"

THREADS = 128

ENOUGH_SYSTEMS = 16384
"""Systems of which one thread each fills a large GPU: then none is cut into parts."""

SHORT = 64  # rows of a system that one thread solves fast enough, however few systems there are

PART_ROWS = 32


@dataclass(frozen=True)
class Cut:
    """``n`` rows of each system in parts of :data:`PART_ROWS`, the last one with what is left."""

    n: int

    @property
    def parts(self) -> int:
        return self.n // PART_ROWS

    @property
    def interface_rows(self) -> int:
        """Rows per system of the interface system: two per part."""
        return 2 * self.parts


def cuts_of(n: int, batch: int) -> list[Cut]:
    """How systems of n rows are cut, from the outermost level inwards."""
    cuts: list[Cut] = []
    while batch < ENOUGH_SYSTEMS and n > SHORT:
        cuts.append(Cut(n))
        n = cuts[-1].interface_rows
    return cuts


def interleaved_words(n: int, batch: int) -> int:
    """Words of device memory beside the systems and their solutions."""
    return batch * (n + 4 * sum(cut.interface_rows for cut in cuts_of(n, batch)))


class InterleavedSolution:
    """Everything that solving a batch of interleaved systems needs, allocated once. Raises
    OutOfMemory when the memory of :func:`interleaved_words` cannot be had."""

    def __init__(self, machine: Card, dtype: np.dtype[Any], n: int, batch: int) -> None:
        self._dtype = dtype
        self._n = n
        self._batch = batch
        self._cuts = cuts_of(n, batch)
        self._memory = Allocations(as_device(machine))
        self._interfaces: list[Arrays] = []
        with closed_on_error(self):
            # Coefficients of one level at a time: stages 3 run one after the other.
            self._kept = self._memory.take(n * batch * dtype.itemsize)
            for cut in self._cuts:
                nbytes = cut.interface_rows * batch * dtype.itemsize
                self._interfaces.append(Arrays(*(self._memory.take(nbytes) for _ in range(4))))

    def launches(self, system: Arrays, x: Buffer) -> list[Launch]:
        """Stages 1 inwards, the innermost systems, stages 3 outwards; ``x`` may be ``system.d``."""
        inwards, outwards = [], []
        for cut, interface in zip(self._cuts, self._interfaces, strict=True):
            sizes = np.int64(cut.n), np.int64(self._batch), np.int32(PART_ROWS)
            threads = cut.parts * self._batch
            reducing = (*system.each, *interface.each, *sizes)
            inwards.append(self._launch("reduce_interleaved", threads, reducing))
            substituting = (*system.each, interface.d, x, self._kept, *sizes)
            outwards.append(self._launch("substitute_interleaved", threads, substituting))
            # The solution of an interface system takes the place of its right-hand side.
            system, x = interface, interface.d
        n = self._cuts[-1].interface_rows if self._cuts else self._n
        solving = (*system.each, x, self._kept, np.int64(n), np.int64(self._batch))
        inwards.append(self._launch("thomas_interleaved", self._batch, solving))
        return [*inwards, *reversed(outwards)]

    def _launch(self, kernel: str, threads: int, arguments: tuple[Any, ...]) -> Launch:
        build = Build.of(SOURCE, real_macro(self._dtype.name))
        return Launch(build, kernel, (-(-threads // THREADS), 1, 1), (THREADS, 1, 1), arguments)

    def close(self) -> None:
        self._memory.release()
