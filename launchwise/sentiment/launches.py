"""The kernels that answer a batch of reviews, in order, by variant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.builds import Build
from launchwise.sentiment.network import (
    CLASSES,
    FIRST,
    SECOND,
    SHAPES,
    THIRD,
    Network,
)
from launchwise.workload import Allocations, Buffer, Device, Launch

FIRST_PADDED = 160
"""Columns of the first layer as blocks see them (``sentiment.cuh``)."""
SECOND_COLUMNS = 4
"""Columns of the second layer that a thread has in registers (``layers.cuh``)."""
ELEMENTWISE = 256
"""Threads of a block where every thread has one element."""
OF_CASES = 128
"""Threads of a block that has four whole cases, a warp each."""
WORD = 4

BLOCKED = ("register_blocked", "fused_bias_relu", "fused_pool", "fused_case")
"""Variants by register blocks."""
TENSOR = {"tensor_tf32": 1, "tensor_3xtf32": 1, "tensor_bf16": 2}
"""Variants by tensor cores, and how many elements they have a word."""
ONE_LAUNCH = ("fused_case", *TENSOR)
"""Those that do all layers on tokens in one launch."""
POOLING = ("fused_pool", *ONE_LAUNCH)
"""Those whose blocks sum over tokens."""


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
    warps_across: int = 4
    chunk: int = 0
    streams: int = 1

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
    def case_threads(self) -> int:
        """Threads of a block that does all layers on tokens."""
        tensor = self.variant in TENSOR
        return self.tile_rows * self.warps_across if tensor else self.first_threads

    @property
    def case_words(self) -> int:
        """Shared memory of such a block: what the first layer leaves, and slices."""
        if self.variant not in TENSOR:
            return FIRST_PADDED * self.pitch + self.slices(FIRST_PADDED)
        hidden = self.tile_rows * (FIRST_PADDED // TENSOR[self.variant] + 4)
        left = self.tile_rows * (self.tile_depth + 4)
        return hidden + 2 * (left + self.tile_depth * (FIRST_PADDED + 8))

    def slices(self, columns: int) -> int:
        """Words of two slices of both factors."""
        return 2 * self.tile_depth * (self.pitch + columns)

    def most_cases(self, tokens: int) -> int:
        """Cases that a block's rows may touch."""
        return self.tile_rows // tokens + 2


def build(choice: Choice, given: str) -> Build:
    """Build of a variant's kernels for ``tokens`` or ``embeddings``."""
    defines: dict[str, str | int] = {"INPUT": "Tokens" if given == "tokens" else "Embedded"}
    if choice.variant == "tiled":
        defines |= {"TILE": choice.tile}
    if choice.variant in BLOCKED:
        defines |= {
            "ROWS": choice.tile_rows,
            "DEPTH": choice.tile_depth,
            "ROWS_A_THREAD": choice.rows_a_thread,
            "COLUMNS_A_THREAD": choice.columns_a_thread,
        }
    if choice.variant in TENSOR:
        defines |= {
            "ROWS": choice.tile_rows,
            "DEPTH": choice.tile_depth,
            "WARPS_ACROSS": choice.warps_across,
        }
    return Build.of(f"{choice.variant}.cu", defines)


class Weights:
    """The network on the device."""

    def __init__(self, device: Device, network: Network, memory: Allocations) -> None:
        self.each: dict[str, Buffer] = {}
        for name in ("embeddings", *SHAPES):
            array = getattr(network, name)
            self.each[name] = memory.take(array.nbytes)
            device.upload(self.each[name], array)

    def __getitem__(self, name: str) -> Buffer:
        return self.each[name]


@dataclass(frozen=True)
class Batch:
    """Cases on the device.

    Parameters
    ----------
    given
        Words, uint16 (cases, tokens), or embeddings, float32 (cases, tokens, 300).
    lengths
        int32, (cases,).
    logits
        float32, (cases, 2): what is asked for.
    """

    given: Buffer
    lengths: Buffer
    logits: Buffer
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
        self._blocks = 32 * device.sms
        self._memory = Allocations(device)
        rows = cases * tokens
        try:
            if choice.variant not in ONE_LAUNCH:
                self._h1 = self._memory.take(rows * FIRST * WORD)
            if choice.variant in POOLING:
                blocks = -(-rows // choice.tile_rows)
                sums = blocks * choice.most_cases(tokens) * SECOND
                self._partial = self._memory.take(sums * WORD)
            else:
                self._h2 = self._memory.take(rows * SECOND * WORD)
                self._pooled = self._memory.take(cases * SECOND * WORD)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()

    def launches(self, batch: Batch) -> list[Launch]:
        """The kernels that fill ``batch.logits``, in order."""
        if self._choice.variant in ONE_LAUNCH:
            return [self._all_layers(batch), self._pooled_head(batch)]
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
        """A layer on tokens, the product alone or with what is fused to it."""
        choice = self._choice
        if choice.variant == "naive":
            return self._launch(
                kernel, (-(-rows * columns // choice.threads), 1), choice.threads, *arguments
            )
        if choice.variant == "tiled":
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
        layers = (weights[name] for name in ("embeddings", "w1", "b1", "w2", "b2"))
        arguments = (batch.given, *layers, batch.lengths, self._partial)
        sizes = np.int64(batch.rows), np.int32(batch.tokens)
        blocks = -(-batch.rows // choice.tile_rows), 1
        return self._launch(
            "cases", blocks, choice.case_threads, *arguments, *sizes, words=choice.case_words
        )

    def _bias_relu(self, values: Buffer, bias: str, rows: int, columns: int) -> Launch:
        count = rows * columns
        blocks = min(-(-count // ELEMENTWISE), self._blocks), 1
        arguments = values, self._weights[bias], np.int64(count), np.int32(columns)
        return self._launch("bias_relu", blocks, ELEMENTWISE, *arguments)

    def _pool_and_head(self, batch: Batch) -> list[Launch]:
        sizes = np.int32(batch.cases), np.int32(batch.tokens)
        blocks = -(-batch.cases * SECOND // ELEMENTWISE), 1
        pooling = self._h2, batch.lengths, self._pooled, *sizes
        pool = self._launch("pool", blocks, ELEMENTWISE, *pooling)
        arguments = self._pooled, *self._of_cases(), batch.logits, np.int32(batch.cases)
        return [pool, self._head(batch, THIRD, arguments)]

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


LOGITS_BYTES = CLASSES * WORD
"""Bytes of one case's answer."""
