"""Layouts of a problem's buffers that are kept open while memory lasts."""

from __future__ import annotations

from typing import Any

from launchwise.measuring.measure import LayoutRun, OutOfMemory, ProblemContext
from launchwise.workloads.space import Configuration


class OpenLayouts:
    """Layouts of configurations in any order, kept open while memory lasts."""

    def __init__(self, context: ProblemContext) -> None:
        self._context = context
        self._open: dict[Any, LayoutRun] = {}

    def of(self, configuration: Configuration) -> LayoutRun:
        """The layout of a configuration; OutOfMemory when it does not fit even alone."""
        layout = self._context.workload.layout(configuration)
        if layout not in self._open:
            try:
                self._open[layout] = LayoutRun(self._context, layout)
            except OutOfMemory:
                if not self._open:
                    raise
                self.close()
                self._open[layout] = LayoutRun(self._context, layout)
        return self._open[layout]

    def close(self) -> None:
        """Release all buffers."""
        for run in self._open.values():
            run.close()
        self._open.clear()
