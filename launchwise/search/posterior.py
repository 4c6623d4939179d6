"""Gaussian processes: covariance, scales, posterior.

One notation serves searches, the recommender and the choice of problems. The covariance of two
points has four parts: a constant, the variance of the ``level``; what they ``share`` by features
that were known before, such as losses on other GPUs, since the new one resembles some more than
others; a Matern kernel of their distance in ``lengths`` of each axis, for what only measurements
show, their ``own``; and what a ``single`` point has, which no neighbour tells.

Sources: the linear model of coregionalisation (Journel and Huijbregts, 1978), Gaussian processes
(Rasmussen and Williams, 2006, chapters 2, 4.2 and 5.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

STEPS = 30  # Most steps of a fit of the scales

JITTER = 1e-8

ONE_THREAD = ThreadpoolController().wrap(limits=1, user_api="blas")
"""For methods on small matrices: threads that wait for each other would take cores from nvcc."""


class Matern(Enum):
    """Matern kernels, by how often what they describe has a derivative."""

    ONCE = float(np.sqrt(3))  # smoothness 3/2
    TWICE = float(np.sqrt(5))  # smoothness 5/2

    def of(self, distances: np.ndarray) -> np.ndarray:
        """Correlation over distances in lengths."""
        steps = self.value * distances
        near = 1 + steps + steps**2 / 3 if self is Matern.TWICE else 1 + steps
        return np.asarray(near * np.exp(-steps))

    def fall(self, distances: np.ndarray) -> np.ndarray:
        """Minus its derivative, divided by the distance."""
        steps = self.value * distances
        near = 5 / 3 * (1 + steps) if self is Matern.TWICE else 3.0
        return np.asarray(near * np.exp(-steps))


def apart(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Distances of points (left, axes) and (right, axes), in their precision: (left, right)."""
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * (left @ right.T)
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


class Scales(NamedTuple):
    """Hyper-parameters of the covariance: the length of each axis (float64, shape (axes,)), and
    deviations."""

    lengths: np.ndarray
    own: float
    single: float
    shared: float

    @classmethod
    def of(cls, logs: np.ndarray) -> Scales:
        """From logarithms in this order: float64, shape (axes + 3,)."""
        values = np.exp(logs)
        return cls(values[:-3], *values[-3:].tolist())


@dataclass(frozen=True)
class Prior:
    """What is believed of a function before it is measured."""

    kernel: Matern
    level: float  # deviation of its mean
    # Medians of the scales (of each length, of own, single and shared), deviations of their
    # logarithms, infinite where nothing is believed, and limits of what is fitted.
    medians: tuple[float, ...]
    vary: tuple[float, ...]
    limits: tuple[tuple[float, float], ...]
    power: float = 1.0  # of own, single and shared, where a fit takes steps: 2 for variances

    def logs(self, axes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Medians, deviations and limits of the logarithms: float64, shape (axes + 3, ...)."""
        times = [axes, 1, 1, 1]
        medians, limits = (np.log(np.repeat(x, times, axis=0)) for x in (self.medians, self.limits))
        return medians, np.repeat(self.vary, times), limits


SEARCH = Prior(
    kernel=Matern.TWICE,
    level=2.0,  # that the best of a new GPU is expected to be off
    medians=(1.0, 0.3, 0.03, 0.5),  # lengths are parts of a tunable's range
    vary=(1.0, 0.7, 1.0, 0.7),
    limits=((float(np.exp(-4.0)), float(np.exp(3.0))),) * 4,
)
"""Of the log time of candidates beside other GPUs."""

ALONE = replace(SEARCH, medians=(1.0, 0.5, 0.03, 0.5))
"""The same without any."""


class Process:
    """Posterior of a function at candidates. ``points``: float64, shape (candidates, axes).
    ``deviations``: features that they share, such as losses on each other GPU, less their mean:
    float64, shape (candidates, features)."""

    def __init__(self, points: np.ndarray, deviations: np.ndarray, prior: Prior) -> None:
        self.points = points
        self._deviations = deviations
        self._prior = prior
        self.scales = Scales.of(prior.logs(points.shape[1])[0])
        self._rows = np.empty(0, dtype=int)
        self.condition(self._rows)

    def extend(self, points: np.ndarray, deviations: np.ndarray) -> None:
        """Add candidates, as at the beginning; what was conditioned on stays."""
        self.points = np.vstack([self.points, points])
        self._deviations = np.vstack([self._deviations, deviations])
        self.condition(self._rows)

    @ONE_THREAD
    def condition(self, rows: np.ndarray) -> None:
        """Condition on measured candidates anew: their numbers, int, shape (measured,)."""
        # SciPy loads for a third of a second: commands that search nothing import this, too.
        from scipy.linalg import solve_triangular

        self._rows = np.asarray(rows, dtype=int)
        every = np.arange(len(self.points))
        single = (self.scales.single**2 + JITTER) * np.eye(len(self._rows))
        covariance = self._covariance(self._rows, self._rows, self.scales)
        self._factor = np.linalg.cholesky(covariance + single)
        self._columns = solve_triangular(
            self._factor, self._covariance(self._rows, every, self.scales), lower=True
        )
        shared = (self._deviations**2).sum(axis=1)
        scales = self.scales
        self._variances = self._prior.level**2 + scales.own**2 + scales.shared**2 * shared

    @ONE_THREAD
    def append(self, row: int) -> None:
        """Condition on one more candidate."""
        here = np.array([row])
        cross = self._covariance(here, np.arange(len(self.points)), self.scales)[0]
        before = self._columns[:, row]
        left = cross[row] + self.scales.single**2 + JITTER - before @ before
        pivot = np.sqrt(max(left, 1e-12))
        count = len(self._rows)
        factor = np.zeros((count + 1, count + 1))
        factor[:count, :count], factor[count, :count], factor[count, count] = (
            *(self._factor, before),
            pivot,
        )
        self._factor = factor
        self._columns = np.vstack([self._columns, (cross - before @ self._columns) / pivot])
        self._rows = np.append(self._rows, row)

    @ONE_THREAD
    def posterior(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance at each candidate, less its prior mean: (candidates,).
        ``targets``: those of what was conditioned on, in its order: float64, shape (measured,)."""
        from scipy.linalg import solve_triangular

        solved = solve_triangular(self._factor, targets, lower=True)
        variance = self._variances - np.einsum("ij,ij->j", self._columns, self._columns)
        return self._columns.T @ solved, np.maximum(variance, 1e-10)

    @ONE_THREAD
    def weights(self, targets: np.ndarray) -> np.ndarray:
        """Of what was conditioned on: the posterior mean is their sum by correlations of the own
        part, where nothing else is shared. ``targets``: as :meth:`posterior` takes them."""
        from scipy.linalg import cho_solve

        return np.asarray(self.scales.own**2 * cho_solve((self._factor, True), targets))

    @ONE_THREAD
    def fit(self, rows: np.ndarray, targets: np.ndarray, steps: int = STEPS) -> None:
        """Take the scales of the largest posterior density, and condition on nothing."""
        from scipy.optimize import minimize

        points, deviations = self.points[rows], self._deviations[rows]
        squares = (points.T[:, :, None] - points.T[:, None, :]) ** 2
        shared, power = deviations @ deviations.T, self._prior.power
        units = np.repeat([1.0, power], [points.shape[1], 3])

        def density(found: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self._density(found / units, squares, shared, targets)
            return value, gradient / units

        found = minimize(
            density,
            np.log(np.hstack(self.scales)) * units,
            jac=True,
            method="L-BFGS-B",
            bounds=self._prior.logs(points.shape[1])[2] * units[:, None],
            options={"maxiter": steps},
        )
        if np.isfinite(found.fun):
            self.scales = Scales.of(found.x / units)

    def _covariance(self, rows: np.ndarray, columns: np.ndarray, scales: Scales) -> np.ndarray:
        shared = self._deviations[rows] @ self._deviations[columns].T
        left, right = self.points[rows] / scales.lengths, self.points[columns] / scales.lengths
        own = scales.own**2 * self._prior.kernel.of(apart(left, right))
        return np.asarray(self._prior.level**2 + scales.shared**2 * shared + own)

    def _density(
        self, logs: np.ndarray, squares: np.ndarray, shared: np.ndarray, targets: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Negative logarithm of the posterior density of scales, and its gradient. ``squares``:
        squared differences of measured candidates: (axes, measured, measured); ``shared``:
        products of their deviations: (measured, measured)."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        scales, count = Scales.of(logs), len(targets)
        prior = self._prior
        distances = np.sqrt(np.tensordot(scales.lengths**-2, squares, axes=1))
        own = scales.own**2 * prior.kernel.of(distances)
        shared = scales.shared**2 * shared
        covariance = prior.level**2 + shared + own
        covariance.flat[:: count + 1] += scales.single**2 + JITTER
        try:
            factor = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(logs)
        inverse = cho_solve(factor, np.eye(count), overwrite_b=True, check_finite=False)
        weights = inverse @ targets
        slope = 0.5 * (inverse - np.outer(weights, weights))
        gradient = np.empty_like(logs)
        by_length = slope * scales.own**2 * prior.kernel.fall(distances)
        gradient[:-3] = np.tensordot(squares, by_length, axes=2) / scales.lengths**2
        gradient[-3] = 2 * (slope * own).sum()
        gradient[-2] = 2 * scales.single**2 * np.trace(slope)
        gradient[-1] = 2 * (slope * shared).sum()
        medians, vary, _ = prior.logs(len(scales.lengths))
        away = (logs - medians) / vary
        value = 0.5 * targets @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * away @ away
        return float(value), gradient + away / vary


def lost_to(winners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Expected losses of candidates to the nearest of a GPU's winners, of which is known only that
    they were not slower: the mean of the positive half of their difference, in a process of the
    scales before anything is measured. ``winners``, ``points``: as :class:`Process` takes them.
    float64, shape (candidates,)."""
    away = np.linalg.norm(points[:, None] - winners[None], axis=2).min(axis=1)
    alike = ALONE.kernel.of(away / ALONE.medians[0])
    return np.asarray(2 * ALONE.medians[1] * np.sqrt((1 - alike) / np.pi))
