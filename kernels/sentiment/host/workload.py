"""Host side of the sentiment workload: reviews, reference, and how a configuration is run."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import (
    Allocations,
    Device,
    Finding,
    HostRun,
    Launch,
    LaunchSequence,
    Runnable,
    Session,
    Workload,
)

from .launches import (
    LOGITS_BYTES,
    Batch,
    Choice,
    Pipeline,
    Weights,
    build,
)
from .network import CLASSES, EMBEDDING, SHAPES, Trained, logits, read_trained
from .reviews import drawn
from .streaming import HostBatch, StreamedRun

CHECK = Build.of("check.cu", {})
TOLERANCE = 1e-5
"""Largest error of a logit by the largest logit: what sums of 300 products in float32 allow."""
LOOSER = {"tensor_tf32": 5e-3, "tensor_bf16": 4e-2}
"""The same for variants that round what they multiply, to ten and seven bits behind the point."""

REFERENCE_THREADS, REFERENCE_WORDS = 64, 300 + 150 + 32 + 64


class Sentiment(Workload):
    """A batch of reviews, on the device or in host memory, as words or as embeddings."""

    def __init__(self, folder: Path, spec: Spec) -> None:
        super().__init__(folder, spec)
        self._checked = False

    @cached_property
    def trained(self) -> Trained:
        """The network, from ``network.npz``."""
        return read_trained(self.folder / "network.npz")

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        """See :meth:`launchwise.workloads.workload.Workload.build`."""
        # Launch tunables are no part of it, and not always there.
        return build(Choice.of({**vars(Choice("")), **configuration}), str(problem["given"]))

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """See :meth:`launchwise.workloads.workload.Workload.check_builds`."""
        return [CHECK]

    def self_check(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """The device's embeddings and its reference against NumPy's, on a few short reviews."""
        if self._checked:
            return ""
        small = {"batch": 5, "tokens": 7, "given": "embeddings", "memory": "device"}
        session = SentimentSession(self, device, small, seed)
        try:
            network = self.trained.network
            x = np.empty((5, 7, EMBEDDING), np.float32)
            device.download(session.batch.given, x)
            if not np.array_equal(x, network.embeddings[session.words].astype(np.float32)):
                return "the device's embeddings differ from NumPy's"
            expected = logits(network, session.words, session.lengths)
            if not np.allclose(session.expected, expected, rtol=0, atol=1e-12):
                error = np.abs(session.expected - expected).max()
                return f"the device's reference differs from NumPy's by {error:.3g}"
        finally:
            session.close()
        self._checked = True
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> SentimentSession:
        """See :meth:`launchwise.workloads.workload.Workload.open`."""
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
        self.device = device
        cases, tokens = int(problem["batch"]), int(problem["tokens"])
        self._given = str(problem["given"])
        self.words = drawn(workload.trained.counts, cases, tokens, seed)
        self.lengths = lengths_of(cases, tokens, seed)
        self._memory = Allocations(device)
        self._tolerance = TOLERANCE
        self._running: Pipeline | StreamedRun | None = None
        self._host: HostBatch | None = None
        try:
            begin = time.perf_counter()
            self._weights = Weights(device, workload.trained.network, self._memory)
            device.synchronize()
            self._weights_s = time.perf_counter() - begin
            words, lengths = (self._up(array) for array in (self.words, self.lengths))
            self.expected = self._reference(words, lengths, cases, tokens)
            given = words if self._given == "tokens" else self._look_up(words, cases * tokens)
            out = self._memory.take(LOGITS_BYTES * cases)
            self.batch = Batch(given, lengths, out, cases, tokens)
            self.working_set_bytes = given.nbytes + out.nbytes
            if problem["memory"] != "device":
                self._host = self._in_host_memory(problem["memory"] == "pinned")
        except BaseException:
            self._memory.release()
            raise

    def _up(self, array: np.ndarray) -> Any:
        buffer = self._memory.take(array.nbytes)
        self.device.upload(buffer, array)
        return buffer

    def _reference(self, words: Any, lengths: Any, cases: int, tokens: int) -> np.ndarray:
        """float64 logits, (cases, 2)."""
        found = np.empty((cases, CLASSES))
        scratch = Allocations(self.device)
        try:
            out = scratch.take(found.nbytes)
            weights = [self._weights[name] for name in SHAPES]
            given = (words, self._weights["embeddings"], lengths, *weights, out, np.int32(tokens))
            shape = (cases, 1, 1), (REFERENCE_THREADS, 1, 1)
            self.device.launch(Launch(CHECK, "reference", *shape, given, 8 * REFERENCE_WORDS))
            self.device.download(out, found)
        finally:
            scratch.release()
        return found

    def _look_up(self, words: Any, rows: int) -> Any:
        x = self._memory.take(rows * EMBEDDING * 4)
        shape = (32 * self.device.sms, 1, 1), (256, 1, 1)
        given = words, self._weights["embeddings"], x, np.int64(rows)
        self.device.launch(Launch(CHECK, "look_up", *shape, given))
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
        arrays: list[np.ndarray] = []
        for shape, dtype in wanted:
            nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
            raw = self.device.page_locked(nbytes) if page_locked else np.empty(nbytes, np.uint8)
            arrays.append(raw.view(dtype).reshape(shape))
        self.device.download(self.batch.given, arrays[0])
        arrays[1][:] = self.lengths
        return HostBatch(*arrays)

    def launch(self, configuration: Mapping[str, Any]) -> Runnable:
        """See :meth:`launchwise.workloads.workload.Session.launch`."""
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
            run = StreamedRun(self.device, self._weights, choice, self._given, self._host)
            self._running = run
            return run
        batch = self.batch
        pipeline = Pipeline(
            self.device, self._weights, choice, self._given, batch.cases, batch.tokens
        )
        self._running = pipeline
        launches = tuple(pipeline.launches(batch))
        return LaunchSequence(launches)

    def _forget(self) -> None:
        """Give back what the last configuration needed, once nothing uses it any more."""
        if self._running is not None:
            self.device.synchronize()
            self._running.close()
            self._running = None

    def stages(self, work: Runnable) -> dict[str, float]:
        """See :meth:`stages`: set-up, copies and kernels apart."""
        setup = {"setup": self._setup_ms}
        if isinstance(work, StreamedRun):
            return setup | work.staged()
        assert not isinstance(work, HostRun)
        begin = self.device.event()
        for launch in work.launches:
            self.device.launch(launch)
        return setup | {"kernels": self.device.elapsed_ms(begin, self.device.event())}

    def poison(self) -> None:
        """Every bit set: a NaN."""
        self.device.fill_bytes(self.batch.logits, 0xFF)
        if self._host is not None:
            self._host.logits.view(np.uint8)[:] = 0xFF
        if isinstance(self._running, StreamedRun):
            self._running.poison()

    def check(self) -> Finding:
        """See :meth:`check`: logits against the float64 reference."""
        found = np.empty(self.expected.shape, np.float32)
        if self._host is not None:
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
        """Give the buffers back."""
        self._forget()
        self._memory.release()
