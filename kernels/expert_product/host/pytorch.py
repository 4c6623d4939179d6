"""The same products by PyTorch, to compare with: as its users call them, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from launchwise.cuda.shared_objects import address
from launchwise.workloads.workload import LibraryRun

MODES = ("pytorch", "pytorch_compiled")  # eager, and compiled by ``torch.compile``


def dense(torch: Any, x: Any, weights: Any, bias: Any, scale: Any, ends: Any) -> Any:
    """A product of one expert with its epilogue: cuBLAS, and what follows it."""
    found = torch.nn.functional.linear(x, weights[0], bias[0])
    return torch.nn.functional.silu(found) * scale[:, None]


def grouped(torch: Any, x: Any, weights: Any, bias: Any, scale: Any, ends: Any) -> Any:
    """Products of several experts in one call.

    ``ends``: (experts,) int32: the row behind the last one of each expert.
    """
    found = torch.nn.functional.grouped_mm(x, weights.transpose(1, 2), offs=ends)
    rows = torch.arange(len(x), device=x.device, dtype=torch.int32)
    found = found + bias[torch.searchsorted(ends, rows, right=True)]
    return torch.nn.functional.silu(found) * scale[:, None]


@cache
def _function(mode: str, product: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled once in a process: what is compiled serves every problem."""
    import torch

    return product if mode == "pytorch" else torch.compile(product, dynamic=True)


class PyTorch(LibraryRun):
    """The products of one problem, by PyTorch.

    ``mode``: one of :data:`MODES`.
    ``arrays``: ``x`` (rows, k), ``weights`` (experts, n, k), ``bias`` (experts, n) of float16 or
    bfloat16; ``scale`` (rows,) of float32, ``first`` (experts + 1,) of int32.
    ``out``: where the result goes: device memory of (rows, n).
    Raises ImportError without PyTorch; AttributeError with one that has no grouped products.
    """

    NEEDS = ("x", "weights", "bias", "scale", "first")

    def __init__(self, mode: str, arrays: Mapping[str, np.ndarray], out: Any) -> None:
        import torch

        self._torch = torch
        self.version = f"PyTorch {torch.__version__}"
        x, weights, bias, scale = (self._uploaded(arrays[name]) for name in self.NEEDS[:4])
        ends = self._uploaded(arrays["first"][1:])
        self._run = _function(mode, dense if len(weights) == 1 else grouped)
        self._given: Any = (torch, x, weights, bias, scale.to(x.dtype), ends)
        self._out, self._found = out, None

    def _uploaded(self, array: np.ndarray) -> Any:
        """A copy on the device; PyTorch takes NumPy's bfloat16 as its bits."""
        torch = self._torch
        array = np.ascontiguousarray(array)
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
        return torch.from_numpy(array).cuda()

    def queue(self, stream: Any) -> None:
        torch = self._torch
        # An external stream of handle 0 would be a new stream.
        default = torch.cuda.default_stream()
        on = default if stream is None else torch.cuda.ExternalStream(stream.handle)
        with torch.inference_mode(), torch.cuda.stream(on):
            self._found = self._run(*self._given)

    def deliver(self) -> None:
        import pycuda.driver as cuda

        self._torch.cuda.synchronize()
        found: Any = self._found
        found = found.contiguous()
        cuda.memcpy_dtod(address(self._out), found.data_ptr(), found.numel() * found.element_size())

    def close(self) -> None:
        self._given = self._found = None
        self._torch.cuda.empty_cache()
