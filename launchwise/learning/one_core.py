"""Holds models to one core: jobs and folds run beside each other and share the cores already."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
"""Read by libraries when they are loaded, by processes that a model starts, and by joblib, which
takes ``n_jobs=-1`` as this many."""

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
