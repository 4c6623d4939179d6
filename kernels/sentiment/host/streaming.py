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

from .launches import LOGITS_BYTES, Batch, Choice, Pipeline, Weights


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
