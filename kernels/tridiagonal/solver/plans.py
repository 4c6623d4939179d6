"""Plans: what solving one kind of problem on one stream needs, its checks, and their cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.workload import Allocations, Launch, OutOfMemory, closed_on_error

from ...calling.driver import Argument, Card, TooLittleMemory, as_device
from ..host.accuracy import InaccurateSolution, allowed_error
from ..host.launches import SCRATCH_LAYOUTS, Arrays, DeviceSolution
from ..host.plan import Choice, extra_words
from .interleaved import InterleavedSolution, interleaved_words

SOURCE = "solver/checks.cu"

THREADS = 256
BLOCKS_PER_SM = 16

PIECE = 64  # neighbouring rows of a sample
SAMPLED = 16  # a sample holds one piece out of so many

NO_ROW = np.iinfo(np.uint64).max


class NotDominant(ValueError):
    """A system that was asked to be row-dominant is not."""


@dataclass(frozen=True)
class Shape:
    """Systems of a batch; row i of system k lies at i * batch + k where they are interleaved."""

    n: int
    batch: int
    dtype: np.dtype[Any]
    interleaved: bool

    @property
    def rows(self) -> int:
        return self.n * self.batch

    @property
    def step(self) -> int:
        """Words from one row of a system to the next."""
        return self.batch if self.interleaved else 1

    def problem(self, memory: str) -> dict[str, Any]:
        return {"n": self.n, "batch": self.batch, "dtype": self.dtype.name, "memory": memory}

    def row(self, at: int) -> str:
        """Name of the row that a word belongs to."""
        if self.batch == 1:
            return f"row {at}"
        system, row = divmod(at, self.n)
        if self.interleaved:
            row, system = divmod(at, self.batch)
        return f"row {row} of system {system}"


def insist_on_accuracy(error: float, dtype: np.dtype[Any]) -> None:
    """Raise InaccurateSolution when the backward error of a solution is too large."""
    allowed = allowed_error(dtype)
    if not error <= allowed:
        message = f"backward error {error:.3g} (allowed {allowed:.3g}): is it row-dominant?"
        raise InaccurateSolution(message)


class Checks:
    """Checks of systems of one shape on one stream."""

    def __init__(self, machine: Card, shape: Shape, stream: int) -> None:
        self._machine = machine
        self._shape = shape
        self._stream = stream
        self._memory = Allocations(as_device(machine))
        self._found = self._memory.take(5 * 8)
        nbytes = shape.rows * shape.dtype.itemsize
        self._arrays = [Argument(number, nbytes) for number in range(5)]
        self._dominance = machine.prepared([self._dominance_launch()], stream)
        self._residuals = {
            every: machine.prepared([self._residual_launch(every)], stream)
            for every in (1, SAMPLED)
        }
        self._drawn = 0

    def _launch(self, kernel: str, threads: int, arguments: tuple[Any, ...]) -> Launch:
        blocks = max(1, min(-(-threads // THREADS), BLOCKS_PER_SM * self._machine.sms))
        build = Build.of(SOURCE, real_macro(self._shape.dtype.name))
        return Launch(build, kernel, (blocks, 1, 1), (THREADS, 1, 1), arguments)

    def _sizes(self) -> tuple[Any, ...]:
        shape = self._shape
        return np.int64(shape.rows), np.int64(shape.n), np.int64(shape.step)

    def _dominance_launch(self) -> Launch:
        arguments = (*self._arrays[:3], *self._sizes(), self._found)
        return self._launch("dominance", self._shape.rows, arguments)

    def _residual_launch(self, every: int) -> Launch:
        sampled = PIECE * -(-self._shape.rows // (PIECE * every))
        more = np.int64(sampled), np.int32(every), self._found
        return self._launch("residual", sampled, (*self._arrays, *self._sizes(), *more))

    def insist_on_dominance(self, pointers: tuple[int, ...]) -> None:
        """Wait for an answer: |b| >= |a| + |c| and b != 0 in every row. Raises NotDominant with the
        number of rows that are not, and the first of them; also for a batch of systems one behind
        the other that are coupled."""
        found = np.array([0, NO_ROW, 0, 0, 0], np.uint64)
        self._machine.write(self._found, found, self._stream)
        self._dominance(pointers)
        self._machine.read(self._found, found, self._stream)
        weak, first, coupled = (int(each) for each in found[:3])
        if weak:
            which = f"{weak} of {self._shape.rows} rows, the first is {self._shape.row(first)}"
            raise NotDominant(f"|b| < |a| + |c| or b = 0 in {which}")
        if coupled:
            message = "a[..., 0] and c[..., -1] of a batch must be zero"
            raise NotDominant(f"{message}: {coupled} of {2 * self._shape.batch} are not")

    def backward_error(self, pointers: tuple[int, ...], sample: bool) -> float:
        """Wait for max |d - A x| / (|A| |x| + |d|) in the infinity norm, computed in float64.

        ``pointers``: of a, b, c, d and x.
        ``sample``: look at one of :data:`SAMPLED` pieces of :data:`PIECE` rows each, others every
        time.
        Returns infinity where the solution is not finite.
        """
        self._drawn += 1
        found = np.zeros(5, np.uint64)
        found[4] = self._drawn % 2**32
        self._machine.write(self._found, found, self._stream)
        self._residuals[SAMPLED if sample else 1](pointers)
        self._machine.read(self._found, found, self._stream)
        rest, norm, solution, right = (float(each) for each in found[:4].view(np.float64))
        if max(rest, solution) >= 1e300:
            return float("inf")
        size = norm * solution + right
        return rest / size if size > 0 else rest

    def close(self) -> None:
        for each in (self._dominance, *self._residuals.values()):
            each.close()
        self._memory.release()


MOST_PLANS = 32  # plans that a cache keeps; the one whose last use is longest ago goes first

MOST_BYTES = 2 << 30
"""Device memory that the plans of a cache keep together; the newest one may have more."""


class Plan:
    """Choice, memory and prepared launches of problems of one shape on one stream.

    Its memory is used by one stream alone, whose work runs in order; threads that use the same
    stream take turns.

    ``choice``: None for interleaved systems.
    ``stream``: handle.
    Raises OutOfMemory when the memory of :func:`needed_bytes` cannot be had.
    """

    def __init__(self, machine: Card, shape: Shape, choice: Choice | None, stream: int) -> None:
        self.machine = machine
        self.shape = shape
        self.choice = choice
        self.stream = stream
        self.nbytes = needed_bytes(shape, choice)
        self.closed = False
        self._lock = threading.Lock()
        self._checks: Checks | None = None
        caller = [Argument(each, shape.rows * shape.dtype.itemsize) for each in range(5)]
        self._solution: DeviceSolution | InterleavedSolution
        if choice is None:
            self._solution = InterleavedSolution(machine, shape.dtype, shape.n, shape.batch)
        else:
            self._solution = DeviceSolution(as_device(machine), shape.dtype, shape.rows, choice)
        with closed_on_error(self._solution):
            launches = self._solution.launches(Arrays(*caller[:4]), caller[4])
            self._queue = machine.prepared(launches, stream)

    def run(self, pointers: tuple[int, ...]) -> bool:
        """Queue the solution of the system at ``pointers`` (a, b, c, d, x); does not wait. Returns
        False when another thread has closed the plan: nothing was queued."""
        with self._lock:
            if self.closed:
                return False
            self._queue(pointers)
            return True

    def insist_on_dominance(self, pointers: tuple[int, ...]) -> bool:
        """See :meth:`Checks.insist_on_dominance`; False when the plan is closed."""
        with self._lock:
            if self.closed:
                return False
            self._own_checks().insist_on_dominance(pointers)
            return True

    def backward_error(self, pointers: tuple[int, ...], sample: bool) -> float | None:
        """See :meth:`Checks.backward_error`; None when the plan is closed."""
        with self._lock:
            return None if self.closed else self._own_checks().backward_error(pointers, sample)

    def _own_checks(self) -> Checks:
        if self._checks is None:
            self._checks = Checks(self.machine, self.shape, self.stream)
        return self._checks

    def close(self) -> None:
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self.machine.settle()
            self._queue.close()
            self._solution.close()
            if self._checks is not None:
                self._checks.close()


def needed_bytes(shape: Shape, choice: Choice | None) -> int:
    """Device memory of a plan, beside the arrays of the caller."""
    if choice is None:
        return interleaved_words(shape.n, shape.batch) * shape.dtype.itemsize
    cuts = choice.levels(shape.rows)
    scratch = shape.rows if cuts and choice.layout in SCRATCH_LAYOUTS else 0
    return (extra_words(cuts) + scratch) * shape.dtype.itemsize


class PlanCache:
    """The plans of one device, bounded by :data:`MOST_PLANS` and :data:`MOST_BYTES`."""

    def __init__(
        self, machine: Card, most_plans: int = MOST_PLANS, most_bytes: int = MOST_BYTES
    ) -> None:
        self._machine = machine
        self._most_plans = most_plans
        self._most_bytes = most_bytes
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._plans)

    def find(self, key: Hashable, facts: Callable[[], tuple[Shape, Choice | None, int]]) -> Plan:
        """The plan of ``key``, made from shape, choice and stream where there is none. Raises
        TooLittleMemory when its memory cannot be had, though no other plan keeps any."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
            plan = self._made(*facts())
            self._plans[key] = plan
            while self._too_much():
                self._plans.popitem(last=False)[1].close()
            return plan

    def _made(self, shape: Shape, choice: Choice | None, stream: int) -> Plan:
        try:
            return Plan(self._machine, shape, choice, stream)
        except OutOfMemory:
            self._forget()
        try:
            return Plan(self._machine, shape, choice, stream)
        except OutOfMemory:
            needed, free = needed_bytes(shape, choice), self._machine.free_memory()
            raise TooLittleMemory(
                f"{self._machine.name} has {free} bytes free, solving needs {needed} bytes "
                "beside the arrays"
            ) from None

    def _too_much(self) -> bool:
        kept = sum(plan.nbytes for plan in self._plans.values())
        return len(self._plans) > 1 and (
            len(self._plans) > self._most_plans or kept > self._most_bytes
        )

    def _forget(self) -> None:
        while self._plans:
            self._plans.popitem()[1].close()

    def clear(self) -> None:
        with self._lock:
            self._forget()
