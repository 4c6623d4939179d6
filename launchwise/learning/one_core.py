"""Holds models to one core, and notices those that take more.

Jobs and folds run beside each other and share the cores already: a model that takes all of them for
itself slows every other one, and itself.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from launchwise.base.places import PACKAGE

Called = TypeVar("Called", bound=Callable[..., Any])

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
"""Read by libraries when they are loaded, by processes that a model starts, and by joblib, which
takes ``n_jobs=-1`` as this many."""

PERIOD_S = 0.05
"""Time between two looks at the threads of a process."""

TOLERATED_CORES = 1.3
TOLERATED_S = 0.5
"""CPU time beyond one core that is no matter: a library starts its threads, or imports others."""

_limits = threading.local()


_found: tuple[int, Any] = (0, None)


def _pools() -> Any:
    """The pools of threads of this process's libraries.

    To find them takes 10 ms and more, so that is done again only where modules came since.
    """
    global _found
    if _found[0] != len(sys.modules):
        from threadpoolctl import ThreadpoolController

        _found = len(sys.modules), ThreadpoolController()
    return _found[1]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP and joblib to one thread; within another such block nothing happens.

    Libraries that are loaded inside read their limit from the environment, which is put back; they
    keep it.
    """
    if getattr(_limits, "active", False):
        yield
        return
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    _limits.active = True
    try:
        with _pools().limit(limits=1):
            yield
    finally:
        _limits.active = False
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def on_one_thread(function: Called) -> Called:
    """``function``, called within :func:`one_thread`."""

    @wraps(function)
    def limited(*given: Any, **named: Any) -> Any:
        with one_thread():
            return function(*given, **named)

    return limited  # type: ignore[return-value]


@dataclass
class Use:
    """Cores that a block of code used or waited for."""

    # Its duration, and CPU time of this process and those that it started, s.
    wall_s: float = 0.0
    cpu_s: float = 0.0
    # Mean number of threads that ran or waited for a core: on a machine that others use, too, CPU
    # time divided by duration says less than what was asked for.
    cores: float = 0.0

    @property
    def beyond_s(self) -> float:
        """CPU time beyond one core, s; 0 where it is no matter."""
        beyond = self.cpu_s * (1 - 1 / self.cores) if self.cores > TOLERATED_CORES else 0.0
        return beyond if beyond > TOLERATED_S else 0.0


def complaint(uses: Iterable[Use]) -> str:
    """What to say of a model by its fits; nothing where each took one core."""
    greedy = [use for use in uses if use.beyond_s]
    if not greedy:
        return ""
    cpu_s = sum(use.cpu_s for use in greedy)
    cores = sum(use.cores * use.cpu_s for use in greedy) / cpu_s
    beyond = sum(use.beyond_s for use in greedy)
    return (
        f"took {cores:.1f} cores where it may take 1: {beyond:.1f} s of {cpu_s:.1f} s of CPU time "
        "beyond it; set the number of threads or processes (n_jobs, num_threads) in its code to 1"
    )


@contextmanager
def watched(kind: type | None = None) -> Iterator[Use]:
    """Measure the :class:`Use` of a block; it is complete after the block.

    Parameters
    ----------
    kind
        Class whose fit it is. Nothing is measured of kinds that come along: they take one core, and
        looking costs a part of it.
    """
    use = Use()
    if kind is not None and kind.__module__.startswith(f"{PACKAGE}."):
        yield use
        return
    done = threading.Event()
    counts: list[int] = []
    watcher = threading.Thread(target=_watch, args=(done, counts), daemon=True)
    started, before = time.perf_counter(), _cpu_s()
    watcher.start()
    try:
        yield use
    finally:
        done.set()
        watcher.join()
        use.wall_s = time.perf_counter() - started
        use.cpu_s = _cpu_s() - before
        asked = sum(counts) / len(counts) if counts else 0.0
        use.cores = max(asked, use.cpu_s / use.wall_s)


def _watch(done: threading.Event, counts: list[int]) -> None:
    while not done.wait(PERIOD_S):
        counts.append(_runnable(threading.get_native_id()))


def _runnable(watcher: int) -> int:
    """Threads of this process and its descendants that run or wait for a core, but the watcher."""
    found = 0
    for process in _processes():
        for fields in _stats(Path(f"/proc/{process}/task").glob("*/stat")):
            found += fields[1] == "R" and fields[0] != str(watcher)
    return found


def _processes() -> list[str]:
    """This process and its descendants; none where ``/proc`` does not say."""
    found = [str(os.getpid())]
    for process in found:
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += path.read_text().split()
            except OSError:  # it ended meanwhile
                continue
    return found


def _cpu_s() -> float:
    """CPU time of this process and its descendants, ended ones too, s."""
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    ticks = os.sysconf("SC_CLK_TCK")
    others = [Path(f"/proc/{process}/stat") for process in _processes()[1:]]
    # Fields 14 to 17 of proc(5): user and system time, and those of children that ended.
    return total + sum(sum(map(int, fields[12:16])) for fields in _stats(others)) / ticks


def _stats(paths: Iterable[Path]) -> Iterator[list[str]]:
    """Number, state and all further fields of processes or threads, those that ended left out."""
    for path in paths:
        try:
            number, _, rest = path.read_text().partition(" (")
        except OSError:
            continue
        # The name may hold blanks and parentheses.
        yield [number, *rest.rpartition(") ")[2].split()]
