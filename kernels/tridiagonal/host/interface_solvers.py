"""Who solves an interface system on the host: LAPACK, the Thomas algorithm, or all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from .compiling import library
from .cores import PartitionedSystem, partition
from .thomas import SOURCE as THOMAS
from .thomas import thomas


class SingularSystem(ValueError):
    """The interface system has no solution."""


def solve_on_host(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Solve a tridiagonal system with LAPACK's gtsv (elimination with partial pivoting).

    Parameters
    ----------
    a, b, c, d
        float32 or float64, shape (rows,) each; a[0] and c[-1] are not looked at. Overwritten.

    Returns
    -------
    Shape (rows,).

    Raises
    ------
    SingularSystem
        When a pivot is zero.
    """
    if len(b) == 1:
        if b[0] == 0:
            raise SingularSystem("row 1 of 1 of the interface system has a zero pivot")
        return d / b
    (gtsv,) = get_lapack_funcs(("gtsv",), (b, d))
    *_, x, info = gtsv(a[1:], b, c[:-1], d, True, True, True, True)
    if info:
        raise SingularSystem(f"row {info} of {len(b)} of the interface system has a zero pivot")
    return np.asarray(x).reshape(-1)


def solve_by_thomas(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Solve a row-dominant tridiagonal system by the Thomas algorithm (no pivoting).

    As :func:`solve_on_host`; d takes the solution.

    Raises
    ------
    SingularSystem
        When a pivot is zero.
    """
    if row := thomas(a, b, c, d):
        raise SingularSystem(f"row {row} of {len(b)} of the interface system has a zero pivot")
    return d


def solve_on_cores(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Solve a row-dominant tridiagonal system by the partition method on all cores (no pivoting).

    As :func:`solve_by_thomas`.

    Raises
    ------
    SingularSystem
        When a pivot is zero.
    """
    if len(d) == 1:
        return solve_by_thomas(a, b, c, d)
    whole = PartitionedSystem((a, b, c, d), [slice(0, len(d))])
    with pivots_of(len(d)):
        whole.reduce(0)
        whole.solve_ends()
        whole.substitute(0)
    return d


@contextmanager
def pivots_of(rows: int) -> Iterator[None]:
    """A zero pivot in the block is a :class:`SingularSystem` of so many rows."""
    try:
        yield
    except ZeroDivisionError as error:
        raise SingularSystem(f"{error} in the interface system of {rows} rows") from error


HOST_SOLVERS: dict[str, Callable[..., np.ndarray]] = {
    "lapack": solve_on_host,
    "thomas": solve_by_thomas,
    "cores": solve_on_cores,
}
"""Solvers of the innermost interface system by their names: a, b, c and d to the solution."""


def compile_solver(name: str, dtype: np.dtype[Any]) -> None:
    """Compile what one of :data:`HOST_SOLVERS` is written in, before anything is timed.

    Raises
    ------
    NoCompiler
        When it cannot be compiled.
    """
    if name in ("thomas", "cores"):
        # What the parts of all cores leave is solved by the Thomas algorithm.
        library(THOMAS)
    if name == "cores":
        partition(dtype)
