"""References of ``spec.yaml``: listed functions of NumPy and SciPy, and a user's own functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError, unknown
from launchwise.workloads.packages import import_from, own_error
from launchwise.workloads.spec import Spec

CALLS: Mapping[str, tuple[str, ...]] = {
    "numpy": (
        *("abs", "add", "argmax", "argmin", "argsort", "bincount", "clip", "convolve", "copy"),
        *("correlate", "cos", "cross", "cumprod", "cumsum", "diff", "divide", "dot", "einsum"),
        *("exp", "flip", "histogram", "hypot", "inner", "kron", "log", "matmul", "max", "maximum"),
        *("mean", "min", "minimum", "mod", "multiply", "negative", "outer", "power", "prod"),
        *("reciprocal", "repeat", "reshape", "roll", "rot90", "searchsorted", "sin", "sort"),
        *("sqrt", "square", "std", "subtract", "sum", "take", "tanh", "tensordot", "tile", "trace"),
        *("transpose", "tril", "triu", "unique", "var", "vdot", "where"),
    ),
    "numpy.fft": ("fft", "fft2", "fftn", "ifft", "ifft2", "irfft", "rfft", "rfft2"),
    "numpy.linalg": ("cholesky", "det", "eigvalsh", "inv", "norm", "solve"),
    "scipy.fft": ("dct", "dctn", "idct"),
    "scipy.linalg": ("cholesky", "inv", "solve", "solve_banded", "solve_triangular", "toeplitz"),
    "scipy.ndimage": (
        *("convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter", "label"),
        *("laplace", "maximum_filter", "median_filter", "minimum_filter", "sobel"),
        *("uniform_filter",),
    ),
    "scipy.signal": (
        "convolve",
        "convolve2d",
        "correlate",
        "correlate2d",
        "fftconvolve",
        "lfilter",
    ),
    "scipy.spatial.distance": ("cdist", "pdist"),
    "scipy.special": ("erf", "expit", "gamma", "logsumexp", "softmax"),
}
"""Functions that ``call`` may name. Whatever else is right is a function of the user's own."""


def check_listed(name: str) -> None:
    """Insist that a full name such as ``scipy.signal.correlate2d`` is that of a listed function.

    Raises
    ------
    ValueError
        When it is not.
    """
    module, _, short = name.rpartition(".")
    if short not in CALLS.get(module, ()):
        listed = [f"{each}.{one}" for each, names in CALLS.items() for one in names]
        raise ValueError(unknown("function", name, listed))


def function(name: str) -> Callable[..., Any]:
    """The listed function of a full name; raises what :func:`check_listed` raises."""
    check_listed(name)
    module, _, short = name.rpartition(".")
    found: Callable[..., Any] = getattr(importlib.import_module(module), short)
    return found


def called(
    spec: Spec, problem: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Result of a spec's ``call``; floating-point inputs are float64 there.

    Raises
    ------
    UserError
        When the function fails.
    """
    reference = spec.reference
    assert reference is not None
    assert reference.call is not None
    given = [
        _widened(inputs[text]) if text in inputs else spec.value(text, problem)
        for text in reference.given or []
    ]
    try:
        return _arrays(function(reference.call)(*given))
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError) as error:
        where = (spec.folder or Path()) / "spec.yaml"
        raise UserError(where, "reference.call", f"{reference.call} fails: {error}") from error


def from_file(
    folder: Path, named: str, problem: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Result of a user's function of the problem's parameters and the inputs, by name.

    Parameters
    ----------
    named
        File and function, such as ``reference.py:expected``.

    Raises
    ------
    UserError
        When file or function is missing, or the function fails; with the line.
    """
    file, _, name = named.partition(":")
    path = folder / file
    if not path.is_file():
        raise UserError(folder / "spec.yaml", "reference.file", f"no file {file!r}")
    module = import_from(folder, ".".join(Path(file).with_suffix("").parts))
    found = getattr(module, name, None)
    if not callable(found):
        raise UserError(path, name, "is no function of this file")
    # An array of the user's may be changed by his function; the next check needs it as it was.
    given = {**problem, **{each: _widened(array) for each, array in inputs.items()}}
    try:
        return _arrays(found(**given))
    except Exception as error:
        raise own_error(folder, error) from error


def _widened(array: np.ndarray) -> np.ndarray:
    """A copy, in float64 where it is floating point."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array.copy()


def _arrays(found: Any) -> list[np.ndarray]:
    """One array per output."""
    if isinstance(found, Mapping):
        return [np.asarray(each) for each in found.values()]
    if isinstance(found, tuple):
        return [np.asarray(each) for each in found]
    return [np.asarray(found)]
