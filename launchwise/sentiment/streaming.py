"""Batches from host memory: chunks of cases over CUDA streams, each with buffers of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from launchwise.sentiment.launches import LOGITS_BYTES, Batch, Choice, Pipeline, Weights
from launchwise.workload import Allocations, Device, HostRun, Launch


@dataclass(frozen=True)
class HostBatch:
    """Cases in host memory (see :class:`launchwise.sentiment.launches.Batch`)."""

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
            batch = self.batch
            own = Batch(batch.given, batch.lengths, batch.logits, cases, batch.tokens)
            self._launches[cases] = self.pipeline.launches(own)
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
        try:
            self._lanes = [self._lane(weights, choice, given, tokens) for _ in range(lanes)]
        except BaseException:
            self.close()
            raise
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
        """See :meth:`launchwise.workload.HostRun.run`."""
        self._each(lambda work, *_: work())
        self._device.synchronize()

    def _each(self, do: Callable[..., None]) -> None:
        device, host = self._device, self._host
        for number, begin in enumerate(range(0, len(host.given), self._chunk)):
            lane = self._lanes[number % len(self._lanes)]
            rows = slice(begin, begin + self._chunk)
            cases = len(host.given[rows])

            def copy_in(lane: Lane = lane, rows: slice = rows) -> None:
                device.upload(lane.batch.given, host.given[rows], lane.stream)
                device.upload(lane.batch.lengths, host.lengths[rows], lane.stream)

            def compute(lane: Lane = lane, cases: int = cases) -> None:
                for launch in lane.launches(cases):
                    device.launch(launch, lane.stream)

            def copy_out(lane: Lane = lane, rows: slice = rows) -> None:
                device.download(lane.batch.logits, host.logits[rows], lane.stream)

            do(copy_in, "h2d")
            do(compute, "kernels")
            do(copy_out, "d2h")

    def staged(self) -> dict[str, float]:
        """Milliseconds of copies and kernels, one after the other, nothing overlapped."""
        device = self._device
        spent = dict.fromkeys(("h2d", "kernels", "d2h"), 0.0)

        def timed(work: Callable[[], None], stage: str) -> None:
            device.synchronize()
            begin = device.event()
            work()
            device.synchronize()
            spent[stage] += device.elapsed_ms(begin, device.event())

        self._each(timed)
        return spent

    def close(self) -> None:
        """Give the buffers back, once nothing uses them."""
        self._device.synchronize()
        for pipeline in self._pipelines:
            pipeline.close()
        self._memory.release()
