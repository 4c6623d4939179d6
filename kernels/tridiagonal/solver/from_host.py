"""Systems in host memory: copied to the first device and back."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from launchwise.workloads.workload import Allocations, Device

from ..host.accuracy import backward_error
from ..host.host_solution import HostArrays, solution_with_host
from ..host.launches import Arrays, DeviceSolution
from ..host.plan import Choice
from .plans import NotDominant, Shape, insist_on_accuracy
from .solving import chosen, insist_on_fit, shape_of


class HostSolver:
    """Solves systems in host memory; keeps device memory of the last one for the next of its kind.

    ``device``: with the workload's kernels at hand.
    ``shared_limit``: shared memory that a block may have, bytes.
    """

    def __init__(self, device: Device, shared_limit: int = 48 * 1024) -> None:
        self.device = device
        self._shared_limit = shared_limit
        self._kept: tuple[Any, DeviceSolution] | None = None

    def solve(
        self, a: Any, b: Any, c: Any, d: Any, x: Any = None, *, check: bool = False, **how: Any
    ) -> np.ndarray:
        """The solution of one system or of a batch; see :func:`.solve`."""
        arrays = [np.ascontiguousarray(each) for each in (a, b, c, d)]
        kinds = [f"{each.dtype} {each.shape}" for each in arrays]
        if len(set(kinds)) > 1:
            raise ValueError(f"the arrays must be alike, not {', '.join(kinds)}")
        shape = shape_of(arrays[1].shape, arrays[1].dtype, False)
        found: np.ndarray = np.empty_like(arrays[1]) if x is None else x
        if f"{found.dtype} {found.shape}" != kinds[1]:
            raise ValueError(f"x is {found.dtype} {found.shape}, b {kinds[1]}")
        if not found.flags.c_contiguous:
            raise ValueError("x must be contiguous")
        if shape.batch > 1:
            arrays[0], arrays[2] = arrays[0].copy(), arrays[2].copy()
            arrays[0][:, 0] = arrays[2][:, -1] = 0
        host = HostArrays(*(each.reshape(-1) for each in (*arrays, found)))
        self._run(host, shape, chosen(shape.problem("pageable"), how))
        if check:
            system = (host.a, host.b, host.c, host.d)
            insist_on_accuracy(backward_error(system, host.x), shape.dtype)
        return found

    def solution(self, shape: Shape, choice: Choice) -> DeviceSolution:
        """Solver for such problems and choices: the kept one if it fits, else a new one. Raises
        ValueError when a block would need more than the device gives."""
        key = (shape.dtype.name, shape.rows, choice)
        if self._kept is None or self._kept[0] != key:
            insist_on_fit(choice, shape.rows, shape.dtype.itemsize, self._shared_limit)
            self.close()
            found = DeviceSolution(self.device, shape.dtype, shape.rows, choice)
            self._kept = key, found
        return self._kept[1]

    def close(self) -> None:
        if self._kept is not None:
            self.device.synchronize()
            self._kept[1].close()
            self._kept = None

    def _run(self, host: HostArrays, shape: Shape, choice: Choice) -> None:
        solution, device = self.solution(shape, choice), self.device
        memory = Allocations(device)
        try:
            buffers = [memory.take(host.x.nbytes) for _ in range(5)]
            system, place = Arrays(*buffers[:4]), buffers[4]
            if solution.cuts:
                solution_with_host(solution, system, place, host, choice).run()
                return
            for buffer, each in zip(buffers, (host.a, host.b, host.c, host.d), strict=False):
                device.upload(buffer, each)
            for launch in solution.launches(system, place):
                device.launch(launch)
            device.download(place, host.x)
        finally:
            device.synchronize()
            memory.release()


@functools.cache
def open_host_solver() -> HostSolver:
    """A solver on the first visible device, in its primary context, as other libraries use it."""
    # PyCUDA is needed for systems in host memory alone.
    import pycuda.driver as cuda

    from launchwise.cuda.device import CudaDevice

    from .opening import kernels

    device = CudaDevice()
    # PyCUDA ends a process with an error when one of its contexts is still in use.
    atexit.register(device.close)
    capability = device.device.compute_capability()
    device.add_bundle(kernels("sm_{}{}".format(*capability)))
    limit = cuda.device_attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    solver = HostSolver(device, int(device.device.get_attributes()[limit]))
    atexit.register(solver.close)
    return solver


def solve_host_arrays(
    system: Sequence[Any],
    x: Any,
    interleaved: bool,
    check: bool | str,
    check_dominance: bool,
    how: Mapping[str, Any],
) -> Any:
    """See :func:`.solve`; a sample is no cheaper here, so all rows are checked. Raises ValueError
    when an array is no array of the host, or the arrays do not fit each other."""
    arrays = [_on_host(name, each) for name, each in zip("abcd", system, strict=True)]
    shape_of(arrays[1].shape, arrays[1].dtype, interleaved)
    if check_dominance:
        insist_on_dominance(arrays, interleaved)
    solver = open_host_solver()
    if not interleaved:
        a, b, c, d = arrays
        return solver.solve(a, b, c, d, x, check=bool(check), **how)
    a, b, c, d = (each.T for each in arrays)
    found = solver.solve(a, b, c, d, check=bool(check), **how).T
    if x is None:
        return np.ascontiguousarray(found)
    if x.shape != found.shape or x.dtype != found.dtype:
        raise ValueError(f"x is {x.dtype} {x.shape}, b {found.dtype} {found.shape}")
    x[...] = found
    return x


def _on_host(name: str, array: Any) -> np.ndarray:
    if hasattr(array, "__cuda_array_interface__"):
        raise ValueError(f"{name} is on a device, b is in host memory")
    return np.ascontiguousarray(array)


def insist_on_dominance(system: Sequence[np.ndarray], interleaved: bool) -> None:
    """Raise NotDominant when |b| < |a| + |c| or b = 0 in a row.

    ``system``: a, b, c and d, shape (n,) or (batch, n), or (n, batch) where interleaved.
    """
    a, b, c = (abs(each.astype(float)) for each in system[:3])
    rows = 0 if interleaved else -1
    np.moveaxis(a, rows, 0)[0] = 0
    np.moveaxis(c, rows, 0)[-1] = 0
    weak = ~(b >= a + c) | (b == 0)
    if weak.any():
        first = tuple(int(each) for each in np.argwhere(weak)[0])
        row, *number = first if interleaved else first[::-1]
        where = f"row {row}" + (f" of system {number[0]}" if number else "")
        which = f"{int(weak.sum())} of {weak.size} rows, the first is {where}"
        raise NotDominant(f"|b| < |a| + |c| or b = 0 in {which}")
