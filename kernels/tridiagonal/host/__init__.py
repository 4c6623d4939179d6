"""Tridiagonal systems on a GPU by the partition method (Austin, Berndt, Moulton 2004)."""

from __future__ import annotations

from typing import Any


def solve(a: Any, b: Any, c: Any, d: Any, x: Any = None, *, check: bool = False, **how: Any) -> Any:
    """Solve tridiagonal systems on the first visible GPU.

    As :meth:`solver.Solver.solve` of a solver that is opened at the first
    call: kernels are compiled once (nvcc) and kept in the user's cache.

    Raises
    ------
    UserError
        When there is no GPU, or kernels cannot be compiled.
    """
    from .opening import open_solver

    return open_solver().solve(a, b, c, d, x, check=check, **how)
