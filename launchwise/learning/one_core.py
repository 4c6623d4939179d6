"""Holds models to one core: jobs and folds run beside each other and share the cores already."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

Called = TypeVar("Called", bound=Callable[..., Any])

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
"""Read by libraries when they are loaded, by processes that a model starts, and by joblib, which
takes ``n_jobs=-1`` as this many."""

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
