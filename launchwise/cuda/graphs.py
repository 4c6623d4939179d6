"""CUDA graphs around PyCUDA's launches: captured once, replayed and timed.

PyCUDA wraps no graphs, but its streams hand out their handle, which cuda-bindings capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pycuda.driver as cuda

from launchwise.measuring.measure import LaunchFailed


class CaptureRefused(Exception):
    """The driver refused to capture."""


def ask(result: tuple[Any, ...]) -> Any:
    """Result of a driver call; CaptureRefused if the call failed."""
    if int(result[0]) != 0:
        raise CaptureRefused(result[0].name)
    return result[1] if len(result) > 1 else None


class CapturedGraph:
    """A captured CUDA graph: see :class:`launchwise.workloads.device.Captured`."""

    def __init__(self, driver: Any, executable: Any, stream: Any) -> None:
        self._driver = driver
        self._executable = executable
        self._stream = stream

    def launch(self) -> None:
        """Queue all of it; LaunchFailed when the driver refuses."""
        try:
            ask(self._driver.cuGraphLaunch(self._executable, self._stream))
        except CaptureRefused as error:
            raise LaunchFailed(f"the driver refused a CUDA graph: {error}", fatal=True) from error

    def close(self) -> None:
        """Release it after it has finished."""
        self._driver.cuGraphExecDestroy(self._executable)


class Graphs:
    """Captures launches on a stream of its own in the current context.

    Attributes
    ----------
    stream
        The stream.
    """

    def __init__(self) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self.stream = cuda.Stream()
        self._events = cuda.Event(), cuda.Event()

    def replay(self, queue: Callable[[Any], None], repeats: int) -> list[float]:
        """Milliseconds of each of ``repeats`` replays of what ``queue`` launches on a stream.

        Raises
        ------
        CaptureRefused
            When the launches cannot be captured.
        """
        handle = self._driver.CUstream(self.stream.handle)
        executable = self._captured(queue, handle)
        begin, end = self._events
        times = []
        try:
            # The first replay uploads the graph, and is not counted.
            for number in range(repeats + 1):
                begin.record(self.stream)
                ask(self._driver.cuGraphLaunch(executable, handle))
                end.record(self.stream)
                end.synchronize()
                if number:
                    times.append(end.time_since(begin))
        finally:
            self._driver.cuGraphExecDestroy(executable)
        return times

    def capture(self, queue: Callable[[], None], streams: Sequence[Any]) -> CapturedGraph:
        """Capture what ``queue`` puts on ``streams``, copies included, as one graph.

        Raises
        ------
        CaptureRefused
            When it cannot be captured.
        """

        def forked(own: Any) -> None:
            begin = cuda.Event().record(own)
            for stream in streams:
                stream.wait_for_event(begin)
            queue()
            for stream in streams:
                own.wait_for_event(cuda.Event().record(stream))

        handle = self._driver.CUstream(self.stream.handle)
        return CapturedGraph(self._driver, self._captured(forked, handle), handle)

    def _captured(self, queue: Callable[[Any], None], handle: Any) -> Any:
        # Whatever ran on the default stream must be over: a captured stream cannot wait for it.
        cuda.Context.synchronize()
        mode = self._driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        ask(self._driver.cuStreamBeginCapture(handle, mode))
        try:
            queue(self.stream)
        except BaseException:
            _, unfinished = self._driver.cuStreamEndCapture(handle)
            if unfinished is not None:  # A capture that broke off leaves no graph.
                self._driver.cuGraphDestroy(unfinished)
            raise
        graph = ask(self._driver.cuStreamEndCapture(handle))
        try:
            return ask(self._driver.cuGraphInstantiate(graph, 0))
        finally:
            self._driver.cuGraphDestroy(graph)
