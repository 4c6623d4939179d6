"""The Thomas algorithm, compiled by the C compiler of this machine (see ``thomas.c``)."""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).with_suffix(".c")
FLAGS = ("-std=c11", "-O3", "-shared", "-fPIC")
COMPILERS = ("cc", "gcc", "clang")


class NoCompiler(RuntimeError):
    """``thomas.c`` cannot be compiled or loaded on this machine."""


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
        See :func:`library`.
    """
    arrays = (a, b, c, d)
    if any(each.dtype != d.dtype or each.shape != d.shape or each.ndim != 1 for each in arrays):
        raise ValueError("a, b, c and d must have one type and one shape (rows,)")
    if not len(d) or not all(each.flags.c_contiguous for each in arrays):
        raise ValueError("a, b, c and d must be contiguous and have one row at least")
    function = getattr(library(), f"thomas_{d.dtype.name}")
    function.argtypes = [ctypes.c_int64, *4 * [ctypes.c_void_p]]
    function.restype = ctypes.c_int64
    return int(function(len(d), *(each.ctypes.data for each in arrays)))


@functools.cache
def library() -> ctypes.CDLL:
    """``thomas.c``, compiled once per process.

    Raises
    ------
    NoCompiler
        When there is no compiler (``CC``, ``cc``, ``gcc`` or ``clang``), or it fails.
    """
    with tempfile.TemporaryDirectory(prefix="launchwise-thomas-") as folder:
        path = Path(folder, "thomas.so")
        command = [*_compiler(), *FLAGS, "-o", str(path), str(SOURCE)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                said = " ".join(done.stderr.split())[:300]
                raise NoCompiler(f"{command[0]} cannot compile {SOURCE.name}: {said}")
            # A loaded library outlives its file.
            return ctypes.CDLL(str(path))
        except OSError as error:
            raise NoCompiler(f"{SOURCE.name} cannot be compiled and loaded: {error}") from error


def _compiler() -> list[str]:
    """Command of the C compiler, ``CC`` first."""
    if named := shlex.split(os.environ.get("CC", "")):
        return named
    for name in COMPILERS:
        if path := shutil.which(name):
            return [path]
    wanted = ", ".join(COMPILERS)
    raise NoCompiler(f"{SOURCE.name} needs a C compiler: install one of {wanted}, or set CC")
