"""The Thomas algorithm, compiled by the C compiler of this machine (see ``thomas.c``)."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from .compiling import library

SOURCE = Path(__file__).with_suffix(".c")


def thomas(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> int:
    """Solve a row-dominant tridiagonal system in place, without pivoting.

    Parameters
    ----------
    a, b, c, d
        All float32 or all float64, contiguous, shape (rows,) each; a[0] and c[-1] are ignored.
        c is overwritten, and d by the solution.

    Returns
    -------
    0, or the number (from 1) of the row whose pivot is zero; then there is no solution.

    Raises
    ------
    ValueError
        When the arrays are not as above.
    NoCompiler
        See :func:`compiling.library`.
    """
    insist_on_a_system(a, b, c, d)
    function = getattr(library(SOURCE), f"thomas_{d.dtype.name}")
    function.argtypes = [ctypes.c_int64, *4 * [ctypes.c_void_p]]
    function.restype = ctypes.c_int64
    return int(function(len(d), *(each.ctypes.data for each in (a, b, c, d))))


def insist_on_a_system(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> None:
    """Raise ValueError unless C code can take the arrays: one type, one shape, contiguous."""
    arrays = (a, b, c, d)
    if any(each.dtype != d.dtype or each.shape != d.shape or each.ndim != 1 for each in arrays):
        raise ValueError("a, b, c and d must have one type and one shape (rows,)")
    if not len(d) or not all(each.flags.c_contiguous for each in arrays):
        raise ValueError("a, b, c and d must be contiguous and have one row at least")
