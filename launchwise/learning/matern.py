"""Gaussian process regression with a Matern 3/2 kernel that has a scale for each axis.

scikit-learn fits the kernel and the weights of the points (Rasmussen and Williams, 2006, chapters
2, 4.2 and 5.4.1); the mean at many points is computed here, in single precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

JITTER = 1e-10
"""Added to the variance of every point: equal points would make a singular matrix."""

AMPLITUDES, SCALES, NOISES = (1e-5, 1e5), (0.2, 1e3), (1e-5, 1.0)
"""Limits of what is fitted. A scale at its upper limit belongs to an axis without influence."""

PIECE = 256
"""Points predicted at once: the distances of so many to all known ones stay in the cache."""


@dataclass(frozen=True)
class Kernel:
    """Kernel of two points at distance r, in scales / sqrt(3): amplitude * (1 + r) * exp(-r)."""

    # Variance of the function.
    amplitude: float
    # Distance along each axis over which it changes: float64, shape (axes,).
    scales: np.ndarray
    # Variance of what is observed around it.
    noise: float

    @classmethod
    def from_logs(cls, logs: np.ndarray) -> Self:
        """From the logarithms of amplitude, scales and noise, shape (axes + 2,)."""
        amplitude, *scales, noise = np.exp(logs)
        return cls(float(amplitude), np.array(scales), float(noise))

    def fitted(
        self, points: np.ndarray, values: np.ndarray, optimizer: Callable[..., Any] | None
    ) -> Any:
        """Regression of scikit-learn that begins with this kernel; None keeps it as it is.

        ``points``, ``values``: float64, shapes (points, axes) and (points,), of mean 0.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        smooth = ConstantKernel(self.amplitude, AMPLITUDES) * Matern(self.scales, SCALES, nu=1.5)
        noisy = smooth + WhiteKernel(self.noise, NOISES)
        process = GaussianProcessRegressor(noisy, alpha=JITTER, optimizer=optimizer)
        with warnings.catch_warnings():
            # Scales at their limits, and steps that ran out, are meant.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return process.fit(points, values)


def fitted_kernel(points: np.ndarray, values: np.ndarray, steps: int) -> Kernel:
    """The most likely kernel of some points after so many steps of L-BFGS."""
    from scipy.optimize import minimize

    def optimized(function: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
        options = {"maxiter": steps}
        found = minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return found.x, found.fun

    first = Kernel(1.0, np.full(points.shape[1], 3.0), 1e-2)
    return Kernel.from_logs(first.fitted(points, values, optimized).kernel_.theta)


def posterior_weights(kernel: Kernel, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weights of the points in the posterior mean, times the amplitude: shape (points,)."""
    return np.asarray(kernel.amplitude * kernel.fitted(points, values, None).alpha_)


def posterior_mean(
    kernel: Kernel, points: np.ndarray, weights: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    """Mean of the function at other points: float64, shape (asked,).

    In single precision: the mean is good to about 1e-5 of the weights' size.

    Parameters
    ----------
    points, weights
        Known points, and what :func:`posterior_weights` gave for them.
    asked
        Shape (asked, axes).
    """
    stretch = np.sqrt(3.0) / kernel.scales
    # Around their mean, so that few digits are lost in the differences of squares.
    centre = points.mean(axis=0)
    known = ((points - centre) * stretch).astype(np.float32)
    others = ((asked - centre) * stretch).astype(np.float32)
    squares, of_known = (known**2).sum(axis=1), weights.astype(np.float32)
    found = np.empty(len(others))
    for start in range(0, len(others), PIECE):
        piece = others[start : start + PIECE]
        apart = (piece**2).sum(axis=1)[:, None] + squares - 2 * (piece @ known.T)
        distances = np.sqrt(np.maximum(apart, 0))
        found[start : start + PIECE] = ((1 + distances) * np.exp(-distances)) @ of_known
    return found
