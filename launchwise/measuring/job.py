"""What a measuring job needs before its first row: kernels and a card."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import commit, versions
from launchwise.experiment.method import peer_of
from launchwise.gpus.machine import Fastest
from launchwise.gpus.profile import LIKENESS_FACTS, GpuProfile
from launchwise.measuring.bundle import Bundle, Compiled
from launchwise.measuring.cards import Card, free_card
from launchwise.measuring.compile import Compiler, left_out
from launchwise.workloads.builds import Build
from launchwise.workloads.space import Configuration, Problem, gpu_facts
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

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


Hear = Callable[["Future[Part]"], None]


class Beforehand:
    """One bundle that the ``compile`` stage made."""

    seconds = 0.0  # Elapsed compile time, s

    def __init__(self, path: Path) -> None:
        self._part = Part(path, None)
        bundle = Bundle(path)
        self.toolkit, self.fingerprint = bundle.toolkit, bundle.fingerprint
        # Sources without a compiler, and what to install; programs beside nvcc that made builds.
        self.left_out, self.compilers = bundle.left_out, bundle.compilers

    def listen(self, hear: Hear) -> None:
        future: Future[Part] = Future()
        future.set_result(self._part)
        hear(future)

    def want(self, builds: Iterable[Build], likely: Iterable[Build] = ()) -> None:
        """Nothing is to be done: all are there."""

    def wait(self) -> None:
        """Nothing is waited for."""


class Alongside:
    """Compiles on every core while a sweep measures the kernels that are ready. A context manager:
    nvcc starts with the block; leaving it waits for the runs of nvcc in hand and drops the others.
    ``builds``: in the order in which they are needed; :meth:`want` adds to them. ``threads``: runs
    of nvcc at a time. One thread at a time may use it."""

    def __init__(
        self, folder: Path, spec: Spec, builds: Iterable[Build], arch: str, threads: int
    ) -> None:
        self.compiler = Compiler(folder, spec, arch)
        self.toolkit, self.fingerprint = self.compiler.toolkit, self.compiler.fingerprint
        self._seconds = 0.0  # during which something was compiled, up to :attr:`_began`
        self._first = list(dict.fromkeys(builds))
        self.left_out: Mapping[str, str] = left_out(self._first, arch)
        self.compilers: Mapping[str, str] = self.compiler.compilers
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        self._asked: set[Build] = set()
        self._futures: list[Future[Part]] = []
        self._likely: list[tuple[Future[Part], Build]] = []
        self._compiled: list[Compiled] = []
        self._hear: Hear = lambda _: None
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> Alongside:
        self._scratch = tempfile.TemporaryDirectory(prefix="launchwise-parts-")
        self.compiler.__enter__()
        self.want(self._first)
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self.compiler.__exit__(*error)
        self._scratch.cleanup()

    def want(self, builds: Iterable[Build], likely: Iterable[Build] = ()) -> None:
        """Compile ``builds`` that were not asked for before, then those that are ``likely`` to be
        wanted next, each by itself. Of what was no more than likely so far, what no core has begun
        is dropped."""
        for future, build in self._likely:
            if future.cancel():
                self._asked.discard(build)
        needed = self._new(builds)
        for group in _groups(needed, self._threads):
            self._begin(group)
        self._likely = [(self._begin([build]), build) for build in self._new(likely)]

    def _new(self, builds: Iterable[Build]) -> list[Build]:
        found = [build for build in dict.fromkeys(builds) if build not in self._asked]
        self._asked.update(found)
        return found

    def _begin(self, group: list[Build]) -> Future[Part]:
        path = Path(self._scratch.name) / f"{len(self._futures)}.cubins"
        future = self._pool.submit(self._compile, group, path)
        self._futures.append(future)
        future.add_done_callback(self._hear)
        return future

    def _compile(self, group: list[Build], path: Path) -> Part:
        with self._timed():
            compiled = self.compiler.compile(group)
        self._compiled.append(compiled)
        self.compiler.write(path, [compiled])
        return Part(path, frozenset(build.key for build in group))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        with self._lock:
            if not self._running:
                self._began = time.perf_counter()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self._seconds += time.perf_counter() - self._began

    @property
    def seconds(self) -> float:
        """Time in which something was compiled so far, s."""
        with self._lock:
            running = time.perf_counter() - self._began if self._running else 0.0
            return self._seconds + running

    def listen(self, hear: Hear) -> None:
        """Let ``hear`` know of every part, those of later builds, too, once it is compiled, cannot
        be, or was dropped; of one listener after another, each is told from the beginning."""
        self._hear = hear
        for future in self._futures:
            future.add_done_callback(hear)

    def wait(self) -> None:
        """Wait for all that was asked for. Raises UserError when one cannot be compiled."""
        for future in self._futures:
            if not future.cancelled():
                future.result()

    def write(self, path: Path) -> None:
        """Write one bundle of all builds, if there are any; waits for those in hand.
        Raises UserError when one cannot be compiled."""
        self.wait()
        if self._compiled:
            self.compiler.write(path, self._compiled)


Parts = Beforehand | Alongside  # Bundles of a sweep, in order of completion


def _groups(builds: list[Build], threads: int) -> list[list[Build]]:
    """Builds of each run of nvcc, in the order of need. Where there are too few for
    :data:`MIN_RUNS_PER_CORE`, one run per core at most: a core's second run would take as long as
    its first."""
    size = len(builds) // (MIN_RUNS_PER_CORE * threads) or -(-len(builds) // threads)
    size = max(1, min(MAX_BUILDS_PER_RUN, size))
    return [builds[start : start + size] for start in range(0, len(builds), size)]


log = logging.getLogger(__name__)


def builds_for(
    workload: Workload, asked: Iterable[tuple[Problem, Iterable[Configuration]]]
) -> dict[Build, None]:
    """Builds that configurations of problems need, in the order of need; libraries have none."""
    needed: dict[Build, None] = {}
    for problem, configurations in asked:
        needed |= dict.fromkeys(workload.check_builds(problem))
        own = (each for each in configurations if peer_of(each) is None)
        alike = {workload.spec.build_choice(each): each for each in own}
        needed |= dict.fromkeys(workload.build(problem, each) for each in alike.values())
    return needed


def compilable(spec: Spec, left_out: Mapping[str, str]) -> Spec:
    """``spec`` without the variants whose compiler is missing (``left_out``: sources to what must
    be installed); a warning names each. Raises UserError when the baseline is among them: nothing
    could be compared with it."""
    missing = {name: left_out.get(str(one.source)) for name, one in spec.variants.items()}
    if said := missing[str(spec.baseline["variant"])]:
        raise UserError(spec.workload, str(spec.baseline["variant"]), said)
    for name, said in missing.items():
        if said:
            log.warning("%s: variant %s is left out: %s", spec.workload, name, said)
    kept = [name for name, said in missing.items() if not said]
    return spec if len(kept) == len(missing) else spec.narrowed({"variant": kept})


def measuring_command(card: Card) -> dict[str, Any]:
    """Command and environment of a measuring process on ``card``."""
    return {
        "command": [sys.executable, "-m", "launchwise.cuda.child"],
        "environment": {**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
    }


@dataclass(frozen=True)
class Ready:
    """A job that can measure: its card, its kernels, and ``fields`` of its shard about both."""

    card: Card
    parts: Parts
    fields: Mapping[str, Any]


@contextmanager
def ready_job(
    bundle: Path | None,
    folder: Path,
    spec: Spec,
    builds: Callable[[], list[Build]],
    profile: GpuProfile,
    threads: int,
    slice_sms: int | None,
) -> Iterator[Ready]:
    """A free card of the profile's kind, or a slice of it, and kernels for it, for the block. Those
    of the ``bundle`` that the compile stage made; without one ``builds``, in the order of need, are
    compiled here on ``threads`` cores. Raises UserError when no such card is there, or kernels
    cannot be compiled."""
    kernels: AbstractContextManager[Parts] = (
        Alongside(folder, spec, builds(), profile.arch, threads)
        if bundle is None
        else nullcontext(Beforehand(bundle))
    )
    wanted = profile.device_name, profile.arch
    card_of_kind = free_card(
        profile.name,
        lambda card: (card.device_name, card.arch) == wanted,
        f"{profile.device_name} ({profile.arch})",
    )
    with kernels as parts, card_of_kind as card:
        yield Ready(card, parts, shard_fields(folder, spec, profile, card, parts, slice_sms))


def shard_fields(
    folder: Path,
    spec: Spec,
    profile: GpuProfile,
    card: Card,
    parts: Parts,
    slice_sms: int | None = None,
) -> dict[str, Any]:
    """Fields of a shard about its kernels, and about its card or the slice that it measures."""
    return {
        "spec": compilable(spec, parts.left_out),
        "folder": folder,
        "gpu_facts": gpu_facts(profile.model_dump()),
        "gpu": profile.model_dump(include={*LIKENESS_FACTS}),
        "labels": labels_of(spec, profile, card, parts.toolkit),
        "parts": parts,
        **measuring_command(card),
        "job": {
            "slice_sms": slice_sms,
            "expected_sms": profile.sms,
            "fastest": asdict(Fastest.of(profile)),
        },
    }


def labels_of(spec: Spec, profile: GpuProfile, card: Card, toolkit: str) -> dict[str, str]:
    """Columns that are the same in every row."""
    return {
        "gpu": profile.name,
        "workload": spec.workload,
        "card": card.mark,
        "driver": card.driver,
        "toolkit": toolkit,
        "backend": f"pycuda {versions().get('pycuda', '')}".strip(),
        "commit": commit(),
    }
