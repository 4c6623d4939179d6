"""Batches in page-locked memory, answered by one launch whose blocks take reviews from a queue."""

from __future__ import annotations

import numpy as np

from launchwise.workloads.workload import Allocations, Device, HostRun, Launch, closed_on_error

from .launches import ARRANGED_BYTES, Choice, Weights, arranging, build
from .streaming import HostBatch

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
