"""The stencil as sweeps and simulations build it: weights, macros, boxes of tensor maps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from launchwise.workloads.builds import real_macro

VECTOR_BYTES = 16
"""Bytes of the points that a thread has side by side."""


def weights(order: int) -> np.ndarray:
    """Weights of the central second difference of even ``order``: float64, order // 2 + 1 values.

    c_k = 2 (-1)^(k+1) (M!)^2 / (k^2 (M-k)! (M+k)!) for k = 1..M with M = order / 2, and
    c_0 = -2 sum c_k (closed form of the Lagrange weights; Fornberg 1988).
    """
    half = order // 2
    outer = [
        2.0
        * (-1.0) ** (k + 1)
        * (math.factorial(half) ** 2 / (math.factorial(half - k) * math.factorial(half + k)))
        / k**2
        for k in range(1, half + 1)
    ]
    return np.array([-2.0 * math.fsum(outer), *outer])


def all_axes(order: int) -> np.ndarray:
    """:func:`weights` for the sum of all three axes: c_0 serves the centre once."""
    values = weights(order)
    values[0] *= 3.0
    return values


def stencil_macros(order: int, dtype: str, elements: int) -> dict[str, Any]:
    """Macros of every kernel of the stencil (see ``stencil.cuh``).

    Parameters
    ----------
    elements
        Of one array, padding included.
    """
    suffix = "f" if dtype == "float32" else ""
    values = all_axes(order)
    return {
        **real_macro(dtype),
        "INDEX": "int" if elements < 2**31 else "long long",
        "RADIUS": order // 2,
        "WEIGHTS": "{" + ", ".join(f"{value!r}{suffix}" for value in values.tolist()) + "}",
    }


def streaming_macros(configuration: Mapping[str, Any], *, aligned: bool) -> dict[str, Any]:
    """Macros that all kernels have besides which stream along z."""
    return {
        "TILE_Y": configuration["tile_y"],
        "STAGES": configuration["stages"],
        "BLOCKS_PER_SM": configuration["blocks_per_sm"],
        "ALIGNED": int(aligned),
    }


def one_step_macros(configuration: Mapping[str, Any], *, damped: bool) -> dict[str, Any]:
    """Macros of those with one time step per pass (see ``streaming.cuh``)."""
    return {"TILE_X": configuration["tile_x"], "DAMPED": int(damped)}


def boxes(
    order: int, dtype: str, configuration: Mapping[str, Any]
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Boxes that the copy engine takes of a plane: of u with its halo, of u_old and velocity.

    Each is (z, y, x) in elements.
    """
    columns, rows = int(configuration["tile_x"]), int(configuration["tile_y"])
    vector = VECTOR_BYTES // np.dtype(dtype).itemsize
    around = -(-(order // 2) // vector) * vector
    return (1, rows + order, columns + 2 * around), (1, rows, columns)
