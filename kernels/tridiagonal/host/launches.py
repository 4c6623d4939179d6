"""The kernels of a solution on the device, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.workload import Allocations, Buffer, Device, Launch, closed_on_error

from .plan import (
    ARRAYS,
    Choice,
    Level,
    extra_words,
    inner_layout,
    remaining_rows,
)

LAYOUTS = ("strided", "strided_scratch", "interleaved", "staged", "blockwise")

SCRATCH_LAYOUTS = ("strided_scratch",)
"""Layouts whose stage 3 keeps one word per row in global memory instead of shared memory."""

MOST_FINISHING = 1024
"""Threads of the block that solves the innermost system."""

SEPARATING = 6
"""Words of shared memory that cyclic reduction takes a row: a, c and d of rows divided by b, twice:
it reads the one and writes the other."""


@dataclass(frozen=True)
class Arrays:
    """The four arrays of a system on the device: a (below), b (diagonal), c (above), d (right)."""

    a: Buffer
    b: Buffer
    c: Buffer
    d: Buffer

    @property
    def each(self) -> tuple[Buffer, Buffer, Buffer, Buffer]:
        """In the order of the kernels' parameters."""
        return self.a, self.b, self.c, self.d


def build(layout: str, dtype: np.dtype[Any]) -> Build:
    """Build of a layout's kernels (``finish`` is one too) for float32 or float64."""
    return Build.of(f"{layout}.cu", real_macro(dtype.name))


def shared_bytes(layout: str, stage: str, m: int, threads: int, itemsize: int) -> int:
    """Dynamic shared memory of a block.

    Parameters
    ----------
    stage
        ``reduce`` (stage 1) or ``substitute`` (stage 3).
    """
    if layout in ("staged", "blockwise"):
        words = ARRAYS * (threads + 1) * (m | 1)
        if layout == "blockwise":
            # The two rows of each sub-system, and those that the block ends with.
            words += 2 * SEPARATING * threads + 2 * ARRAYS
        return words * itemsize
    in_shared = stage == "substitute" and layout not in SCRATCH_LAYOUTS
    return (threads + 1) * m * itemsize if in_shared else 0


def finish_threads(rows: int, m: int) -> int:
    """Threads of the block that solves the innermost system: whole warps, one a sub-system or row.

    Parameters
    ----------
    m
        Rows that each thread reduces first; 0 for none.
    """
    return min(MOST_FINISHING, 32 * -(-max(1, rows // m if m else rows) // 32))


def finish_bytes(rows: int, m: int, itemsize: int) -> int:
    """Shared memory that solving the innermost system in one block takes (see ``finish.cu``)."""
    inner = 2 * (rows // m) if m else rows
    kept = m * (finish_threads(rows, m) + 1)
    return max(SEPARATING * inner, kept) * itemsize


def reduced_first(rows: int, last_m: int) -> int:
    """Rows that each thread of the last block reduces first: none where there are fewer."""
    return last_m if rows >= last_m else 0


def most_shared_bytes(rows: int, choice: Choice, itemsize: int) -> int:
    """Dynamic shared memory of the block that needs most of it."""
    cuts = choice.levels(rows)
    needed = [
        shared_bytes(
            inner_layout(choice.layout) if number else choice.layout,
            *("substitute", level.m, choice.threads, itemsize),
        )
        for number, level in enumerate(cuts)
    ]
    if not (choice.finish_on_host and cuts):
        left = remaining_rows(rows, cuts)
        needed.append(finish_bytes(left, reduced_first(left, choice.last_m), itemsize))
    return max(needed)


class DeviceSolution:
    """Everything that solving one system on the device needs, allocated once.

    ``cuts`` go from the outermost level inwards; for the layout of inner ones see
    :data:`plan.INNER_LAYOUTS`. Who finishes, and on how many streams, is somebody else's business.

    Raises
    ------
    OutOfMemory
        When the interface systems or the scratch array cannot be had.
    """

    def __init__(self, device: Device, dtype: np.dtype[Any], rows: int, choice: Choice) -> None:
        self.device = device
        self.dtype = dtype
        self.rows = rows
        self.cuts = choice.levels(rows)
        self.layout, self.threads, self.last_m = choice.layout, choice.threads, choice.last_m
        self._memory = Allocations(device)
        self._interfaces: list[Arrays] = []
        words = self._scratch_words
        with closed_on_error(self):
            for level in self.cuts:
                nbytes = level.interface_rows * dtype.itemsize
                each = [self._memory.take(nbytes) for _ in range(ARRAYS)]
                self._interfaces.append(Arrays(*each))
            # Levels run stage 3 one after the other: they share one scratch array.
            self._scratch = self._memory.take(words * dtype.itemsize) if words else None

    @property
    def extra_bytes(self) -> int:
        """Device memory beside the system and its solution."""
        return (extra_words(self.cuts) + self._scratch_words) * self.dtype.itemsize

    @property
    def _scratch_words(self) -> int:
        """Words of the scratch array: one per row of the outermost level, the largest."""
        return self.rows if self.cuts and self.layout in SCRATCH_LAYOUTS else 0

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()

    def interface(self, number: int) -> Arrays:
        """Interface system that a level leaves; -1 is the innermost."""
        return self._interfaces[number]

    def launches(self, system: Arrays, x: Buffer) -> list[Launch]:
        """Stages 1 inwards, the innermost system, stages 3 outwards; ``x`` may be ``system.d``."""
        if not self.cuts:
            return [self._finish(system, x)]
        first = self.stage("reduce", self.cuts[0], (*system.each, *self.interface(0).each))
        last = self.stage("substitute", self.cuts[0], (*system.each, self.interface(0).d, x))
        finish = self.finish()
        return [first, *self.inwards(), finish, *self.outwards(), last]

    def inwards(self) -> list[Launch]:
        """Stages 1 of all levels but the outermost, in order."""
        return [
            self.stage(
                "reduce",
                level,
                (*self.interface(number).each, *self.interface(number + 1).each),
                inner=True,
            )
            for number, level in enumerate(self.cuts[1:])
        ]

    def finish(self) -> Launch:
        """The innermost interface system in one block."""
        innermost = self.interface(-1)
        return self._finish(innermost, innermost.d)

    def outwards(self) -> list[Launch]:
        """Stages 3 of all levels but the outermost, in order."""
        launches = []
        for number in reversed(range(len(self.cuts) - 1)):
            system, found = self.interface(number), self.interface(number + 1).d
            buffers = (*system.each, found, system.d)
            launches.append(self.stage("substitute", self.cuts[number + 1], buffers, inner=True))
        return launches

    def _finish(self, system: Arrays, x: Buffer) -> Launch:
        rows = remaining_rows(self.rows, self.cuts)
        m = reduced_first(rows, self.last_m)
        block = finish_threads(rows, m)
        shared = finish_bytes(rows, m, self.dtype.itemsize)
        arguments = (*system.each, x, np.int32(rows), np.int32(m))
        kernels = build("finish", self.dtype)
        return Launch(kernels, "finish", (1, 1, 1), (block, 1, 1), arguments, shared)

    def stage(
        self,
        stage: str,
        level: Level,
        buffers: tuple[Buffer, ...],
        inner: bool = False,
        first_row: int = 0,
    ) -> Launch:
        """Stage 1 (``reduce``) or stage 3 (``substitute``) of a level.

        Parameters
        ----------
        buffers
            The level's a, b, c, d, then the interface's, or the interface's solution and x.
        inner
            Not the outermost level.
        first_row
            Row of the system where the level begins: levels with rows of their own use their own
            part of the scratch array, so that they can run at the same time.
        """
        layout = inner_layout(self.layout) if inner else self.layout
        if self._scratch is not None and stage == "substitute":
            size = self.dtype.itemsize
            own = self.device.part(self._scratch, first_row * size, level.rows * size)
            buffers = (*buffers, own)
        blocks = -(-level.subsystems // self.threads)
        shared = shared_bytes(layout, stage, level.m, self.threads, self.dtype.itemsize)
        arguments = (
            *buffers,
            np.int64(level.rows),
            np.int32(level.m),
            np.int64(level.subsystems),
        )
        kernels = build(layout, self.dtype)
        return Launch(kernels, stage, (blocks, 1, 1), (self.threads, 1, 1), arguments, shared)


def interleaved(values: np.ndarray, m: int) -> np.ndarray:
    """Rows in the order of the ``interleaved`` layout: row k of every sub-system together.

    Parameters
    ----------
    values
        Shape (rows,), in natural order.
    """
    whole = len(values) // m * m
    return np.concatenate([values[:whole].reshape(-1, m).T.reshape(-1), values[whole:]])
