"""CUDA graphs around PyCUDA's launches: captured once, replayed and timed.

PyCUDA wraps no graphs, but its streams hand out their handle, which cuda-bindings capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pycuda.driver as cuda


class GraphsMissing(Exception):
    """cuda-bindings are not installed, or the driver refused to capture."""


class Graphs:
    """Captures launches on a stream of its own in the current context.

    Raises
    ------
    GraphsMissing
        When cuda-bindings are not installed.
    """

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise GraphsMissing(str(error)) from error
        self._driver = driver
        self._stream = cuda.Stream()
        self._events = cuda.Event(), cuda.Event()

    def replay(self, queue: Callable[[Any], None], repeats: int) -> list[float]:
        """Milliseconds of each of ``repeats`` replays of what ``queue`` launches on a stream.

        Raises
        ------
        GraphsMissing
            When the launches cannot be captured.
        """
        handle = self._driver.CUstream(self._stream.handle)
        executable = self._captured(queue, handle)
        begin, end = self._events
        times = []
        try:
            # The first replay uploads the graph, and is not counted.
            for number in range(repeats + 1):
                begin.record(self._stream)
                self._ask(self._driver.cuGraphLaunch(executable, handle))
                end.record(self._stream)
                end.synchronize()
                if number:
                    times.append(end.time_since(begin))
        finally:
            self._driver.cuGraphExecDestroy(executable)
        return times

    def _captured(self, queue: Callable[[Any], None], handle: Any) -> Any:
        # Whatever ran on the default stream must be over: a captured stream cannot wait for it.
        cuda.Context.synchronize()
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._ask(self._driver.cuStreamBeginCapture(handle, mode))
        try:
            queue(self._stream)
        except BaseException:
            self._driver.cuStreamEndCapture(handle)
            raise
        graph = self._ask(self._driver.cuStreamEndCapture(handle))
        executable = self._ask(self._driver.cuGraphInstantiate(graph, 0))
        self._driver.cuGraphDestroy(graph)
        return executable

    @staticmethod
    def _ask(result: tuple[Any, ...]) -> Any:
        if int(result[0]) != 0:
            raise GraphsMissing(result[0].name)
        return result[1] if len(result) > 1 else None
