"""Calls a function for several items at once, in processes that share what was read before."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from launchwise.base import work

Item = TypeVar("Item")
Result = TypeVar("Result")

_shared: tuple[Callable[[Any], Any], Sequence[Any]] | None = None
"""Function and items of the call that is under way: forks find them here, nothing is copied."""


def usable_cores() -> int:
    """Cores that this process may use: in a job of Slurm those of the job, not of the machine."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def in_parallel(
    function: Callable[[Item], Result], items: Sequence[Item], processes: int
) -> list[Result]:
    """``[function(item) for item in items]``, in up to ``processes`` at a time; with 1 in this
    process. ``function`` may use anything of this process; what it changes there is lost. What it
    returns and raises travels back."""
    global _shared
    processes = min(processes, len(items))
    if processes <= 1:
        return [function(item) for item in items]
    if _shared is not None:
        raise RuntimeError("parallel calls within a parallel call")
    _shared = (function, items)
    try:
        context = multiprocessing.get_context("fork")
        # Ctrl-C ends a worker without a word: the process that waits for it says what there is.
        end = (signal.SIGINT, signal.SIG_DFL)
        with ProcessPoolExecutor(processes, context, signal.signal, end) as pool:
            found = list(pool.map(_call, range(len(items))))
    finally:
        _shared = None
    for _, counts in found:
        work.add(counts)
    return [result for result, _ in found]


def _call(number: int) -> tuple[Any, Counter[str]]:
    assert _shared is not None
    function, items = _shared
    before = work.counted()
    result = function(items[number])
    return result, work.counted() - before
