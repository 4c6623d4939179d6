"""Launches of which the same come again, as a CUDA graph: one call queues them all."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_int, c_uint, c_void_p
from typing import Any

RELAXED = 2  # mode of a thread in which making a graph disturbs no capture of another one


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h."""

    _fields_ = (
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("arguments", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


class ChainGraph:
    """A graph of kernels one after another, for one set of arguments at a time.

    Arguments are read when the graph is made or brought up to date; graphs that are queued already
    keep theirs. Every call needs the context to be current, and is for one thread at a time.

    ``library``: the driver, as ctypes loads it.
    ``nodes``: the kernels in their order. What ``arguments`` points to must live as long as this.
    ``stream``: handle.
    """

    def __init__(self, library: ctypes.CDLL, nodes: Sequence[KernelNode], stream: int) -> None:
        self._library = library
        self._nodes = nodes
        self._stream = c_void_p(stream)
        self._capture = c_int()
        self._capture_to = byref(self._capture)
        self._graph, self._ready = c_void_p(), c_void_p()
        self._handles: list[c_void_p] = []
        try:
            # Bound once: looking a function up takes as long as calling it.
            self._launch: Any = library["cuGraphLaunch"]
            self._capturing: Any = library["cuStreamIsCapturing"]
            self._set: Any = library["cuGraphExecKernelNodeSetParams_v2"]
            self.possible = True
        except AttributeError:  # The driver is older than CUDA 12.
            self.possible = False

    def follow(self) -> bool:
        """Take the arguments as they are now; False where that cannot be. From then on it is not
        tried again."""
        if not self.possible:
            return False
        mode = c_int(RELAXED)
        exchange = self._library["cuThreadExchangeStreamCaptureMode"]
        if exchange(byref(mode)):
            return False
        try:
            self.possible = self._updated() if self._ready else self._made()
        finally:
            exchange(byref(mode))
        return self.possible

    def _made(self) -> bool:
        if self._library["cuGraphCreate"](byref(self._graph), c_uint(0)):
            return False
        for node in self._nodes:
            handle, before = c_void_p(), self._handles[-1:]
            last = (c_void_p * len(before))(*(each.value for each in before))
            add = self._library["cuGraphAddKernelNode_v2"]
            count = ctypes.c_size_t(len(before))
            if add(byref(handle), self._graph, last, count, byref(node)):
                return False
            self._handles.append(handle)
        instantiate = self._library["cuGraphInstantiateWithFlags"]
        return not instantiate(byref(self._ready), self._graph, ctypes.c_ulonglong(0))

    def _updated(self) -> bool:
        return not any(
            self._set(self._ready, handle, byref(node))
            for handle, node in zip(self._handles, self._nodes, strict=True)
        )

    def queue(self) -> int | None:
        """Queue the graph. Returns the driver's code, or None while the stream is being captured:
        no graph can be queued then, and nothing was."""
        if self._capturing(self._stream, self._capture_to) or self._capture.value:
            return None
        return int(self._launch(self._ready, self._stream))

    def close(self) -> None:
        if self._ready:
            self._library["cuGraphExecDestroy"](self._ready)
        if self._graph:
            self._library["cuGraphDestroy"](self._graph)
        self._ready, self._graph, self.possible = c_void_p(), c_void_p(), False
