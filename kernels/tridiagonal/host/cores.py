"""The partition method on all cores of the host (see ``partition.c``), for interface systems."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .compiling import library
from .thomas import insist_on_a_system, thomas

SOURCE = Path(__file__).with_name("partition.c")

LANES = 4
"""Parts that a core walks along at once, as in ``partition.c``."""

FEWEST_ROWS = 256
"""Rows of a part: fewer are done before another core has begun."""


def partition(dtype: np.dtype[Any]) -> ctypes.CDLL:
    """``partition.c`` for float32 or float64.

    Raises
    ------
    NoCompiler
        See :func:`compiling.library`; the compiler must know OpenMP.
    """
    real = {"float32": "float", "float64": "double"}[dtype.name]
    return library(SOURCE, "-fopenmp", f"-DREAL={real}")


class PartitionedSystem:
    """A row-dominant tridiagonal system in pieces, which may arrive one after the other.

    Parameters
    ----------
    system
        a, b, c and d: all float32 or all float64, contiguous, shape (rows,) each; a[0] and c[-1]
        are ignored. c is overwritten, and d by the solution.
    pieces
        Neighbouring slices of two rows or more, which together are all rows. Each is cut into parts
        for all cores.

    Raises
    ------
    ValueError
        When the arrays are not as above.
    NoCompiler
        See :func:`partition`.
    """

    def __init__(self, system: Sequence[np.ndarray], pieces: Sequence[slice]) -> None:
        a, b, c, d = system
        insist_on_a_system(a, b, c, d)
        code = partition(d.dtype)
        self._reduce, self._substitute = code.reduce, code.substitute
        self._reduce.argtypes = [*2 * [ctypes.c_int64], *8 * [ctypes.c_void_p]]
        self._substitute.argtypes = [*2 * [ctypes.c_int64], *5 * [ctypes.c_void_p]]
        self._pieces = [[each[piece] for each in system] for piece in pieces]
        parts = [parts_of(len(piece[0])) for piece in self._pieces]
        bounds = 2 * np.cumsum([0, *parts])
        self._ends = [np.empty(bounds[-1], d.dtype) for _ in range(4)]
        spans = [slice(*each) for each in itertools.pairwise(bounds)]
        self._own_ends = [[each[span] for each in self._ends] for span in spans]

    def reduce(self, number: int) -> None:
        """Leave two equations of each part of a piece; the piece must be there.

        Raises
        ------
        ZeroDivisionError
            When a pivot is zero.
        """
        piece, ends = self._pieces[number], self._own_ends[number]
        arrays = (each.ctypes.data for each in (*piece, *ends))
        _insist(self._reduce(len(piece[0]), len(ends[0]) // 2, *arrays))

    def solve_ends(self) -> None:
        """Solve the equations that all pieces have left, on one core; raises as :meth:`reduce`."""
        _insist(thomas(*self._ends))

    def substitute(self, number: int) -> None:
        """Write the solution of a piece into its d; raises as :meth:`reduce`."""
        piece, ends = self._pieces[number], self._own_ends[number]
        arrays = (each.ctypes.data for each in (*piece, ends[3]))
        _insist(self._substitute(len(piece[0]), len(ends[0]) // 2, *arrays))


def parts_of(rows: int) -> int:
    """Parts that a piece is cut into: :data:`LANES` for each core, or fewer of a short piece."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, rows // (LANES * FEWEST_ROWS)) * LANES)


def _insist(zero: int) -> None:
    if zero:
        raise ZeroDivisionError("a pivot is zero")
