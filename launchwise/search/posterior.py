"""Gaussian process over the candidates of a search: its covariance, its scales, its posterior.

The covariance has four parts: a constant, since it is unknown how fast the new GPU is; the losses
on each other GPU, less their mean, since the new one resembles some more than others; a Matern
kernel over the tunables with a length for each, for what no other GPU has shown; and what a single
configuration has of its own, which no neighbour tells.

Sources: the linear model of coregionalisation (Journel and Huijbregts, 1978), Gaussian processes
(Rasmussen and Williams, 2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import ThreadpoolController

LEVEL = 2.0  # Deviation of the log time that the best of a new GPU is expected to be off

LENGTH, OWN, ALONE, SINGLE, SHARED = 1.0, 0.3, 0.5, 0.03, 0.5
"""Medians of the scales before anything is measured (see :class:`Scales`): lengths of tunables in
parts of their range; the own part beside other GPUs and without any; a single configuration's part;
the part shared with other GPUs."""

LENGTHS_VARY, OWN_VARIES, SINGLE_VARIES, SHARED_VARIES = 1.0, 0.7, 1.0, 0.7
"""Deviations of the logarithms of the scales around these medians."""

SMALLEST, LARGEST = -4.0, 3.0  # Bounds of the logarithms of the scales
STEPS = 30  # Most steps of a fit of the scales

JITTER = 1e-8

ONE_THREAD = ThreadpoolController().wrap(limits=1, user_api="blas")
"""For methods on small matrices: threads that wait for each other would take cores from nvcc."""

ROOT_OF_5 = float(np.sqrt(5))


@dataclass(frozen=True)
class Scales:
    """Hyper-parameters of the covariance."""

    lengths: np.ndarray  # of each tunable, in parts of its range: float64, shape (tunables,)
    # Deviations of the log time.
    own: float
    single: float
    shared: float

    @classmethod
    def of(cls, logs: np.ndarray) -> Scales:
        """From logarithms: lengths, own, single, shared; float64, shape (tunables + 3,)."""
        values = np.exp(logs)
        return cls(values[:-3], *(float(each) for each in values[-3:]))

    @property
    def logs(self) -> np.ndarray:
        """Logarithms, in the order of :meth:`of`."""
        return np.log(np.append(self.lengths, [self.own, self.single, self.shared]))


class Process:
    """Posterior of the log time of every candidate. ``points``: tunables of each candidate between
    0 and 1: float64, shape (candidates, tunables). ``deviations``: losses on each other GPU, less
    their mean: float64, shape (candidates, GPUs)."""

    def __init__(self, points: np.ndarray, deviations: np.ndarray) -> None:
        self.points = points
        self._deviations = deviations
        own = OWN if deviations.shape[1] else ALONE
        count = points.shape[1]
        self._medians = np.log([LENGTH] * count + [own, SINGLE, SHARED])
        self._vary = np.array([LENGTHS_VARY] * count + [OWN_VARIES, SINGLE_VARIES, SHARED_VARIES])
        self.scales = Scales.of(self._medians)
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
        self._prior = LEVEL**2 + scales.own**2 + scales.shared**2 * shared

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
        """Mean and variance of each candidate's log time, less its prior mean: (candidates,).
        ``targets``: those of what was conditioned on, in its order: float64, shape (measured,)."""
        from scipy.linalg import solve_triangular

        solved = solve_triangular(self._factor, targets, lower=True)
        variance = self._prior - np.einsum("ij,ij->j", self._columns, self._columns)
        return self._columns.T @ solved, np.maximum(variance, 1e-10)

    @ONE_THREAD
    def fit(self, rows: np.ndarray, targets: np.ndarray) -> None:
        """Take the scales of the largest posterior density, and condition on nothing."""
        from scipy.optimize import minimize

        points, deviations = self.points[rows], self._deviations[rows]
        apart = (points.T[:, :, None] - points.T[:, None, :]) ** 2
        found = minimize(
            self._density,
            self.scales.logs,
            args=(apart, deviations @ deviations.T, targets),
            jac=True,
            method="L-BFGS-B",
            bounds=[(SMALLEST, LARGEST)] * len(self._medians),
            options={"maxiter": STEPS},
        )
        if np.isfinite(found.fun):
            self.scales = Scales.of(found.x)

    def _covariance(self, rows: np.ndarray, columns: np.ndarray, scales: Scales) -> np.ndarray:
        shared = self._deviations[rows] @ self._deviations[columns].T
        left, right = self.points[rows] / scales.lengths, self.points[columns] / scales.lengths
        squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None] - 2 * left @ right.T
        steps = ROOT_OF_5 * np.sqrt(np.maximum(squares, 0))
        own = (1 + steps + steps**2 / 3) * np.exp(-steps)
        return np.asarray(LEVEL**2 + scales.shared**2 * shared + scales.own**2 * own)

    def _density(
        self, logs: np.ndarray, apart: np.ndarray, shared: np.ndarray, targets: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Negative logarithm of the posterior density of scales, and its gradient. ``apart``:
        squared differences of measured candidates: (tunables, measured, measured); ``shared``:
        products of their deviations: (measured, measured)."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        scales, count = Scales.of(logs), len(targets)
        steps = ROOT_OF_5 * np.sqrt(np.tensordot(scales.lengths**-2, apart, axes=1))
        decay = scales.own**2 * np.exp(-steps)
        own = (1 + steps + steps**2 / 3) * decay
        shared = scales.shared**2 * shared
        covariance = LEVEL**2 + shared + own
        covariance.flat[:: count + 1] += scales.single**2 + JITTER
        try:
            factor = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros_like(logs)
        inverse = cho_solve(factor, np.eye(count), overwrite_b=True, check_finite=False)
        weights = inverse @ targets
        slope = 0.5 * (inverse - np.outer(weights, weights))
        gradient = np.empty_like(logs)
        by_length = slope * (5 / 3 * (1 + steps) * decay)
        gradient[:-3] = np.tensordot(apart, by_length, axes=2) / scales.lengths**2
        gradient[-3] = 2 * (slope * own).sum()
        gradient[-2] = 2 * scales.single**2 * np.trace(slope)
        gradient[-1] = 2 * (slope * shared).sum()
        away = (logs - self._medians) / self._vary
        value = 0.5 * targets @ weights + np.log(np.diag(factor[0])).sum() + 0.5 * away @ away
        return float(value), gradient + away / self._vary


def lost_to(winners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Expected losses of candidates to the nearest of a GPU's winners, of which is known only that
    they were not slower: the mean of the positive half of their difference, in a process of the
    scales before anything is measured. ``winners``, ``points``: as :class:`Process` takes them.
    float64, shape (candidates,)."""
    away = np.linalg.norm(points[:, None] - winners[None], axis=2).min(axis=1)
    steps = ROOT_OF_5 * away / LENGTH
    alike = (1 + steps + steps**2 / 3) * np.exp(-steps)
    return np.asarray(2 * ALONE * np.sqrt((1 - alike) / np.pi))
