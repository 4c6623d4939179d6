"""Plans: what solving one kind of problem on one stream needs, and the cache that keeps them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from launchwise.workloads.workload import OutOfMemory, closed_on_error

from ...calling.driver import Argument, Card, as_device
from ..host.launches import SCRATCH_LAYOUTS, Arrays, DeviceSolution
from ..host.plan import Choice, extra_words
from .checks import Checks, Shape
from .interleaved import InterleavedSolution, interleaved_words

MOST_PLANS = 32  # plans that a cache keeps; the one whose last use is longest ago goes first

MOST_BYTES = 2 << 30
"""Device memory that the plans of a cache keep together; the newest one may have more."""


class TooLittleMemory(MemoryError):
    """Solving needs more memory than the device has free."""


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
        """Queue the solution of the system at ``pointers`` (a, b, c, d, x); does not wait.

        Returns False when another thread has closed the plan: nothing was queued.
        """
        with self._lock:
            if self.closed:
                return False
            self._queue(pointers)
            return True

    def insist_on_dominance(self, pointers: tuple[int, ...]) -> bool:
        """See :meth:`.checks.Checks.insist_on_dominance`; False when the plan is closed."""
        with self._lock:
            if self.closed:
                return False
            self._own_checks().insist_on_dominance(pointers)
            return True

    def backward_error(self, pointers: tuple[int, ...], sample: bool) -> float | None:
        """See :meth:`.checks.Checks.backward_error`; None when the plan is closed."""
        with self._lock:
            return None if self.closed else self._own_checks().backward_error(pointers, sample)

    def _own_checks(self) -> Checks:
        if self._checks is None:
            self._checks = Checks(self.machine, self.shape, self.stream)
        return self._checks

    def close(self) -> None:
        """Give the memory back, once the device has done what is queued."""
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
        """The plan of ``key``, made from shape, choice and stream where there is none.

        Raises TooLittleMemory when its memory cannot be had, though no other plan keeps any.
        """
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
        """Close all plans: their memory is given back when the device has done its work."""
        with self._lock:
            self._forget()
