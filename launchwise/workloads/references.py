"""References of ``spec.yaml``: functions of NumPy and SciPy that it may call."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.workloads.element_types import widened
from launchwise.workloads.spec_fields import SpecFields

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
    Raises ValueError when it is not."""
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
    folder: Path, spec: SpecFields, names: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> Any:
    """Result of a spec's ``call``; floating-point inputs are float64 there.

    ``names``: the problem, and numbers among the arguments.
    Raises UserError when the function fails.
    """
    reference = spec.reference
    assert reference is not None
    assert reference.call is not None
    given = [_given(spec, text, names, inputs) for text in reference.given or []]
    try:
        return function(reference.call)(*given)
    except (ValueError, TypeError, IndexError, ArithmeticError, np.linalg.LinAlgError) as error:
        raise UserError(
            folder / SPEC_FILE, "reference.call", f"{reference.call} fails: {error}"
        ) from error


def _given(
    spec: SpecFields, text: str, names: Mapping[str, Any], inputs: Mapping[str, np.ndarray]
) -> Any:
    if text in inputs:
        return widened(inputs[text])
    return names[text] if text in spec.arguments else spec.value(text, names)
