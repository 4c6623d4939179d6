"""Solve tridiagonal systems from Python, on host or device arrays.

    from ..host import solve
    x = solve(a, b, c, d)

There is no pivoting: row-dominant systems (|b| >= |a| + |c| in every row) are safe, as are
symmetric positive definite ones; for others ask for a check.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.gpus.profile import GpuProfile
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import Allocations, Device

from .accuracy import InaccurateSolution, allowed_error, backward_error
from .host_solution import HostArrays
from .interface_solvers import HOST_SOLVERS
from .launches import (
    LAYOUTS,
    MOST_FINISHING,
    Arrays,
    DeviceSolution,
    most_shared_bytes,
    reduced_first,
)
from .overlapped import solution_with_host
from .plan import Choice, remaining_rows

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


Problem = Mapping[str, Any]
"""n, dtype, memory and batch, as the workload's spec names them."""


def usual_choice(problem: Problem) -> Choice:
    """A choice where nothing was measured: what an H200 wants, and m = 16 on inner levels.

    Levels are added until one block can finish.
    """
    rows = int(problem["n"]) * int(problem["batch"])
    choice, first = next(
        (choice, m)
        for most, types, m, choice in USUAL
        if (most is None or rows <= most) and str(problem["dtype"]) in types
    )
    while (left := remaining_rows(rows, choice.levels(rows))) > INNERMOST:
        choice = replace(choice, sizes=(*choice.sizes, INNER_M) if choice.sizes else (first,))
    return replace(choice, last_m=LAST_M if left > ALONE else 0)


def recommended(model: Path, folder: Path, profile: GpuProfile) -> Callable[[Problem], Choice]:
    """Choices of a study's fitted model.

    Parameters
    ----------
    model
        A study's product (``results/final/<study>``).
    folder
        The workload's.
    profile
        The GPU that solves; it need not be one that the model learnt from.
    """
    # Models bring large libraries with them, which other callers need not wait for.
    from launchwise.learning.features import Domain
    from launchwise.learning.guesses import recommended_guesses

    domain = Domain(load_spec(folder), {profile.name: profile})

    def choose(problem: Problem) -> Choice:
        found = recommended_guesses(model, domain, profile.name, dict(problem), 1)
        return Choice.of(found[0]) if found else usual_choice(problem)

    return choose


def chosen(choose: Callable[[Problem], Choice], problem: Problem, how: Mapping[str, Any]) -> Choice:
    """A choice for a problem, with the fields that a caller names in ``how``.

    Raises
    ------
    ValueError
        For a field or a value that does not exist, or does not fit the problem's memory.
    """
    if strange := sorted(set(how) - {each.name for each in fields(Choice)}):
        known = ", ".join(each.name for each in fields(Choice))
        raise ValueError(f"unknown argument {strange[0]!r} (a choice has: {known})")
    choice = replace(choose(problem), **how)
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


class DeviceArray:
    """Somebody else's memory on the device, by its ``__cuda_array_interface__`` (version 2 or 3).

    Raises
    ------
    ValueError
        When it is not contiguous.
    """

    def __init__(self, array: Any) -> None:
        facts = array.__cuda_array_interface__
        if facts.get("strides") is not None:
            raise ValueError("device arrays must be contiguous")
        self.shape = tuple(facts["shape"])
        self.dtype = np.dtype(facts["typestr"])
        self.allocation = int(facts["data"][0])
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize


class Solver:
    """Solves systems on one device; keeps the memory of the last one for the next of its kind.

    Parameters
    ----------
    device
        With the workload's kernels at hand.
    choose
        What is done where a call leaves it open: a recommender's choice, or :func:`usual_choice`.
    shared_limit
        Shared memory that a block may have, bytes.
    """

    def __init__(
        self,
        device: Device,
        choose: Callable[[Problem], Choice] = usual_choice,
        shared_limit: int = 48 * 1024,
    ) -> None:
        self.device = device
        self._choose = choose
        self._shared_limit = shared_limit
        self._kept: tuple[Any, DeviceSolution] | None = None

    def solve(
        self, a: Any, b: Any, c: Any, d: Any, x: Any = None, *, check: bool = False, **how: Any
    ) -> Any:
        """The solution of one system, or of a batch of them.

        Parameters
        ----------
        a, b, c, d
            Below, on and above the diagonal, and the right-hand side: float32 or float64, shape
            (n,) or (batch, n), all alike, NumPy arrays or arrays on the device with
            ``__cuda_array_interface__``. a[..., 0] and c[..., -1] are not looked at, except in a
            batch on the device, where they must be zero.
        x
            Where the solution goes; made when left out.
        check
            Whether the backward error is computed and held to 10 eps (on the host).
        how
            Fields of :class:`Choice` that are not to be chosen.

        Returns
        -------
        x, of the kind and shape of ``b``.

        Raises
        ------
        ValueError
            When the arrays do not fit each other, or the choice does not fit the system or device.
        InaccurateSolution
            When ``check`` finds the error too large.
        """
        if hasattr(b, "__cuda_array_interface__"):
            return self._on_device(a, b, c, d, x, check, how)
        arrays = [np.ascontiguousarray(each) for each in (a, b, c, d)]
        problem = _problem([each.shape for each in arrays], [each.dtype for each in arrays])
        found = np.empty_like(arrays[1]) if x is None else x
        if found.shape != arrays[1].shape or found.dtype != arrays[1].dtype:
            raise ValueError(f"x is {found.dtype} {found.shape}, b {b.dtype} {b.shape}")
        if not found.flags.c_contiguous:
            raise ValueError("x must be contiguous")
        if problem["batch"] > 1:
            arrays[0], arrays[2] = arrays[0].copy(), arrays[2].copy()
            arrays[0][:, 0] = arrays[2][:, -1] = 0
        flat = [each.reshape(-1) for each in arrays]
        self._from_host(flat, found.reshape(-1), problem, how)
        if check:
            _insist(flat, found.reshape(-1))
        return found

    def solution(self, problem: Problem, choice: Choice) -> DeviceSolution:
        """Solver for such problems and choices: the kept one if it fits, else a new one.

        Raises
        ------
        ValueError
            When a block would need more than the device gives.
        """
        dtype = np.dtype(problem["dtype"])
        rows = int(problem["n"]) * int(problem["batch"])
        key = (dtype.name, rows, choice)
        if self._kept is not None and self._kept[0] == key:
            return self._kept[1]
        insist_on_fit(choice, rows, dtype.itemsize, self._shared_limit)
        self.close()
        found = DeviceSolution.chosen(self.device, dtype, rows, choice)
        self._kept = key, found
        return found

    def close(self) -> None:
        """Give the memory that is kept for the next call back."""
        if self._kept is not None:
            self.device.synchronize()
            self._kept[1].close()
            self._kept = None

    def _from_host(
        self, flat: list[np.ndarray], x: np.ndarray, problem: Problem, how: Mapping[str, Any]
    ) -> None:
        choice = chosen(self._choose, problem, how)
        solution = self.solution(problem, choice)
        device = self.device
        memory = Allocations(device)
        try:
            buffers = [memory.take(each.nbytes) for each in (*flat, x)]
            system, place = Arrays(*buffers[:4]), buffers[4]
            if solution.cuts:
                host = HostArrays(flat[0], flat[1], flat[2], flat[3], x)
                solution_with_host(solution, system, place, host, choice).run()
                return
            for buffer, each in zip(system.each, flat, strict=True):
                device.upload(buffer, each)
            for launch in solution.launches(system, place):
                device.launch(launch)
            device.download(place, x)
        finally:
            device.synchronize()
            memory.release()

    def _on_device(
        self, a: Any, b: Any, c: Any, d: Any, x: Any, check: bool, how: Mapping[str, Any]
    ) -> Any:
        if x is None:
            # The library that made b makes its like: CuPy and PyTorch both have this.
            x = sys.modules[type(b).__module__.split(".")[0]].empty_like(b)
        each = [DeviceArray(array) for array in (a, b, c, d, x)]
        problem = {
            **_problem([array.shape for array in each], [array.dtype for array in each]),
            "memory": "device",
        }
        choice = chosen(self._choose, problem, how)
        solution = self.solution(problem, choice)
        system, place = Arrays(*each[:4]), each[4]
        if choice.finish_on_host and solution.cuts:
            alone = replace(choice, streams=1)
            solution_with_host(solution, system, place, None, alone).run()
        else:
            for launch in solution.launches(system, place):
                self.device.launch(launch)
        if check:
            arrays = [np.empty(array.shape, array.dtype).reshape(-1) for array in each]
            for buffer, array in zip(each, arrays, strict=True):
                self.device.download(buffer, array)
            # What was asked for: systems of their own, whatever stands between them.
            arrays[0][:: problem["n"]] = 0
            arrays[2][problem["n"] - 1 :: problem["n"]] = 0
            _insist(arrays[:4], arrays[4])
        return x


def _problem(shapes: list[Any], dtypes: list[Any]) -> dict[str, Any]:
    """n, dtype, memory and batch of host arrays; ValueError when they are not alike."""
    if len(set(shapes)) > 1 or len({np.dtype(each) for each in dtypes}) > 1:
        alike = ", ".join(f"{np.dtype(t)} {s}" for t, s in zip(dtypes, shapes, strict=True))
        raise ValueError(f"the arrays must be alike, not {alike}")
    if dtypes[0] not in (np.float32, np.float64):
        raise ValueError(f"float32 or float64, not {np.dtype(dtypes[0])}")
    if len(shapes[0]) not in (1, 2) or 0 in shapes[0]:
        raise ValueError(f"shape (n,) or (batch, n), not {tuple(shapes[0])}")
    n = shapes[0][-1]
    batch = shapes[0][0] if len(shapes[0]) == 2 else 1
    return {"n": n, "dtype": np.dtype(dtypes[0]).name, "memory": "pageable", "batch": batch}


def _insist(system: list[np.ndarray], x: np.ndarray) -> None:
    error, allowed = backward_error(system, x), allowed_error(x.dtype)
    if not error <= allowed:
        message = f"backward error {error:.3g} (allowed {allowed:.3g}): is it row-dominant?"
        raise InaccurateSolution(message)
