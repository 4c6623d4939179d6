"""Ends a benchmark in one line where the machine lacks what it needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from launchwise.measuring.cards import cards

EXIT_MISSING = 2


def end(missing: str) -> NoReturn:
    """End with status 2, after one line that names what is missing and what to install."""
    print(f"{Path(sys.argv[0]).name} needs {missing}", file=sys.stderr)
    raise SystemExit(EXIT_MISSING)


@contextmanager
def packages() -> Iterator[None]:
    """For a block that imports packages that no lock file names: :func:`end` without them."""
    try:
        yield
    except ImportError as error:
        end(f"the package {error.name}: {error}")


@contextmanager
def gpu_and_packages() -> Iterator[None]:
    """The same for PyCUDA or another tool, which needs a GPU, too."""
    if not cards():
        end("a GPU, its driver and the gpu extra (make gpu); NVML shows no GPU")
    with packages():
        yield


def eigen() -> None:
    """:func:`end` where C++ with Eigen cannot be compiled."""
    from kernels.sentiment.host.eigen import NoEigen, library

    try:
        library()
    except NoEigen as error:
        end(f"Eigen and a C++ compiler: {error}")
