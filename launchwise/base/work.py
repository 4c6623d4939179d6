"""Work of a job: counted without the noise of seconds, and shared out to processes.

Rows times trees are counted where models are fitted and asked, files and rows where tables are
read. A job's counts stand beside its log; ``benchmarks/budget.py`` adds them up. A function may be
called for several items at once, in processes that share what was read before.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from launchwise.base.storage import write_json

FITTED = "row_trees_fitted"
ASKED = "row_trees_asked"
FILES_READ = "files_read"
ROWS_READ = "rows_read"

COUNTED = (FITTED, ASKED, FILES_READ, ROWS_READ)  # What is counted

LOGS, FOLDER = Path("results/logs"), Path("results/work")

_counts: Counter[str] = Counter()


def count(what: str, amount: int) -> None:
    """Add to one of :data:`COUNTED`."""
    _counts[what] += int(amount)


def counted() -> Counter[str]:
    """What this process counted so far."""
    return Counter(_counts)


def add(other: Counter[str]) -> None:
    """Add what another process counted."""
    _counts.update(other)


def write(log: str, started: float, before: Counter[str]) -> None:
    """Write what a job counted beside its log file, below ``results/logs``; ``started``,
    ``before``: :func:`time.monotonic` and :func:`counted` at its start."""
    path = Path(log)
    if not path.is_relative_to(LOGS):
        return
    target = FOLDER / path.relative_to(LOGS).with_suffix(".json")
    found: dict[str, Any] = {name: _counts[name] - before[name] for name in COUNTED}
    # Of this process and of those that it started and waited for.
    core_s, wall_s = sum(os.times()[:4]), time.monotonic() - started
    write_json(target, {**found, "core_s": round(core_s, 3), "wall_s": round(wall_s, 3)})


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
        with ProcessPoolExecutor(processes, context, _begin) as pool:
            found = list(pool.map(_call, range(len(items))))
    finally:
        _shared = None
    for _, counts in found:
        add(counts)
    return [result for result, _ in found]


PR_SET_PDEATHSIG = 1


def end_with_the_starter() -> None:
    """End as soon as the process that started this one does, even where it is killed: nobody waits
    for the work any more, and a kernel that never ends would hold its card or core for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _begin() -> None:
    # Ctrl-C ends a worker without a word: the process that waits for it says what there is.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_the_starter()


def _call(number: int) -> tuple[Any, Counter[str]]:
    assert _shared is not None
    function, items = _shared
    before = counted()
    result = function(items[number])
    return result, counted() - before


VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
"""Read by libraries when they are loaded, by processes that a model starts, and by joblib."""

_limits = threading.local()


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:
    """Pools of threads of this process's libraries: sought anew where modules came, for 10 ms."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and joblib to one thread; within another such block nothing happens.
    Libraries that are loaded inside read their limit from the environment, which is put back; they
    keep it."""
    if getattr(_limits, "active", False):
        yield
        return
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    _limits.active = True
    try:
        with _pools(len(sys.modules)).limit(limits=1):
            yield
    finally:
        _limits.active = False
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
