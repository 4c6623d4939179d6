"""The kernels that answer a batch of reviews, in order, by variant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build
from launchwise.workloads.workload import Allocations, Buffer, Device, Launch, closed_on_error

from .network import (
    CLASSES,
    FIRST,
    SECOND,
    SHAPES,
    THIRD,
    Network,
)

FIRST_PADDED = 160
"""Columns of the first layer as blocks see them (``sentiment.cuh``)."""
SECOND_COLUMNS = 4
"""Columns of the second layer that a thread has in registers (``layers.cuh``)."""
ELEMENTWISE = 256
"""Threads of a block where every thread has one element."""
OF_CASES = 128
"""Threads of a block that has four whole cases, a warp each."""
WORD = 4
LOGITS_BYTES = CLASSES * WORD
"""Bytes of one case's answer."""

NAIVE = ("naive", "separate")
"""Variants whose threads have one element each and read all from global memory."""
TILED = ("tiled", "separate_tiled")
"""Variants with square tiles in shared memory."""
SEPARATE = ("separate", "separate_tiled")
"""Variants with a launch per step of the layers on whole cases, as published."""
BLOCKED = ("register_blocked", "fused_bias_relu", "fused_pool")
"""Variants whose blocks share slices of both factors."""
TENSOR = ("tensor_tf32", "tensor_3xtf32", "tensor_3xfp16", "tensor_bf16", "tensor_fp16")
"""Variants by tensor cores."""
BY_WARPS = ("fused_case", *TENSOR)
"""Those whose warps do all layers on their tokens in one launch."""
PERSISTENT = "persistent"
"""The variant whose blocks take reviews from a queue (``streaming.py``)."""
POOLING = ("fused_pool", *BY_WARPS)
"""Those that sum over tokens before they store anything."""
ARRANGED_BYTES = {
    # Whole columns, 152 and 64 of them (``fused_case.cu``).
    "fused_case": (300 * 152 + 152 * 64) * WORD,
    # Tiles of 16 x 8, 19 x 19 and 10 x 8 of them (``tensor_case.cuh``).
    "tensor_tf32": 441 * 16 * 8 * WORD,
    "tensor_3xtf32": 441 * 16 * 8 * WORD,
    "tensor_3xfp16": 441 * 16 * 8 * WORD,
    "tensor_bf16": 441 * 16 * 8 * WORD // 2,
    "tensor_fp16": 441 * 16 * 8 * WORD // 2,
}
ARRANGED_BYTES[PERSISTENT] = ARRANGED_BYTES["fused_case"]
"""Both layers' weights, padded, in the order in which a variant's lanes want them."""
SLAB_ROWS = 12
"""Embeddings of a warp's tokens that are on their way, elements each (``fused_case.cu``)."""


@dataclass(frozen=True)
class Choice:
    """How a batch is answered; what each means stands in ``kernels/sentiment/spec.yaml``."""

    variant: str
    threads: int = 256
    tile: int = 16
    tile_rows: int = 64
    tile_depth: int = 8
    rows_a_thread: int = 8
    columns_a_thread: int = 8
    rows_a_warp: int = 32
    warps: int = 8
    resident: int = 0
    last_answers: int = 0
    chunk: int = 0
    streams: int = 1
    graph: int = 0

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> Choice:
        """From a configuration of the workload."""
        names = [name for name in cls.__dataclass_fields__ if name != "variant"]
        values = {name: int(configuration[name]) for name in names}
        return cls(variant=str(configuration["variant"]), **values)

    @property
    def pitch(self) -> int:
        """Words from one column of a block's rows to the next in shared memory."""
        return self.tile_rows + 4

    @property
    def first_threads(self) -> int:
        """Threads of a block in the first layer."""
        return self.tile_rows // self.rows_a_thread * (FIRST_PADDED // self.columns_a_thread)

    @property
    def second_threads(self) -> int:
        """Threads of a block in the second layer."""
        return self.tile_rows // self.rows_a_thread * (SECOND // SECOND_COLUMNS)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block that does all layers on tokens."""
        weights = ARRANGED_BYTES[self.variant] if self.resident else 0
        slabs = SLAB_ROWS * self.rows_a_warp * self.warps * WORD
        if self.variant == PERSISTENT:
            # Sums of every warp, the mean with the hidden units, and the number of the review.
            return weights + slabs + (2 * self.warps * SECOND + SECOND + THIRD + 1) * WORD
        return weights + (slabs if self.variant == "fused_case" else 0)

    @property
    def pooled_rows(self) -> int:
        """Tokens that are summed together before sums are added up by case."""
        return self.rows_a_warp if self.variant in BY_WARPS else self.tile_rows

    def slices(self, columns: int) -> int:
        """Words of two slices of both factors."""
        return 2 * self.tile_depth * (self.pitch + columns)

    def most_cases(self, tokens: int) -> int:
        """Cases that ``pooled_rows`` may touch."""
        return self.pooled_rows // tokens + 2


def intermediate_bytes(choice: Choice, rows: int, tokens: int) -> int:
    """Bytes that go to device memory and back between inputs and logits.

    What one kernel leaves for another, as often as it is written or read: the outputs of both
    layers four times each where bias and ReLU are passes of their own, and sums over tokens.
    """
    if choice.variant in BY_WARPS:
        first, second = 0, 0
    elif choice.variant == "fused_pool":
        first, second = 2, 0
    else:
        first = second = 2 if choice.variant == "fused_bias_relu" else 4
    words = rows * (first * FIRST + second * SECOND)
    if choice.variant in POOLING:
        # A part of the rows and a case meet wherever either begins; where both do, that is one.
        part = choice.pooled_rows
        meet = (-(-rows // each) for each in (part, tokens, math.lcm(part, tokens)))
        parts, cases, both = meet
        words += 2 * SECOND * (parts + cases - both)
    return words * WORD


def build(choice: Choice, given: str) -> Build:
    """Build of a variant's kernels for ``tokens`` or ``embeddings``."""
    defines: dict[str, str | int] = {"INPUT": "Tokens" if given == "tokens" else "Embedded"}
    if choice.variant in TILED:
        defines |= {"TILE": choice.tile}
    if choice.variant in BLOCKED:
        defines |= {
            "ROWS": choice.tile_rows,
            "DEPTH": choice.tile_depth,
            "ROWS_A_THREAD": choice.rows_a_thread,
            "COLUMNS_A_THREAD": choice.columns_a_thread,
        }
    if choice.variant in (*BY_WARPS, PERSISTENT):
        defines |= {
            "ROWS": choice.rows_a_warp,
            "WARPS": choice.warps,
            "RESIDENT": choice.resident,
            "LAST_ANSWERS": choice.last_answers,
        }
    return Build.of(f"{choice.variant}.cu", defines)


class Weights:
    """The network on the device."""

    def __init__(self, device: Device, network: Network, memory: Allocations) -> None:
        self.each: dict[str, Buffer] = {}
        for name in ("embeddings", *SHAPES):
            self.each[name] = memory.upload(getattr(network, name))

    def __getitem__(self, name: str) -> Buffer:
        return self.each[name]


def arranging(build: Build, weights: Weights, arranged: Buffer) -> Launch:
    """The launch that puts both layers' weights in the order of a variant's lanes, once."""
    # At least as many threads as any variant has words, or parts of a lane, to fill.
    blocks = -(-arranged.nbytes // WORD // ELEMENTWISE)
    shape = (blocks, 1, 1), (ELEMENTWISE, 1, 1)
    return Launch(build, "arrange", *shape, (weights["w1"], weights["w2"], arranged))


@dataclass(frozen=True)
class Batch:
    """Cases on the device."""

    given: Buffer
    """Words, uint16 (cases, tokens), or embeddings, float32 (cases, tokens, 300)."""
    lengths: Buffer
    """int32, (cases,)."""
    logits: Buffer
    """float32, (cases, 2): what is asked for."""
    cases: int
    tokens: int

    @property
    def rows(self) -> int:
        """Tokens of all cases."""
        return self.cases * self.tokens


class Pipeline:
    """Everything between inputs and logits for batches of at most so many cases.

    Raises
    ------
    OutOfMemory
        When what lies between cannot be had.
    """

    def __init__(
        self,
        device: Device,
        weights: Weights,
        choice: Choice,
        given: str,
        cases: int,
        tokens: int,
    ) -> None:
        self._weights = weights
        self._choice = choice
        self._build = build(choice, given)
        self._sms = device.sms
        self._memory = Allocations(device)
        rows = cases * tokens
        with closed_on_error(self):
            if choice.variant not in BY_WARPS:
                self._h1 = self._memory.take(rows * FIRST * WORD)
            if choice.variant in POOLING:
                parts = -(-rows // choice.pooled_rows)
                sums = parts * choice.most_cases(tokens) * SECOND
                self._partial = self._memory.take(sums * WORD)
            else:
                self._h2 = self._memory.take(rows * SECOND * WORD)
                self._pooled = self._memory.take(cases * SECOND * WORD)
            if choice.variant in SEPARATE:
                self._third = self._memory.take(cases * THIRD * WORD)
            if choice.variant in BY_WARPS:
                self._arranged = self._memory.take(ARRANGED_BYTES[choice.variant])
                self._arrivals = self._memory.take(cases * WORD)
                device.fill_bytes(self._arrivals, 0)
                device.launch(arranging(self._build, weights, self._arranged))

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()

    def launches(self, batch: Batch) -> list[Launch]:
        """The kernels that fill ``batch.logits``, in order."""
        if self._choice.variant in BY_WARPS:
            last = [] if self._choice.last_answers else [self._pooled_head(batch)]
            return [self._all_layers(batch), *last]
        if self._choice.variant == "fused_pool":
            return [self._first(batch), self._second_and_pool(batch), self._pooled_head(batch)]
        if self._choice.variant == "fused_bias_relu":
            return [self._first(batch), self._second(batch), *self._pool_and_head(batch)]
        return [
            self._first(batch),
            self._bias_relu(self._h1, "b1", batch.rows, FIRST),
            self._second(batch),
            self._bias_relu(self._h2, "b2", batch.rows, SECOND),
            *self._pool_and_head(batch),
        ]

    def _launch(
        self, kernel: str, blocks: tuple[int, int], threads: int, *arguments: Any, words: int = 0
    ) -> Launch:
        shape = (*blocks, 1), (threads, 1, 1)
        return Launch(self._build, kernel, *shape, arguments, words * WORD)

    def _of_rows(self, kernel: str, rows: int, columns: int, *arguments: Any) -> Launch:
        choice = self._choice
        if choice.variant in NAIVE:
            return self._launch(
                kernel, (-(-rows * columns // choice.threads), 1), choice.threads, *arguments
            )
        if choice.variant in TILED:
            blocks = -(-rows // choice.tile), -(-columns // choice.tile)
            words = choice.tile * (2 * choice.tile + 1)
            return self._launch(kernel, blocks, choice.tile**2, *arguments, words=words)
        first = kernel == "first"
        threads = choice.first_threads if first else choice.second_threads
        words = choice.slices(FIRST_PADDED if first else SECOND)
        if not first and choice.variant == "fused_pool":
            words = max(words, choice.tile_rows * SECOND + threads)
        return self._launch(
            kernel, (-(-rows // choice.tile_rows), 1), threads, *arguments, words=words
        )

    def _bias(self, name: str) -> tuple[Buffer, ...]:
        fused = self._choice.variant in ("fused_bias_relu", *POOLING)
        return (self._weights[name],) if fused else ()

    def _first(self, batch: Batch) -> Launch:
        weights, rows = self._weights, batch.rows
        given = batch.given, weights["embeddings"], weights["w1"], *self._bias("b1")
        return self._of_rows("first", rows, FIRST, *given, self._h1, np.int64(rows))

    def _second(self, batch: Batch) -> Launch:
        given = self._h1, self._weights["w2"], *self._bias("b2")
        return self._of_rows("second", batch.rows, SECOND, *given, self._h2, np.int64(batch.rows))

    def _second_and_pool(self, batch: Batch) -> Launch:
        given = self._h1, self._weights["w2"], *self._bias("b2"), batch.lengths
        more = self._partial, np.int64(batch.rows), np.int32(batch.tokens)
        return self._of_rows("second", batch.rows, SECOND, *given, *more)

    def _all_layers(self, batch: Batch) -> Launch:
        weights, choice = self._weights, self._choice
        blocks = -(-batch.rows // (choice.rows_a_warp * choice.warps))
        if choice.resident:
            # Whoever has copied the weights to its shared memory goes on until all is done.
            blocks = min(blocks, self._sms)
        fixed = weights["embeddings"], self._arranged, weights["b1"], weights["b2"]
        head = batch.lengths, *self._of_cases(), self._arrivals, self._partial, batch.logits
        sizes = np.int64(batch.rows), np.int32(batch.tokens)
        given = batch.given, *fixed, *head, *sizes
        words = choice.shared_bytes // WORD
        return self._launch("cases", (blocks, 1), 32 * choice.warps, *given, words=words)

    def _bias_relu(self, values: Buffer, bias: str, rows: int, columns: int) -> Launch:
        count = rows * columns
        blocks = min(-(-count // ELEMENTWISE), 32 * self._sms), 1
        arguments = values, self._weights[bias], np.int64(count), np.int32(columns)
        return self._launch("bias_relu", blocks, ELEMENTWISE, *arguments)

    def _pool_and_head(self, batch: Batch) -> list[Launch]:
        sizes = np.int32(batch.cases), np.int32(batch.tokens)
        blocks = -(-batch.cases * SECOND // ELEMENTWISE), 1
        pooling = self._h2, batch.lengths, self._pooled, *sizes
        pool = self._launch("pool", blocks, ELEMENTWISE, *pooling)
        if self._choice.variant in SEPARATE:
            return [pool, *self._separate_head(batch)]
        arguments = self._pooled, *self._of_cases(), batch.logits, np.int32(batch.cases)
        return [pool, self._head(batch, THIRD, arguments)]

    def _separate_head(self, batch: Batch) -> list[Launch]:
        """The layers on whole cases step by step: two products, bias and ReLU, bias."""
        count = batch.cases * CLASSES
        blocks = -(-count // ELEMENTWISE), 1
        last = batch.logits, self._weights["b4"], np.int64(count), np.int32(CLASSES)
        return [
            self._vector(batch.cases, self._pooled, "w3", self._third),
            self._bias_relu(self._third, "b3", batch.cases, THIRD),
            self._vector(batch.cases, self._third, "w4", batch.logits),
            self._launch("add_bias", blocks, ELEMENTWISE, *last),
        ]

    def _vector(self, cases: int, given: Buffer, weights: str, out: Buffer) -> Launch:
        depth, columns = SHAPES[weights]
        arguments = given, self._weights[weights], out, np.int32(depth), np.int32(columns)
        words = depth if self._choice.variant == "separate_tiled" else 0
        return self._launch("vector", (cases, 1), SECOND, *arguments, words=words)

    def _pooled_head(self, batch: Batch) -> Launch:
        sizes = np.int32(batch.cases), np.int32(batch.tokens)
        arguments = self._partial, batch.lengths, *self._of_cases(), batch.logits, *sizes
        return self._head(batch, SECOND + THIRD, arguments)

    def _of_cases(self) -> tuple[Buffer, ...]:
        return tuple(self._weights[name] for name in ("w3", "b3", "w4", "b4"))

    def _head(self, batch: Batch, words: int, arguments: tuple[Any, ...]) -> Launch:
        own = OF_CASES // THIRD
        blocks = -(-batch.cases // own), 1
        return self._launch("head", blocks, OF_CASES, *arguments, words=own * words)
