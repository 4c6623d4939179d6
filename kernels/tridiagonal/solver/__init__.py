"""Tridiagonal systems solved from Python, as a library function."""

from __future__ import annotations

import functools
from typing import Any

from ...calling.driver import CudaError, TooLittleMemory
from ..host.accuracy import InaccurateSolution
from .plans import MOST_BYTES, MOST_PLANS, NotDominant
from .solving import Check, DeviceSolver

__all__ = [
    "MOST_BYTES",
    "MOST_PLANS",
    "Check",
    "CudaError",
    "InaccurateSolution",
    "NotDominant",
    "TooLittleMemory",
    "clear_plans",
    "solve",
]


def solve(
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    x: Any = None,
    *,
    stream: Any = None,
    interleaved: bool = False,
    check: Check = False,
    check_dominance: bool = False,
    **how: Any,
) -> Any:
    """Solve a_i x_(i-1) + b_i x_i + c_i x_(i+1) = d_i, alone or in a batch, without pivoting.

    Arrays on a device are solved there, on the caller's current stream, without waiting. The first
    call of a shape prepares a plan, which later calls reuse; any thread may call.

    ``a``, ``b``, ``c``, ``d``: below, on and above the diagonal, and the right-hand side: float32
    or float64, contiguous, shape (n,) or (batch, n), n >= 2, all alike. CuPy, PyTorch,
    ``__cuda_array_interface__`` or DLPack; NumPy arrays are copied to the first device and back.
    a[..., 0] and c[..., -1] do not count, except in a batch on the device, where they must be zero.
    ``x``: where the solution goes; made when left out. It may be ``d`` itself.
    ``stream``: a stream, or its handle, instead of the current one of the library that ``b``
    belongs to.
    ``interleaved``: arrays have the shape (n, batch): row i of all systems lies together. Their
    a[0] and c[-1] do not count.
    ``check``: compute the backward error and hold it to 10 eps: True looks at all rows,
    ``"sample"`` at one of 16. Waits for the solution.
    ``check_dominance``: hold the system to |b| >= |a| + |c| and b != 0 in every row before it is
    solved. Waits.
    ``how``: fields of :class:`..host.plan.Choice` that are not to be chosen.
    Returns x, of the kind and shape of ``b``.
    Raises ValueError when the arrays do not fit each other, or a named choice does not fit the
    system or device; NotDominant when ``check_dominance`` finds a row; InaccurateSolution when
    ``check`` finds the error too large; TooLittleMemory with the memory that solving needs beside
    the arrays; UserError without a GPU, without nvcc, or for an architecture that nvcc does not
    know; CudaError when the driver reports an error, also of earlier work on the device.
    """
    solver = _solver()
    if solver.libraries.of(b) is solver.libraries.host:
        from .from_host import solve_host_arrays

        if stream is not None:
            raise ValueError("stream= is for arrays on a device")
        return solve_host_arrays((a, b, c, d), x, interleaved, check, check_dominance, how)
    return solver.solve(a, b, c, d, x, stream, interleaved, check, check_dominance, how)


def clear_plans() -> None:
    """Give the device memory of all plans back, once the device has done its work."""
    _solver().clear()


@functools.cache
def _solver() -> DeviceSolver:
    """The solver of this process; opens a device when the first array on it comes."""
    from .opening import located, open_card, wait_for

    return DeviceSolver(open_card, located, wait_for)
