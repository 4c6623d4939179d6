"""Sources of a sweep's kernels: a finished bundle, or nvcc during the sweep."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from launchwise.measuring.bundle import Bundle, Compiled
from launchwise.measuring.compile import Compiler, left_out
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

    left_out: Mapping[str, str]
    """Sources without a compiler here, and what to install."""

    compilers: Mapping[str, str]
    """Programs beside nvcc that made builds so far, and their releases."""

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
        bundle = Bundle(path)
        self.left_out, self.compilers = bundle.left_out, bundle.compilers

    def ready(self) -> Iterator[Part]:
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
    at_once
        Whether nvcc starts with the block; else when the first part is asked for.
    """

    def __init__(
        self,
        folder: Path,
        spec: Spec,
        builds: Iterable[Build],
        arch: str,
        threads: int,
        at_once: bool = True,
    ) -> None:
        self.compiler = Compiler(folder, spec, arch)
        self.seconds = 0.0
        self._groups = _groups(wanted := list(dict.fromkeys(builds)), threads)
        self.left_out: Mapping[str, str] = left_out(wanted, arch)
        self.compilers: Mapping[str, str] = self.compiler.compilers
        self._pool = ThreadPoolExecutor(threads)
        self._futures: list[Future[Part]] = []
        self._compiled: list[Compiled] = []
        self._at_once = at_once

    def __enter__(self) -> Alongside:
        self._scratch = tempfile.TemporaryDirectory(prefix="launchwise-parts-")
        self.compiler.__enter__()
        if self._at_once:
            self._start()
        return self

    def _start(self) -> None:
        if not self._futures:
            self._began = time.perf_counter()
            self._futures = [
                self._pool.submit(self._compile, number) for number in range(len(self._groups))
            ]

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self.compiler.__exit__(*error)
        self._scratch.cleanup()

    def _compile(self, number: int) -> Part:
        group = self._groups[number]
        path = Path(self._scratch.name) / f"{number}.cubins"
        compiled = self.compiler.compile(group)
        self._compiled.append(compiled)
        self.compiler.write(path, [compiled])
        self.seconds = max(self.seconds, time.perf_counter() - self._began)
        return Part(path, frozenset(build.key for build in group))

    def ready(self) -> Iterator[Part]:
        self._start()
        for future in as_completed(self._futures):
            yield future.result()

    def write(self, path: Path) -> None:
        """Write one bundle of all builds, if nvcc was started; waits for those in hand.

        Raises
        ------
        UserError
            When one cannot be compiled.
        """
        if self._futures:
            for future in self._futures:
                future.result()
            self.compiler.write(path, self._compiled)


def _groups(builds: list[Build], threads: int) -> list[list[Build]]:
    """Builds of each run of nvcc, in the order of need.

    Where there are too few for :data:`MIN_RUNS_PER_CORE`, one run per core at most: a core's second
    run would take as long as its first.
    """
    size = len(builds) // (MIN_RUNS_PER_CORE * threads) or -(-len(builds) // threads)
    size = max(1, min(MAX_BUILDS_PER_RUN, size))
    return [builds[start : start + size] for start in range(0, len(builds), size)]
