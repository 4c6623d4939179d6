"""Solves tridiagonal systems in device memory: choices, and the plan of a call, which it queues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from ...calling.arrays import Kind, Libraries, stream_handle
from ...calling.driver import Card
from ..host.accuracy import allowed_error
from ..host.interface_solvers import HOST_SOLVERS
from ..host.launches import LAYOUTS, MOST_FINISHING, most_shared_bytes, reduced_first
from ..host.plan import Choice, remaining_rows
from .plans import Plan, PlanCache, Shape, insist_on_accuracy

INNERMOST, ALONE, LAST_M = 2048, 1024, 8
"""Rows that are left to one block, unless somebody knows better; above ``ALONE`` each of its
threads reduces ``LAST_M`` of them first. That takes 48 KB of shared memory in float64, which all
cards have."""

INNER_M = 16

TYPES = ("float32", "float64")
USUAL = (
    (200_000, TYPES, 8, Choice("blockwise", (), threads=64)),
    (700_000, TYPES, 10, Choice("blockwise", (), threads=128)),
    (1_400_000, ("float32",), 20, Choice("blockwise", (), threads=128)),
    (None, TYPES, 20, Choice("staged", (), threads=64)),
)
"""Rows up to which it is used and types, m of the outermost level, and the rest."""


Problem = Mapping[str, Any]  # n, dtype, memory and batch, as the workload's spec names them


def usual_choice(problem: Problem) -> Choice:
    """A choice where nothing was measured: what an H200 wants, and m = 16 on inner levels. Levels
    are added until one block can finish."""
    rows = int(problem["n"]) * int(problem["batch"])
    choice, first = next(
        (choice, m)
        for most, types, m, choice in USUAL
        if (most is None or rows <= most) and str(problem["dtype"]) in types
    )
    while (left := remaining_rows(rows, choice.levels(rows))) > INNERMOST:
        choice = replace(choice, sizes=(*choice.sizes, INNER_M) if choice.sizes else (first,))
    return replace(choice, last_m=LAST_M if left > ALONE else 0)


def chosen(problem: Problem, how: Mapping[str, Any]) -> Choice:
    """The usual choice for a problem, but for the fields that a caller names in ``how``. Raises
    ValueError for a field or a value that does not exist, or does not fit the problem's memory."""
    if strange := sorted(set(how) - {each.name for each in fields(Choice)}):
        known = ", ".join(each.name for each in fields(Choice))
        raise ValueError(f"unknown argument {strange[0]!r} (a choice has: {known})")
    choice = replace(usual_choice(problem), **how)
    if choice.layout not in LAYOUTS:
        raise ValueError(f"unknown layout {choice.layout!r} (allowed: {', '.join(LAYOUTS)})")
    if choice.host_solver not in HOST_SOLVERS:
        known = ", ".join(HOST_SOLVERS)
        raise ValueError(f"unknown host_solver {choice.host_solver!r} (allowed: {known})")
    if choice.layout == "interleaved" and problem["memory"] != "device":
        raise ValueError("interleaved systems are solved where they lie, on the device")
    if choice.threads < 1 or choice.streams < 1:
        raise ValueError("threads and streams must be positive")
    return choice


def insist_on_fit(choice: Choice, rows: int, itemsize: int, shared_limit: int) -> None:
    """Raise ValueError when a block would need more threads or shared memory than it can have."""
    cuts = choice.levels(rows)
    left = remaining_rows(rows, cuts)
    m = reduced_first(left, choice.last_m)
    if m and left // m > MOST_FINISHING and not (choice.finish_on_host and cuts):
        raise ValueError(f"{choice} leaves {left} rows to one block: take more sizes")
    needed = most_shared_bytes(rows, choice, itemsize)
    if needed > shared_limit:
        message = f"needs {needed} bytes of shared memory a block, {shared_limit} are"
        raise ValueError(f"{choice} {message} there: take smaller or more sizes")


PER_THREAD_STREAM = 2  # handle that stands for another stream in every thread

Check = bool | Literal["sample"]


class DeviceSolver:
    """Solves systems whose arrays lie in device memory, from any thread.

    ``open_machine``: opens a device by its number, with the kernels at hand.
    ``locate``, ``wait``: see :class:`kernels.calling.arrays.InterfaceArrays`; ``wait`` takes a
    device's number and a stream.
    """

    def __init__(
        self,
        open_machine: Callable[[int], Card],
        locate: Callable[[int], int],
        wait: Callable[[int, int], None],
    ) -> None:
        self.libraries = Libraries(locate, wait)
        self.plans: dict[int, PlanCache] = {}
        self._machines: dict[int, Card] = {}
        self._open = open_machine
        self._lock = threading.Lock()

    def solve(
        self,
        a: Any,
        b: Any,
        c: Any,
        d: Any,
        x: Any = None,
        stream: Any = None,
        interleaved: bool = False,
        check: Check = False,
        check_dominance: bool = False,
        how: Mapping[str, Any] | None = None,
    ) -> Any:
        """Queue the solution of the system and return x; see :func:`.solve`."""
        library = self.libraries.of(b)
        handle = library.stream(b) if stream is None else stream_handle(stream)
        if handle == 1:
            handle = 0
        at_b, kind = library.read(b, "b", handle)
        if x is None:
            if len(kind[0]) not in (1, 2) or 0 in kind[0]:
                raise _unfit(kind[0], interleaved)
            x = library.empty_like(b, None if stream is None else handle)
        of = self.libraries.of
        at_a, kind_a = of(a).read(a, "a", handle)
        at_c, kind_c = of(c).read(c, "c", handle)
        at_d, kind_d = of(d).read(d, "d", handle)
        at_x, kind_x = of(x).read(x, "x", handle)
        if not (kind == kind_a == kind_c == kind_d == kind_x):
            raise _unlike(kind_a, kind, kind_c, kind_d, kind_x)
        pointers = (at_a, at_b, at_c, at_d, at_x)
        shape, dtype, device = kind
        thread = threading.get_ident() if handle == PER_THREAD_STREAM else 0
        options = tuple(sorted(how.items())) if how else ()
        key = (shape, dtype, handle, interleaved, thread, options)
        cache = self.plans.get(device) or self._cache(device)

        def facts() -> tuple[Shape, Choice | None, int]:
            return *self._facts(kind, interleaved, how or {}), handle

        while True:
            plan = cache.find(key, facts)
            if _overlapping(pointers, plan):
                raise ValueError("x may be d, but must not overlap a, b, c or a part of d")
            if check_dominance and not plan.insist_on_dominance(pointers):
                continue
            if plan.run(pointers):
                break
        if check:
            self._insist_on_accuracy(cache, key, facts, pointers, check == "sample")
        return x

    def _cache(self, device: int) -> PlanCache:
        with self._lock:
            if device not in self.plans:
                self._machines[device] = self._open(device)
                self.plans[device] = PlanCache(self._machines[device])
            return self.plans[device]

    def _facts(
        self, kind: Kind, interleaved: bool, how: Mapping[str, Any]
    ) -> tuple[Shape, Choice | None]:
        """Shape and choice of a problem. Raises ValueError when there is no such problem, or a
        named choice does not fit it or the device."""
        sizes, dtype, device = kind
        shape = shape_of(sizes, dtype, interleaved)
        if interleaved:
            if how:
                raise ValueError(f"{min(how)} is not for interleaved systems, which have one way")
            return shape, None
        choice = chosen(shape.problem("device"), how)
        if choice.finish_on_host or choice.streams != 1:
            raise ValueError("finish_on_host and streams are for systems in host memory")
        limit = self._machines[device].shared_limit
        insist_on_fit(choice, shape.rows, shape.dtype.itemsize, limit)
        return shape, choice

    def _insist_on_accuracy(
        self,
        cache: PlanCache,
        key: Any,
        facts: Callable[[], tuple[Shape, Choice | None, int]],
        pointers: tuple[int, ...],
        sample: bool,
    ) -> None:
        """Raise InaccurateSolution when the backward error is too large. A sample that looks bad is
        followed by all rows: a part of a system may have small entries."""
        while True:
            plan = cache.find(key, facts)
            error = plan.backward_error(pointers, sample)
            if error is None:
                continue
            if sample and not error <= allowed_error(plan.shape.dtype):
                sample = False
                continue
            return insist_on_accuracy(error, plan.shape.dtype)

    def clear(self) -> None:
        for cache in list(self.plans.values()):
            cache.clear()


def shape_of(sizes: tuple[int, ...], dtype: Any, interleaved: bool) -> Shape:
    """Shape of a problem from that of its arrays. Raises ValueError when no system has it."""
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"float32 or float64, not {dtype}")
    if len(sizes) not in (1, 2) or (interleaved and len(sizes) == 1) or 0 in sizes:
        raise _unfit(sizes, interleaved)
    batch, n = (1, sizes[0]) if len(sizes) == 1 else sizes
    if interleaved:
        n, batch = batch, n
    if n == 1:
        raise ValueError("systems of n = 1 row are no tridiagonal systems: divide d by b")
    return Shape(int(n), int(batch), np.dtype(dtype), interleaved)


def _unfit(sizes: tuple[int, ...], interleaved: bool) -> ValueError:
    wanted = "(n, batch)" if interleaved else "(n,) or (batch, n)"
    return ValueError(f"shape {wanted} with at least one system of 2 rows, not {tuple(sizes)}")


def _unlike(*kinds: Kind) -> ValueError:
    said = [f"{name} {dtype} {tuple(shape)} on device {device}"
            for name, (shape, dtype, device) in zip("abcdx", kinds, strict=True)]  # fmt: skip
    return ValueError(f"the arrays must be alike, not {', '.join(said)}")


def _overlapping(pointers: tuple[int, ...], plan: Plan) -> bool:
    a, b, c, d, x = pointers
    nbytes = plan.shape.rows * plan.shape.dtype.itemsize
    near = -nbytes
    return (
        near < x - a < nbytes
        or near < x - b < nbytes
        or near < x - c < nbytes
        or (x != d and near < x - d < nbytes)
    )
