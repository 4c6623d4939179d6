"""Functions of NumPy and SciPy that the reference of ``spec.yaml`` may call."""

from __future__ import annotations

from collections.abc import Mapping

from launchwise.base.errors import unknown

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
