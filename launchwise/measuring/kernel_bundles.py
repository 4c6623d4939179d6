"""Sources of a sweep's kernels: a finished bundle, or nvcc during the sweep."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from launchwise.measuring.compile import Compiler
from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec

MAX_BUILDS_PER_RUN = 16
"""Most builds per run of nvcc: starting nvcc takes as long as a few kernels, but no kernel can be
measured before its whole group is compiled."""

MIN_RUNS_PER_CORE = 2
"""Fewest runs of nvcc per core, if there are enough builds: the first lets measuring begin."""


@dataclass(frozen=True)
class Part:
    """A readable bundle; ``keys`` are its builds, None when it holds every one."""

    path: Path
    keys: frozenset[str] | None


class Parts(Protocol):
    """Bundles of a sweep, in order of completion."""

    seconds: float
    """Elapsed compile time, s; 0 without compilation."""

    def ready(self) -> Iterator[Part]:
        """Every part; waits for those that are not compiled yet.

        Raises
        ------
        UserError
            When one cannot be compiled.
        """


class Beforehand:
    """One bundle that the ``compile`` stage made."""

    seconds = 0.0

    def __init__(self, path: Path) -> None:
        self._part = Part(path, None)

    def ready(self) -> Iterator[Part]:
        """See :class:`Parts`."""
        yield self._part


class Alongside:
    """Compiles on every core while a sweep measures the kernels that are ready.

    A context manager; leaving it waits for the runs of nvcc in hand and drops the others.

    Parameters
    ----------
    builds
        In the order in which they are needed.
    threads
        Runs of nvcc at a time.
    """

    def __init__(
        self, folder: Path, spec: Spec, builds: Iterable[Build], arch: str, threads: int
    ) -> None:
        self.compiler = Compiler(folder, spec, arch)
        self.seconds = 0.0
        needed = list(dict.fromkeys(builds))
        size = max(1, min(MAX_BUILDS_PER_RUN, len(needed) // (MIN_RUNS_PER_CORE * threads)))
        self._groups = [needed[start : start + size] for start in range(0, len(needed), size)]
        self._pool = ThreadPoolExecutor(threads)
        self._futures: list[Future[Part]] = []

    def __enter__(self) -> Alongside:
        self._scratch = tempfile.TemporaryDirectory(prefix="launchwise-parts-")
        self.compiler.__enter__()
        self._began = time.perf_counter()
        self._futures = [
            self._pool.submit(self._compile, number) for number in range(len(self._groups))
        ]
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self.compiler.__exit__(*error)
        self._scratch.cleanup()

    def _compile(self, number: int) -> Part:
        group = self._groups[number]
        path = Path(self._scratch.name) / f"{number}.cubins"
        self.compiler.write(path, [self.compiler.compile(group)])
        self.seconds = max(self.seconds, time.perf_counter() - self._began)
        return Part(path, frozenset(build.key for build in group))

    def ready(self) -> Iterator[Part]:
        """See :class:`Parts`."""
        for future in as_completed(self._futures):
            yield future.result()
