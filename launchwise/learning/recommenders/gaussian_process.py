"""A Gaussian process over log sizes and log tunables, with a Matern 3/2 kernel.

Its scales and weights are those of :mod:`launchwise.search.posterior`; the mean at many points is
computed here, in single precision.
"""

from __future__ import annotations

import math
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
from launchwise.search.posterior import Matern, Prior, Process, apart

RESIDUAL = Prior(
    kernel=Matern.ONCE,
    level=0.0,
    medians=(3.0, 1.0, 0.1, 1.0),
    vary=(math.inf,) * 4,
    limits=((0.2, 1e3), (3e-3, 300.0), (3e-3, 1.0), (1.0, 1.0)),
    power=2.0,
)
"""Of residuals of mean 0 and deviation 1. A length at its limit belongs to an axis without
influence."""

PIECE = 256
"""Points predicted at once: the distances of so many to all known ones stay in the cache."""


def residuals(points: np.ndarray) -> Process:
    """Before anything is learnt. ``points``: float64, shape (points, axes)."""
    return Process(points, np.empty((len(points), 0)), RESIDUAL)


def posterior_mean(
    scales: np.ndarray, points: np.ndarray, weights: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    """Mean of the function at other points: float64, shape (asked,), good to about 1e-5 of the
    weights' size. ``scales``, ``points``, ``weights``: lengths of the axes, known points, and what
    :meth:`Process.weights` gave for them; ``asked``: shape (asked, axes)."""
    # Around their mean, so that few digits are lost in the differences of squares.
    centre = points.mean(axis=0)
    known = ((points - centre) / scales).astype(np.float32)
    others = ((asked - centre) / scales).astype(np.float32)
    of_known = weights.astype(np.float32)
    found = np.empty(len(others))
    for start in range(0, len(others), PIECE):
        piece = slice(start, start + PIECE)
        found[piece] = RESIDUAL.kernel.of(apart(others[piece], known)) @ of_known
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
        process = residuals(points)
        process.fit(few, target[few], self.parameters["iterations"])
        # Scales from some points, then the exact posterior of all.
        process.condition(np.arange(len(points)))
        self.known, self.weights = points, process.weights(target)
        self.scales = process.scales.lengths
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
