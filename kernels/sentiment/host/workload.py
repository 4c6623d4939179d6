"""Host side of the sentiment workload: reviews, reference, and how a configuration is run."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.workloads.builds import Build
from launchwise.workloads.workload import (
    Allocations,
    Device,
    Finding,
    HostRun,
    LaunchFailed,
    LaunchSequence,
    Runnable,
    Session,
    Workload,
    closed_on_error,
)

from .launches import (
    LOGITS_BYTES,
    PERSISTENT,
    Batch,
    Choice,
    Pipeline,
    Weights,
    build,
)
from .network import CLASSES, EMBEDDING, SHAPES, Trained, logits, read_trained
from .reviews import drawn
from .streaming import HostBatch, QueuedRun, StreamedRun

if TYPE_CHECKING:
    # Imported where it is used: how a library is called decides nothing about a sweep's rows.
    from .pytorch import PyTorch

TOLERANCE = 1e-5
"""Largest error of a logit by the largest logit: what sums of 300 products in float32 allow."""
LOOSER = {"tensor_tf32": 5e-3, "tensor_fp16": 5e-3, "tensor_bf16": 4e-2}
"""The same for variants that round what they multiply, to ten or seven bits behind the point."""

REFERENCE_THREADS, REFERENCE_WORDS = 64, 300 + 150 + 32 + 64


class Sentiment(Workload):
    """A batch of reviews, on the device or in host memory, as words or as embeddings."""

    peers = ("pytorch", "pytorch_compiled")

    @cached_property
    def trained(self) -> Trained:
        """The network, from ``network.npz``."""
        return read_trained(self.folder / "network.npz")

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        # Launch tunables are no part of it, and not always there.
        return build(Choice.of({**vars(Choice("")), **configuration}), str(problem["given"]))

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Compare the device's embeddings and reference with NumPy's on a few short reviews."""
        small = {"batch": 5, "tokens": 7, "given": "embeddings", "memory": "device"}
        with closing(SentimentSession(self, device, small, seed)) as session:
            network = self.trained.network
            x = np.empty((5, 7, EMBEDDING), np.float32)
            device.download(session.batch.given, x)
            if not np.array_equal(x, network.embeddings[session.words].astype(np.float32)):
                return "the device's embeddings differ from NumPy's"
            expected = logits(network, session.words, session.lengths)
            if not np.allclose(session.expected, expected, rtol=0, atol=1e-12):
                error = np.abs(session.expected - expected).max()
                return f"the device's reference differs from NumPy's by {error:.3g}"
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> SentimentSession:
        return SentimentSession(self, device, problem, seed)


def lengths_of(cases: int, tokens: int, seed: int) -> np.ndarray:
    """All tokens count, but in every eighth case only some: int32, (cases,)."""
    lengths = np.full(cases, tokens, np.int32)
    short = np.random.default_rng(seed + 1).integers(1, tokens + 1, cases)
    lengths[3::8] = short[3::8]
    return lengths


class SentimentSession(Session):
    """One problem's reviews, where they belong, and what the network has to say of them."""

    def __init__(
        self, workload: Sentiment, device: Device, problem: Mapping[str, Any], seed: int
    ) -> None:
        super().__init__(workload, device, problem, seed)
        cases, tokens = int(problem["batch"]), int(problem["tokens"])
        self._given = str(problem["given"])
        self.words = drawn(workload.trained.counts, cases, tokens, seed)
        self.lengths = lengths_of(cases, tokens, seed)
        self._tolerance = TOLERANCE
        self._running: Pipeline | QueuedRun | StreamedRun | None = None
        self._network = workload.trained.network
        self._peers: dict[str, PyTorch] = {}
        self._peer: PyTorch | None = None
        self._host: HostBatch | None = None
        with closed_on_error(self):
            begin = time.perf_counter()
            self._weights = Weights(device, workload.trained.network, self.memory)
            device.synchronize()
            self._weights_s = time.perf_counter() - begin
            words, lengths = (self.memory.upload(array) for array in (self.words, self.lengths))
            self.expected = self._reference(words, lengths, cases, tokens)
            given = words if self._given == "tokens" else self._look_up(words, cases * tokens)
            out = self.memory.take(LOGITS_BYTES * cases)
            self.batch = Batch(given, lengths, out, cases, tokens)
            self.working_set_bytes = given.nbytes + out.nbytes
            if problem["memory"] != "device":
                self._host = self._in_host_memory(problem["memory"] == "pinned")

    def _reference(self, words: Any, lengths: Any, cases: int, tokens: int) -> np.ndarray:
        """float64 logits, (cases, 2)."""
        found = np.empty((cases, CLASSES))
        with Allocations(self.device) as scratch:
            out = scratch.take(found.nbytes)
            weights = [self._weights[name] for name in SHAPES]
            network = self._weights["embeddings"], lengths, *weights
            shape = {"threads": REFERENCE_THREADS, "shared_bytes": 8 * REFERENCE_WORDS}
            self.run_check("reference", cases, words, *network, out, np.int32(tokens), **shape)
            self.device.download(out, found)
        return found

    def _look_up(self, words: Any, rows: int) -> Any:
        x = self.memory.take(rows * EMBEDDING * 4)
        arguments = words, self._weights["embeddings"], x, np.int64(rows)
        self.run_check("look_up", 32 * self.device.sms, *arguments)
        return x

    def _in_host_memory(self, page_locked: bool) -> HostBatch:
        cases, tokens = self.words.shape
        wanted: list[tuple[tuple[int, ...], type]] = [
            ((cases, tokens), np.uint16)
            if self._given == "tokens"
            else ((cases, tokens, EMBEDDING), np.float32),
            ((cases,), np.int32),
            ((cases, CLASSES), np.float32),
        ]
        arrays = [self.host_array(shape, dtype, page_locked) for shape, dtype in wanted]
        self.device.download(self.batch.given, arrays[0])
        arrays[1][:] = self.lengths
        return HostBatch(*arrays)

    def launch(self, configuration: Mapping[str, Any]) -> Runnable:
        self._forget()
        choice = Choice.of(configuration)
        self._tolerance = LOOSER.get(choice.variant, TOLERANCE)
        begin = time.perf_counter()
        work = self._set_up(choice)
        self.device.synchronize()
        self._setup_ms = 1e3 * (self._weights_s + time.perf_counter() - begin)
        return work

    def _set_up(self, choice: Choice) -> Runnable:
        if self._host is not None:
            kind = QueuedRun if choice.variant == PERSISTENT else StreamedRun
            run = kind(self.device, self._weights, choice, self._given, self._host)
            self._running = run
            return run
        batch = self.batch
        pipeline = Pipeline(
            self.device, self._weights, choice, self._given, batch.cases, batch.tokens
        )
        self._running = pipeline
        launches = tuple(pipeline.launches(batch))
        return LaunchSequence(launches)

    def peer(self, name: str) -> PyTorch:
        """See :meth:`launchwise.workloads.workload.Session.peer`: PyTorch, in device memory."""
        from .pytorch import PyTorch

        self._forget()
        if self._host is not None:
            raise LaunchFailed("PyTorch is compared in device memory", fatal=False)
        if name not in self._peers:
            given = self.words, self.lengths, self._given != "tokens"
            self._peers[name] = PyTorch(name, self._network, *given)
        self._tolerance = TOLERANCE
        self._peer = self._peers[name]
        return self._peer

    def _forget(self) -> None:
        self._peer = None
        if self._running is not None:
            self.device.synchronize()
            self._running.close()
            self._running = None

    def stages(self, work: Runnable) -> dict[str, float]:
        """See :meth:`stages`: set-up, copies and kernels apart."""
        setup = {"setup": self._setup_ms}
        if isinstance(work, QueuedRun | StreamedRun):
            return setup | work.staged()
        assert not isinstance(work, HostRun)
        begin = self.device.event()
        for launch in work.launches:
            self.device.launch(launch)
        return setup | {"kernels": self.device.elapsed_ms(begin, self.device.event())}

    def poison(self) -> None:
        """Every bit set: a NaN."""
        self.device.fill_bytes(self.batch.logits, 0xFF)
        if self._peer is not None:
            self._peer.forget()
        if self._host is not None:
            self._host.logits.view(np.uint8)[:] = 0xFF
        if isinstance(self._running, StreamedRun):
            self._running.poison()

    def check(self) -> Finding:
        """See :meth:`check`: logits against the float64 reference."""
        found = np.empty(self.expected.shape, np.float32)
        if self._peer is not None:
            found[:] = self._peer.answered()
        elif self._host is not None:
            found[:] = self._host.logits
        else:
            self.device.download(self.batch.logits, found)
        if not np.isfinite(found).all():
            missing = int((~np.isfinite(found)).any(axis=1).sum())
            return Finding(float("nan"), self._tolerance, f"{missing} cases have no finite logits")
        error = float(np.abs(found - self.expected).max() / np.abs(self.expected).max())
        wrong = ""
        if not error <= self._tolerance:
            wrong = f"logit error {error:.3g} (allowed {self._tolerance:.3g})"
        flips = int((found.argmax(axis=1) != self.expected.argmax(axis=1)).sum())
        return Finding(error, self._tolerance, wrong, {"class_flips": float(flips)})

    def close(self) -> None:
        self._forget()
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()
        super().close()
