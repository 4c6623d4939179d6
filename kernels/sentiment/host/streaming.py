"""Batches from host memory: chunks of cases over CUDA streams, each with buffers of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from launchwise.workloads.workload import (
    Allocations,
    Captured,
    Device,
    HostRun,
    Launch,
    closed_on_error,
)

from .launches import (
    ARRANGED_BYTES,
    LOGITS_BYTES,
    Batch,
    Choice,
    Pipeline,
    Weights,
    arranging,
    build,
)


@dataclass(frozen=True)
class HostBatch:
    """Cases in host memory (see :class:`launches.Batch`)."""

    given: np.ndarray
    lengths: np.ndarray
    logits: np.ndarray


class Lane:
    """A stream with its buffers for one chunk at a time."""

    def __init__(self, device: Device, pipeline: Pipeline, whole: Batch) -> None:
        self.stream = device.stream()
        self.pipeline = pipeline
        self.batch = whole
        self._launches: dict[int, list[Launch]] = {}

    def launches(self, cases: int) -> list[Launch]:
        """Kernels of a chunk of so many cases."""
        if cases not in self._launches:
            self._launches[cases] = self.pipeline.launches(replace(self.batch, cases=cases))
        return self._launches[cases]


class StreamedRun(HostRun):
    """A batch answered chunk by chunk, round-robin over streams; everything allocated before.

    Raises
    ------
    OutOfMemory
        When the buffers of all streams cannot be had.
    """

    def __init__(
        self, device: Device, weights: Weights, choice: Choice, given: str, host: HostBatch
    ) -> None:
        self._device = device
        self._host = host
        cases, tokens = host.given.shape[:2]
        self._chunk = min(choice.chunk or cases, cases)
        lanes = min(choice.streams, -(-cases // self._chunk))
        self._memory = Allocations(device)
        self._pipelines: list[Pipeline] = []
        self._graph: Captured | None = None
        with closed_on_error(self):
            self._lanes = [self._lane(weights, choice, given, tokens) for _ in range(lanes)]
            if choice.graph:
                streams = [lane.stream for lane in self._lanes]
                self._graph = device.captured(self._queue, streams)
        self.launches = tuple(self._lanes[0].launches(self._chunk))

    def _lane(self, weights: Weights, choice: Choice, given: str, tokens: int) -> Lane:
        cases = self._chunk
        self._pipelines.append(Pipeline(self._device, weights, choice, given, cases, tokens))
        inputs = self._memory.take(self._host.given[:1].nbytes * cases)
        lengths = self._memory.take(4 * cases)
        logits = self._memory.take(LOGITS_BYTES * cases)
        batch = Batch(inputs, lengths, logits, cases, tokens)
        return Lane(self._device, self._pipelines[-1], batch)

    def run(self) -> None:
        if self._graph is None:
            self._queue()
        else:
            self._graph.launch()
        self._device.synchronize()

    def _queue(self) -> None:
        for _, work, lane, rows in self._steps():
            work(lane, rows)

    def poison(self) -> None:
        """Every bit of the answers on the device set: what a run does not write is a NaN."""
        for lane in self._lanes:
            self._device.fill_bytes(lane.batch.logits, 0xFF)
        self._device.synchronize()

    def staged(self) -> dict[str, float]:
        """Milliseconds of copies and kernels, one after the other, nothing overlapped."""
        device = self._device
        spent = dict.fromkeys(("h2d", "kernels", "d2h"), 0.0)
        for stage, work, lane, rows in self._steps():
            device.synchronize()
            begin = device.event()
            work(lane, rows)
            device.synchronize()
            spent[stage] += device.elapsed_ms(begin, device.event())
        return spent

    def _steps(self) -> Iterator[tuple[str, Callable[[Lane, slice], None], Lane, slice]]:
        """Stage by stage of every chunk: its name, what does it, on which lane, for which cases."""
        cases = len(self._host.given)
        for number, begin in enumerate(range(0, cases, self._chunk)):
            lane = self._lanes[number % len(self._lanes)]
            rows = slice(begin, min(begin + self._chunk, cases))
            yield "h2d", self._copy_in, lane, rows
            yield "kernels", self._compute, lane, rows
            yield "d2h", self._copy_out, lane, rows

    def _copy_in(self, lane: Lane, rows: slice) -> None:
        self._device.upload(lane.batch.given, self._host.given[rows], lane.stream)
        self._device.upload(lane.batch.lengths, self._host.lengths[rows], lane.stream)

    def _compute(self, lane: Lane, rows: slice) -> None:
        for launch in lane.launches(rows.stop - rows.start):
            self._device.launch(launch, lane.stream)

    def _copy_out(self, lane: Lane, rows: slice) -> None:
        self._device.download(lane.batch.logits, self._host.logits[rows], lane.stream)

    def close(self) -> None:
        """Give the buffers back, once nothing uses them."""
        self._device.synchronize()
        if self._graph is not None:
            self._graph.close()
        for pipeline in self._pipelines:
            pipeline.close()
        self._memory.release()


WARPS_PER_SM = 8
"""Warps of blocks whose weights are not resident, per SM: what registers hold of them."""


class QueuedRun(HostRun):
    """A batch answered review by review without a copy or a launch per review.

    Kernels read inputs and write answers in the host's page-locked memory, whose addresses the
    device shares (unified addressing).

    Raises
    ------
    OutOfMemory
        When the buffers cannot be had.
    """

    def __init__(
        self, device: Device, weights: Weights, choice: Choice, given: str, host: HostBatch
    ) -> None:
        self._device = device
        self._memory = Allocations(device)
        built = build(choice, given)
        cases, tokens = host.given.shape[:2]
        per_sm = 1 if choice.resident else max(1, WARPS_PER_SM // choice.warps)
        blocks = min(cases, device.sms * per_sm)
        with closed_on_error(self):
            arranged = self._memory.take(ARRANGED_BYTES[choice.variant])
            self._queue = self._memory.take(np.dtype(np.int32).itemsize)
            places = self._memory.take(blocks * host.given[0].nbytes)
            device.launch(arranging(built, weights, arranged))
        reviews, lengths, logits = (
            np.uint64(array.ctypes.data) for array in (host.given, host.lengths, host.logits)
        )
        fixed = weights["embeddings"], arranged, weights["b1"], weights["b2"]
        head = tuple(weights[name] for name in ("w3", "b3", "w4", "b4"))
        sizes = np.int32(cases), np.int32(tokens)
        arguments = reviews, *fixed, lengths, *head, self._queue, places, logits, *sizes
        shape = (blocks, 1, 1), (32 * choice.warps, 1, 1)
        self.launches = (Launch(built, "queued", *shape, arguments, choice.shared_bytes),)
        # Addresses of arrays keep nothing alive.
        self._host = host

    def run(self) -> None:
        self._answer()
        self._device.synchronize()

    def _answer(self) -> None:
        self._device.fill_bytes(self._queue, 0)
        self._device.launch(self.launches[0])

    def staged(self) -> dict[str, float]:
        """Milliseconds of the kernel, whose reads and writes of host memory are the copies."""
        begin = self._device.event()
        self._answer()
        return {"kernels": self._device.elapsed_ms(begin, self._device.event())}

    def close(self) -> None:
        """Give the buffers back, once nothing uses them."""
        self._device.synchronize()
        self._memory.release()
