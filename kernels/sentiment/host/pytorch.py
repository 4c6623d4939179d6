"""The same network in PyTorch, float32, to compare with."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from launchwise.workloads.workload import LibraryRun

from .network import SHAPES, Network

MODES = ("pytorch", "pytorch_compiled")  # eager, and compiled by ``torch.compile`` for any size


def answer(torch: Any, weights: Any, table: Any, given: Any, count: Any) -> Any:
    """Logits of reviews, (cases, 2) float32.

    ``given``: words, (cases, tokens) int32, or their embeddings, (cases, tokens, 300) float32.
    ``count``: words of each review, (cases,) float32.
    """
    x = table[given].float() if given.ndim == 2 else given
    x = torch.relu(x @ weights["w1"] + weights["b1"])
    x = torch.relu(x @ weights["w2"] + weights["b2"])
    there = torch.arange(x.shape[1], device=x.device)[None, :] < count[:, None]
    x = (x * there[..., None]).sum(1) / count[:, None]
    return torch.relu(x @ weights["w3"] + weights["b3"]) @ weights["w4"] + weights["b4"]


@cache
def _function(mode: str) -> Callable[..., Any]:
    """Compiled once in a process: what is compiled serves every problem."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    if mode == "pytorch":
        return answer
    return torch.compile(answer, dynamic=True)


class PyTorch(LibraryRun):
    """One batch in device memory, by PyTorch.

    ``words``, ``lengths``: uint16, (cases, tokens); int32, (cases,).
    ``embedded``: whether embeddings are given instead of words.
    Raises ImportError without PyTorch.
    """

    def __init__(
        self, mode: str, network: Network, words: np.ndarray, lengths: np.ndarray, embedded: bool
    ) -> None:
        import torch

        self._torch = torch
        self.version = f"PyTorch {torch.__version__}"
        self._run = _function(mode)
        self._weights = {
            name: torch.from_numpy(np.ascontiguousarray(getattr(network, name))).cuda()
            for name in SHAPES
        }
        self._table = torch.from_numpy(np.ascontiguousarray(network.embeddings)).cuda()
        given = torch.from_numpy(words.astype(np.int32)).cuda()
        self._given = self._table[given].float() if embedded else given
        self._count = torch.from_numpy(lengths.astype(np.float32)).cuda()
        self._found: Any = None

    def queue(self, stream: Any) -> None:
        torch = self._torch
        # An external stream of handle 0 would be a new stream.
        default = torch.cuda.default_stream()
        on = default if stream is None else torch.cuda.ExternalStream(stream.handle)
        with torch.inference_mode(), torch.cuda.stream(on):
            self._found = self._run(torch, self._weights, self._table, self._given, self._count)

    def answered(self) -> np.ndarray:
        self._torch.cuda.synchronize()
        found: np.ndarray = self._found.cpu().numpy()
        return found

    def forget(self) -> None:
        self._found = None

    def close(self) -> None:
        self._given = self._found = None
        self._torch.cuda.empty_cache()
