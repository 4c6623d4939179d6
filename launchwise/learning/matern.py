"""Exact Gaussian process regression with a Matern 3/2 kernel that has a scale for each axis.

Kernel of two points at distance r, in length scales times the root of 3::

    amplitude * (1 + r) * exp(-r)

Rasmussen and Williams (2006), chapters 2, 4.2 and 5.4.1. scikit-learn computes the gradient of the
likelihood with an array of shape (points, points, axes); in closed form two products of matrices
are enough, and single precision suffices to predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

JITTER = 1e-10
"""Added to the variance of every point: equal points would make a singular matrix."""

AMPLITUDES, SCALES, NOISES = (1e-5, 1e5), (0.2, 1e3), (1e-5, 1.0)
"""Limits of what is fitted. A scale at its upper limit belongs to an axis without influence."""

PIECE = 256
"""Points predicted at once: the distances of so many to all known ones stay in the cache."""


@dataclass(frozen=True)
class Kernel:
    """Parameters of the kernel."""

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

    def stretched(self, points: np.ndarray) -> np.ndarray:
        """Points of shape (points, axes) with a scale of root 3 along every axis."""
        return np.asarray(points * (np.sqrt(3.0) / self.scales))


def fitted_kernel(points: np.ndarray, values: np.ndarray, steps: int) -> Kernel:
    """The most likely kernel after so many steps of L-BFGS.

    Parameters
    ----------
    points
        float64, shape (points, axes).
    values
        Observed there, of mean 0: float64, shape (points,).
    """
    from scipy.optimize import minimize

    axes = points.shape[1]
    start = np.log([1.0, *np.full(axes, 3.0), 1e-2])
    limits = np.log([AMPLITUDES, *[SCALES] * axes, NOISES])
    found = minimize(
        negative_log_likelihood, start, (points, values), jac=True, method="L-BFGS-B",
        bounds=limits, options={"maxiter": steps},
    )  # fmt: skip
    return Kernel.from_logs(found.x)


def negative_log_likelihood(
    logs: np.ndarray, points: np.ndarray, values: np.ndarray
) -> tuple[float, np.ndarray]:
    """Negative log marginal likelihood of observed values, and its gradient.

    Parameters
    ----------
    logs
        Logarithms of amplitude, scales and noise, shape (axes + 2,); the gradient has it, too.
    points, values
        See :func:`fitted_kernel`.
    """
    from scipy.linalg import cho_solve

    kernel = Kernel.from_logs(logs)
    stretched = kernel.stretched(points)
    distances = _distances(stretched)
    decay = kernel.amplitude * np.exp(-distances)
    smooth = (1 + distances) * decay
    try:
        factor = _factor(smooth, kernel.noise)
    except np.linalg.LinAlgError:
        return np.inf, np.zeros_like(logs)
    weights = cho_solve((factor, True), values, check_finite=False)
    inverse = cho_solve((factor, True), np.eye(len(values)), check_finite=False)
    logarithm = np.log(np.diag(factor)).sum() + 0.5 * len(values) * np.log(2 * np.pi)
    # Of each entry of the kernel matrix: twice the derivative of the log likelihood by it.
    slopes = np.outer(weights, weights) - inverse
    # An entry's derivative by the log of a scale is decay times the squared distance on its axis.
    shares = slopes * decay
    squares = (stretched**2).T @ shares.sum(axis=1)
    by_scale = squares - np.einsum("pa,pa->a", stretched, shares @ stretched)
    by_amplitude = 0.5 * (slopes * smooth).sum()
    by_noise = 0.5 * kernel.noise * np.trace(slopes)
    gradient = np.array([by_amplitude, *by_scale, by_noise])
    return float(0.5 * values @ weights + logarithm), -gradient


def posterior_weights(kernel: Kernel, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weights of the points in the posterior mean, times the amplitude: shape (points,)."""
    from scipy.linalg import cho_solve

    distances = _distances(kernel.stretched(points))
    smooth = kernel.amplitude * (1 + distances) * np.exp(-distances)
    factor = _factor(smooth, kernel.noise)
    return np.asarray(kernel.amplitude * cho_solve((factor, True), values, check_finite=False))


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
    known = kernel.stretched(points)
    # Around their mean, so that few digits are lost in the differences of squares.
    centre = known.mean(axis=0)
    known = (known - centre).astype(np.float32)
    others = (kernel.stretched(asked) - centre).astype(np.float32)
    known_squares, squares = (known**2).sum(axis=1), (others**2).sum(axis=1)
    across = np.ascontiguousarray(known.T) * np.float32(-2)
    of_known = weights.astype(np.float32)
    distances = np.empty((PIECE, len(known)), dtype=np.float32)
    decays = np.empty_like(distances)
    found = np.empty(len(others))
    for start in range(0, len(others), PIECE):
        piece = others[start : start + PIECE]
        distance, decay = distances[: len(piece)], decays[: len(piece)]
        np.matmul(piece, across, out=distance)
        distance += squares[start : start + PIECE, None]
        distance += known_squares
        np.sqrt(np.maximum(distance, 0, out=distance), out=distance)
        np.exp(np.negative(distance, out=decay), out=decay)
        distance += 1
        distance *= decay
        found[start : start + PIECE] = distance @ of_known
    return found


def _distances(points: np.ndarray) -> np.ndarray:
    """Distance of every two of some points, shape (points, points)."""
    squares = (points**2).sum(axis=1)
    found = squares[:, None] + squares - 2 * (points @ points.T)
    np.fill_diagonal(found, 0)
    return np.asarray(np.sqrt(np.maximum(found, 0, out=found), out=found))


def _factor(smooth: np.ndarray, noise: float) -> np.ndarray:
    """Lower Cholesky factor of a kernel matrix with noise on its diagonal."""
    from scipy.linalg import cholesky

    noisy = smooth.copy()
    noisy[np.diag_indices_from(noisy)] += noise + JITTER
    return np.asarray(cholesky(noisy, lower=True, overwrite_a=True, check_finite=False))
