"""The network: its weights, their file, and its answer in NumPy.

Tokens are embedded, two dense layers work on each token, their mean over the tokens of a review
goes through two more: X (tokens x 300) -> ReLU(X W1 + b1) (150) -> ReLU(. W2 + b2) (64) -> mean ->
ReLU(. W3 + b3) (32) -> . W4 + b4 (2). (S. Dong, Z. Nan, Y. Deng: Accelerating the inference speed
of a DNN model using CUDA, 2024, algorithm 1.)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from launchwise.base.arrays import read_arrays
from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file

EMBEDDING, FIRST, SECOND, THIRD, CLASSES = 300, 150, 64, 32, 2
"""Widths: of an embedding, of the layers on tokens, of those on reviews."""

SHAPES: dict[str, tuple[int, ...]] = {
    "w1": (EMBEDDING, FIRST),
    "b1": (FIRST,),
    "w2": (FIRST, SECOND),
    "b2": (SECOND,),
    "w3": (SECOND, THIRD),
    "b3": (THIRD,),
    "w4": (THIRD, CLASSES),
    "b4": (CLASSES,),
}


@dataclass(frozen=True)
class Network:
    """Weights as they are used.

    Parameters
    ----------
    embeddings
        float16, (words, 300); word 0 fills what a review does not have.
    w1, b1, w2, b2, w3, b3, w4, b4
        float32, row-major; see :data:`SHAPES`.
    """

    embeddings: np.ndarray
    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    w3: np.ndarray
    b3: np.ndarray
    w4: np.ndarray
    b4: np.ndarray

    @property
    def words(self) -> int:
        """Rows of the table of embeddings."""
        return len(self.embeddings)


@dataclass(frozen=True)
class Cases:
    """Reviews as numbers."""

    tokens: np.ndarray
    """uint16, (cases, most tokens): words, then zeros."""
    lengths: np.ndarray
    """int32, (cases,): words of each, at least 1."""
    labels: np.ndarray
    """uint8, (cases,): 1 where the review is positive."""


@dataclass(frozen=True)
class Trained:
    """A network with what testing it takes: held-out reviews, and how often each word occurs."""

    network: Network
    held_out: Cases
    counts: np.ndarray
    """int64, (words,): occurrences in the training reviews; none of word 0."""


def write_trained(path: str | Path, trained: Trained) -> None:
    """Write all of it as one ``.npz``, whole or not at all."""
    arrays = {f.name: getattr(trained.network, f.name) for f in fields(Network)}
    arrays |= {f"held_out_{f.name}": getattr(trained.held_out, f.name) for f in fields(Cases)}
    with whole_file(path) as scratch, open(scratch, "wb") as stream:
        np.savez_compressed(stream, counts=trained.counts, **arrays)


def read_trained(path: str | Path) -> Trained:
    """Read what :func:`write_trained` wrote; nothing in it is ever unpickled.

    Raises
    ------
    UserError
        When the file is missing, damaged or holds other arrays.
    """
    arrays = read_arrays(path, "a file of weights")
    _check(path, arrays)
    network = Network(**{f.name: arrays[f.name] for f in fields(Network)})
    cases = Cases(**{f.name: arrays[f"held_out_{f.name}"] for f in fields(Cases)})
    return Trained(network, cases, arrays["counts"])


def _check(path: str | Path, arrays: dict[str, np.ndarray]) -> None:
    wanted = {"counts", *(f.name for f in fields(Network))}
    wanted |= {f"held_out_{f.name}" for f in fields(Cases)}
    if missing := sorted(wanted - set(arrays)):
        raise UserError(path, missing[0], "is missing")
    for name, shape in SHAPES.items():
        found = arrays[name]
        if found.shape != shape or found.dtype != np.float32:
            message = f"is {found.dtype} {found.shape}, must be float32 {shape}"
            raise UserError(path, name, message)
    table = arrays["embeddings"]
    if table.dtype != np.float16 or table.ndim != 2 or table.shape[1] != EMBEDDING:
        message = f"is {table.dtype} {table.shape}, must be float16 (words, {EMBEDDING})"
        raise UserError(path, "embeddings", message)


def logits(
    network: Network, inputs: np.ndarray, lengths: np.ndarray, dtype: type = np.float64
) -> np.ndarray:
    """The network's answer, computed in ``dtype``: shape (cases, 2).

    Parameters
    ----------
    inputs
        Words, uint16 (cases, tokens), or embeddings, float32 (cases, tokens, 300).
    lengths
        int, (cases,): tokens that count, from the first; the mean is over those.
    """
    table: np.ndarray = network.embeddings.astype(dtype)
    weights = {name: getattr(network, name).astype(dtype) for name in SHAPES}
    found: np.ndarray = np.empty((len(inputs), CLASSES), dtype)
    for case, (given, length) in enumerate(zip(inputs, lengths, strict=True)):
        x = table[given[:length]] if given.ndim == 1 else given[:length].astype(dtype)
        x = np.maximum(x @ weights["w1"] + weights["b1"], 0)
        x = np.maximum(x @ weights["w2"] + weights["b2"], 0)
        pooled = np.maximum(x.mean(axis=0) @ weights["w3"] + weights["b3"], 0)
        found[case] = pooled @ weights["w4"] + weights["b4"]
    return found


def accuracy(found: np.ndarray, labels: np.ndarray) -> float:
    """Share of cases whose larger logit is that of their label."""
    return float((found.argmax(axis=1) == labels).mean())
