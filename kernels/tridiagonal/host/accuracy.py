"""How well a solution fulfils its equations, and for which systems that is sure to be well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ALLOWED_EPS = 10.0
"""Normwise backward error of a solution that is good, in units of the type's eps."""


class InaccurateSolution(ArithmeticError):
    """A solution that was asked to be checked does not fulfil its equations."""


def allowed_error(dtype: np.dtype[Any]) -> float:
    """Normwise backward error that a solution in float32 or float64 may have."""
    return ALLOWED_EPS * float(np.finfo(dtype).eps)


def backward_error(system: Sequence[np.ndarray], x: np.ndarray) -> float:
    """max |d - A x| / (|A| |x| + |d|) in the infinity norm, computed in float64.

    The smallest relative change of A and d that makes x exact (Rigal and Gaches 1967).

    Parameters
    ----------
    system
        a, b, c and d, shape (rows,) each; a[0] and c[-1] are not looked at.
    x
        Shape (rows,).
    """
    a, b, c, d = (each.astype(float) for each in system)
    x = x.astype(float)
    a[0] = c[-1] = 0
    rest = d - b * x
    rest[1:] -= a[1:] * x[:-1]
    rest[:-1] -= c[:-1] * x[1:]
    norm = np.max(np.abs(a) + np.abs(b) + np.abs(c))
    size = norm * np.max(np.abs(x)) + np.max(np.abs(d))
    return float(np.max(np.abs(rest)) / size) if size > 0 else float(np.max(np.abs(rest)))
