"""Host side of the tridiagonal workload: inputs, check, and how a configuration is run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from launchwise.measuring.measure import LaunchFailed
from launchwise.workloads.builds import Build
from launchwise.workloads.inputs import uniform
from launchwise.workloads.workload import (
    Device,
    Finding,
    HostRun,
    Launch,
    LaunchSequence,
    Runnable,
    Session,
    Workload,
    closed_on_error,
)

from .accuracy import allowed_error, backward_error
from .compiling import NoCompiler
from .host_solution import HostArrays, HostSolution, solution_with_host
from .launches import Arrays, DeviceSolution, build
from .plan import INNER_LAYOUTS, Choice
from .stage_times import EventClock, median_times

if TYPE_CHECKING:
    # Imported where it is used: how a library is called decides nothing about a sweep's rows.
    from .cusparse import Cusparse


def inputs(n: int, batch: int, dtype: str, seed: int) -> tuple[np.ndarray, ...]:
    """a, b, c and d of ``batch`` row-dominant systems, shape (n * batch,) each, in ``dtype``."""
    rows = n * batch
    row = np.arange(rows) % n
    a = np.where(row > 0, uniform(rows, seed), 0.0).astype(dtype)
    c = np.where(row < n - 1, uniform(rows, seed + 1), 0.0).astype(dtype)
    size = 1.1 * (np.abs(a.astype(float)) + np.abs(c.astype(float))) + 0.1
    b = np.where(uniform(rows, seed + 2) < 0, -size, size).astype(dtype)
    return a, b, c, uniform(rows, seed + 3).astype(dtype)


class Tridiagonal(Workload):
    """Tridiagonal systems, alone or in a batch, on the device or in host memory."""

    peers = ("cusparse",)

    def build(self, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> Build:
        return build(str(configuration["variant"]), np.dtype(str(problem["dtype"])))

    def check_builds(self, problem: Mapping[str, Any]) -> list[Build]:
        """The check's kernels, and those that levels below the outermost may need."""
        dtype = np.dtype(str(problem["dtype"]))
        return [
            *super().check_builds(problem),
            *(build(layout, dtype) for layout in ("finish", *INNER_LAYOUTS.values())),
        ]

    def layout(self, configuration: Mapping[str, Any]) -> Hashable:
        """Interleaved systems lie in another order for every m."""
        return configuration["m"] if configuration["variant"] == "interleaved" else 0

    def check_reference(self, device: Device, problem: Mapping[str, Any], seed: int) -> str:
        """Compare the device's inputs and backward error with NumPy's on a small batch."""
        dtype = str(problem["dtype"])
        small = {"n": 37, "batch": 3, "dtype": dtype, "memory": "device"}
        with closing(TridiagonalSession(self, device, small, 0, seed)) as session:
            expected = inputs(37, 3, dtype, session.seed)
            for array, buffer in zip(expected, session.system.each, strict=True):
                found = np.empty_like(array)
                device.download(buffer, found)
                if not np.array_equal(found, array):
                    return f"the device's inputs differ from NumPy's ({dtype})"
            x = uniform(111, seed).astype(dtype)
            device.upload(session.x, x)
            error, found_error = backward_error(expected, x), session.check().max_error
        if not np.isclose(error, found_error, rtol=1e-9):
            return f"the device's backward error is {found_error:.6g}, NumPy's {error:.6g}"
        return ""

    def open(
        self, device: Device, problem: Mapping[str, Any], layout: Hashable, seed: int
    ) -> TridiagonalSession:
        return TridiagonalSession(self, device, problem, int(str(layout)), seed)


class TridiagonalSession(Session):
    """One problem's system on the device, and in host memory where it belongs there.

    Parameters
    ----------
    interleaved_m
        m of the interleaved order that the system is stored in; 0 for natural order.
    """

    def __init__(
        self,
        workload: Tridiagonal,
        device: Device,
        problem: Mapping[str, Any],
        interleaved_m: int,
        seed: int,
    ) -> None:
        super().__init__(workload, device, problem, seed)
        self.dtype = np.dtype(str(problem["dtype"]))
        self.rows = int(problem["n"]) * int(problem["batch"])
        self.tolerance = allowed_error(self.dtype)
        # x is written after a, b, c and d were read.
        self.working_set_bytes = 5 * self.rows * self.dtype.itemsize
        self._m = interleaved_m
        self._solution: DeviceSolution | None = None
        self._host: HostArrays | None = None
        self._cusparse: Cusparse | None = None
        with closed_on_error(self):
            each = [self.memory.take(self.rows * self.dtype.itemsize) for _ in range(5)]
            self.system, self.x = Arrays(*each[:4]), each[4]
            self._found = self.memory.take(8)
            n = np.int64(int(problem["n"]))
            more = (np.int64(self.rows), n, np.int32(self._m), np.uint64(seed))
            self._run("fill", *self.system.each, *more)
            self._norm = self._largest("norm", *self.system.each[:3], np.int64(self.rows))
            self._right = self._largest("largest", self.system.d, np.int64(self.rows))
            if problem["memory"] != "device":
                self._host = self._in_host_memory(problem["memory"] == "pinned")

    def _in_host_memory(self, pinned: bool) -> HostArrays:
        found = HostArrays(*(self.host_array((self.rows,), self.dtype, pinned) for _ in range(5)))
        host = (found.a, found.b, found.c, found.d)
        for target, buffer in zip(host, self.system.each, strict=True):
            self.device.download(buffer, target)
        return found

    def _run(self, kernel: str, *arguments: Any) -> None:
        blocks = max(1, min(-(-self.rows // 256), 16 * self.device.sms))
        self.run_check(kernel, blocks, *arguments)

    def _largest(self, kernel: str, *arguments: Any) -> float:
        self.device.fill_bytes(self._found, 0)
        self._run(kernel, *arguments, self._found)
        found = np.empty(1)
        self.device.download(self._found, found)
        return float(found[0])

    def launch(self, configuration: Mapping[str, Any]) -> Runnable:
        self._forget()
        choice = Choice.of(configuration)
        solution = DeviceSolution(self.device, self.dtype, self.rows, choice)
        self._solution = solution
        if self._host is None and not choice.finish_on_host:
            return LaunchSequence(tuple(solution.launches(self.system, self.x)))
        try:
            return solution_with_host(solution, self.system, self.x, self._host, choice)
        except NoCompiler as error:
            # Other configurations need none.
            raise LaunchFailed(str(error), fatal=False) from error

    def peer(self, name: str) -> Cusparse:
        """See :meth:`launchwise.workloads.workload.Session.peer`: cuSPARSE, in device memory."""
        from .cusparse import Cusparse

        self._forget()
        if self._host is not None or self._m:
            raise LaunchFailed("cuSPARSE solves natural order in device memory", fatal=False)
        if self._cusparse is None:
            shape = int(self.problem["n"]), int(self.problem["batch"]), self.dtype.itemsize
            self._cusparse = Cusparse(self.memory, self.system, self.x, *shape)
        return self._cusparse

    def _forget(self) -> None:
        if self._solution is not None:
            self.device.synchronize()
            self._solution.close()
            self._solution = None

    def stages(self, work: Runnable) -> dict[str, float]:
        """See :meth:`launchwise.workloads.workload.Session.stages`: medians of several runs."""
        if isinstance(work, HostSolution):
            return work.staged()
        assert not isinstance(work, HostRun)
        launches = work.launches
        return median_times(lambda: self._staged_once(launches))

    def _staged_once(self, launches: tuple[Launch, ...]) -> dict[str, float]:
        clock = EventClock(self.device)
        *before, last = launches
        for launch in before:
            self.device.launch(launch)
            if launch is before[0]:
                clock.mark("t1_comp")
        if not before:
            # One block does it all.
            self.device.launch(last)
            clock.mark("t2_d")
            return clock.spent(("t2_d",))
        clock.mark("t2_d")
        self.device.launch(last)
        clock.mark("t3_comp")
        return clock.spent(("t1_comp", "t2_d", "t3_comp"))

    def poison(self) -> None:
        """Every bit set: a NaN."""
        self.device.fill_bytes(self.x, 0xFF)
        if self._host is not None:
            self._host.x.view(np.uint8)[:] = 0xFF

    def check(self) -> Finding:
        """See :meth:`launchwise.workloads.workload.Session.check`: the normwise backward error."""
        if self._host is not None:
            # What counts is what the host got, not what is still on the device.
            self.device.upload(self.x, self._host.x)
        rows = np.int64(self.rows)
        size = self._largest("largest", self.x, rows)
        rest = self._largest("residual", *self.system.each, self.x, rows, np.int32(self._m))
        error = rest / (self._norm * size + self._right)
        wrong = ""
        if size >= 1e300:
            wrong = "the solution is not finite, or not all of it was written"
            error = float("nan")
        elif not error <= self.tolerance:
            wrong = f"backward error {error:.3g} (allowed {self.tolerance:.3g})"
        return Finding(error, self.tolerance, wrong)

    def close(self) -> None:
        self._forget()
        if self._cusparse is not None:
            self._cusparse.close()
            self._cusparse = None
        super().close()
