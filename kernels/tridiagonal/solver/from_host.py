"""Systems in host memory: copied to the first device and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .checks import NotDominant
from .solving import shape_of


def solve_host_arrays(
    system: Sequence[Any],
    x: Any,
    interleaved: bool,
    check: bool | str,
    check_dominance: bool,
    how: Mapping[str, Any],
) -> Any:
    """See :func:`.solve`; a sample is no cheaper here, so all rows are checked.

    Raises
    ------
    ValueError
        When an array is no array of the host, or the arrays do not fit each other.
    """
    arrays = [_on_host(name, each) for name, each in zip("abcd", system, strict=True)]
    shape_of(arrays[1].shape, arrays[1].dtype, interleaved)
    if check_dominance:
        insist_on_dominance(arrays, interleaved)
    # PyCUDA is needed for these alone.
    from ..host.opening import open_solver

    solver = open_solver()
    if not interleaved:
        a, b, c, d = arrays
        return solver.solve(a, b, c, d, x, check=bool(check), **how)
    a, b, c, d = (np.ascontiguousarray(each.T) for each in arrays)
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

    Parameters
    ----------
    system
        a, b, c and d, shape (n,) or (batch, n), or (n, batch) where interleaved.
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
