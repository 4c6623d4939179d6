"""A Gaussian process over log sizes and log tunables, with a Matern 3/2 kernel.

scikit-learn fits the kernel, which has a scale for each axis, and the weights of the points
(Rasmussen and Williams, 2006, chapters 2, 4.2 and 5.4.1); the mean at many points is computed here,
in single precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.base.typed import Strict
from launchwise.learning.answers import LARGEST_LOG, Log
from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender
from launchwise.learning.regression import Scaling
from launchwise.learning.row_arrays import regrets, timed_repeatedly

JITTER = 1e-10  # Added to the variance of every point: equal points would make a singular matrix

AMPLITUDES, SCALES, NOISES = (1e-5, 1e5), (0.2, 1e3), (1e-5, 1.0)
"""Limits of what is fitted. A scale at its upper limit belongs to an axis without influence."""

PIECE = 256
"""Points predicted at once: the distances of so many to all known ones stay in the cache."""


def fitted_kernel(points: np.ndarray, values: np.ndarray, steps: int) -> Any:
    """scikit-learn's most likely kernel of some points after so many steps of L-BFGS.

    ``points``, ``values``: float64, shapes (points, axes) and (points,), of mean 0.
    """
    from scipy.optimize import minimize
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    def optimized(function: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
        options = {"maxiter": steps}
        found = minimize(
            function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return found.x, found.fun

    scales = Matern(np.full(points.shape[1], 3.0), SCALES, nu=1.5)
    first = ConstantKernel(1.0, AMPLITUDES) * scales + WhiteKernel(1e-2, NOISES)
    return _fitted(points, values, first, optimized).kernel_


def posterior_weights(kernel: Any, points: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Weights of the points in the posterior mean, times the amplitude: shape (points,)."""
    return np.asarray(kernel.k1.k1.constant_value * _fitted(points, values, kernel, None).alpha_)


def _fitted(points: np.ndarray, values: np.ndarray, kernel: Any, optimizer: Any) -> Any:
    """Regression of scikit-learn that begins with a kernel; without an optimizer it stays."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor

    process = GaussianProcessRegressor(kernel, alpha=JITTER, optimizer=optimizer)
    with warnings.catch_warnings():
        # Scales at their limits, and steps that ran out, are meant.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return process.fit(points, values)


def posterior_mean(
    scales: np.ndarray, points: np.ndarray, weights: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    """Mean of the function at other points: float64, shape (asked,).

    The kernel of points at distance r, in ``scales`` / sqrt(3): amplitude * (1 + r) * exp(-r). In
    single precision: the mean is good to about 1e-5 of the weights' size. ``points``,
    ``weights``: known points, and what :func:`posterior_weights` gave for them; ``asked``: shape
    (asked, axes).
    """
    stretch = np.sqrt(3.0) / scales
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


VARIANT_DISTANCE = 2.0
"""Distance of two variants along each of their axes, in deviations of a feature."""

WORST_REGRET = float(np.log(3.0))
"""Rows that take longer than three times the best tell nothing of the best."""


class GaussianProcessRecommender(Recommender):
    """Time = cost model x exp(residual of a Gaussian process).

    The kernel is a Matern 3/2 with a length scale for each feature, and noise. Trees step from one
    measured size to the next; this interpolates. Exact inference takes the cube of the rows:
    ``most_rows`` of them are drawn, each with a probability in proportion to (best / time)^2, and
    the length scales are fitted to ``rows_for_scales`` of those in ``iterations`` steps of L-BFGS.
    """

    class Fitted(Strict):
        columns: list[str]  # features that vary
        variants: list[str]
        # Of the logarithms that are learnt.
        mean: Log
        deviation: Annotated[float, Field(gt=0, le=LARGEST_LOG)]

    # Known points, their weights, and the distance along each axis over which the function changes.
    arrays = ("known", "weights", "scales", "logs", "means", "deviations")

    class Parameters(Hyperparameters):
        most_rows: int = Field(1500, ge=2)
        rows_for_scales: int = Field(200, ge=2)
        iterations: int = Field(20, ge=0)

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn the residuals (see :meth:`Recommender.fit`). Raises UserError when there are no
        rows, or only rows that stopped early (``slow``)."""
        rows, random = self._drawn(measurements)
        features = self.domain.features(rows)
        columns = [str(name) for name in features if features[name].nunique() > 1]
        variants = sorted(map(str, rows["variant"].unique()))
        scaling = Scaling.of(features[columns].to_numpy(dtype=float))
        self.logs, self.means, self.deviations = scaling.logs, scaling.mean, scaling.deviation
        points = self._points(rows, columns, variants)
        estimates = self.domain.cost_model.estimate(rows).time_ms
        logs = np.log(rows["time_ms"].to_numpy(dtype=float) / estimates)
        mean, deviation = float(logs.mean()), float(logs.std()) or 1.0
        target = (logs - mean) / deviation
        few = random.permutation(len(points))[: self.parameters["rows_for_scales"]]
        kernel = fitted_kernel(points[few], target[few], self.parameters["iterations"])
        # Scales from some points, then the exact posterior of all.
        self.known, self.weights = points, posterior_weights(kernel, points, target)
        self.scales = np.atleast_1d(kernel.k1.k2.length_scale)
        self.fitted = self.Fitted(
            columns=columns, variants=variants, mean=mean, deviation=deviation
        )
        return self

    def _drawn(self, measurements: pd.DataFrame) -> tuple[pd.DataFrame, np.random.Generator]:
        """Rows that are learnt from, and the generator that drew them."""
        random = np.random.default_rng(self.parameters["seed"])
        rows = timed_repeatedly(measurements)
        regret = regrets(rows, self.domain.spec)
        near = np.flatnonzero(regret < WORST_REGRET)
        most = self.parameters["most_rows"]
        if len(near) > most:
            chances = np.exp(-2 * regret[near])
            near = random.choice(near, most, replace=False, p=chances / chances.sum())
        return rows.iloc[np.sort(near)].reset_index(drop=True), random

    def _points(
        self, rows: pd.DataFrame, columns: Sequence[str], variants: Sequence[str]
    ) -> np.ndarray:
        """Scaled features and an axis per variant: float64, shape (rows, axes)."""
        features = self.domain.features(rows)[list(columns)].to_numpy(dtype=float)
        scaled = Scaling(self.logs, self.means, self.deviations)(features)
        names = rows["variant"].to_numpy(dtype=object)[:, None]
        is_variant = names == np.array(variants, dtype=object)[None, :]
        return np.column_stack([scaled, VARIANT_DISTANCE * is_variant])

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by predicted time; the baseline comes first in ties."""
        found = self.fitted
        points = self._points(rows, found.columns, found.variants)
        logs = posterior_mean(self.scales, self.known, self.weights, points)
        residuals = found.mean + found.deviation * logs
        times = self.domain.cost_model.estimate(rows).time_ms * np.exp(residuals)
        return Judgement.by_time(times, self.domain.is_baseline(rows))

    def summary(self) -> dict[str, Any]:
        """Features that vary in training."""
        return {"features": [*self.fitted.columns, "variant"]}
