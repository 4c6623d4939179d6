"""A Gaussian process over log sizes and log tunables (Rasmussen and Williams, 2006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.typed import Strict
from launchwise.learning.hyperparameters import Hyperparameters
from launchwise.learning.matern import Kernel, fitted_kernel, posterior_mean, posterior_weights
from launchwise.learning.recommender import Judgement, Recommender
from launchwise.learning.regression import Scaling
from launchwise.learning.row_arrays import regrets
from launchwise.learning.stored import LARGEST_LOG, Log

VARIANT_DISTANCE = 2.0
"""Distance of two variants along each of their axes, in deviations of a feature."""

WORST_REGRET = float(np.log(3.0))
"""Rows that take longer than three times the best tell nothing of the best."""


class GaussianProcessRecommender(Recommender):
    """Time = cost model x exp(residual of a Gaussian process).

    The kernel is a Matern 3/2 with a length scale for each feature, and noise (see
    :mod:`launchwise.learning.matern`). Trees step from one measured size to the next; this
    interpolates. Exact inference takes the cube of the rows: ``most_rows`` of them are drawn, each
    with a probability in proportion to (best / time)^2, and the length scales are fitted to
    ``rows_for_scales`` of those in ``iterations`` steps of L-BFGS.
    """

    class Fitted(Strict):
        # Features that vary, and variants.
        columns: list[str]
        variants: list[str]
        # Of the logarithms that are learnt.
        mean: Log
        deviation: Annotated[float, Field(gt=0, le=LARGEST_LOG)]
        # See `launchwise.learning.matern.Kernel`.
        amplitude: Annotated[float, Field(gt=0, le=1e12)]
        scales: list[Annotated[float, Field(gt=1e-12, le=1e12)]]
        noise: Annotated[float, Field(ge=0, le=1e12)]

    arrays = ("known", "weights", "logs", "means", "deviations")

    class Parameters(Hyperparameters):
        most_rows: int = Field(1500, ge=2)
        rows_for_scales: int = Field(200, ge=2)
        iterations: int = Field(20, ge=0)

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn the residuals (see :meth:`Recommender.fit`).

        Raises UserError when there are no rows, or only rows that stopped early (``slow``).
        """
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
        self.fitted = self.Fitted(
            **{"columns": columns, "variants": variants, "mean": mean, "deviation": deviation},
            **{"amplitude": kernel.amplitude, "scales": kernel.scales.tolist()},
            noise=kernel.noise,
        )
        return self

    def _drawn(self, measurements: pd.DataFrame) -> tuple[pd.DataFrame, np.random.Generator]:
        """Rows that are learnt from, and the generator that drew them."""
        random = np.random.default_rng(self.parameters["seed"])
        rows = measurements
        if "status" in rows:
            rows = rows[rows["status"] != "slow"].reset_index(drop=True)
        if rows.empty:
            raise UserError("training rows", "", "there are none, or every row stopped early")
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
        kernel = Kernel(found.amplitude, np.array(found.scales), found.noise)
        points = self._points(rows, found.columns, found.variants)
        logs = posterior_mean(kernel, self.known, self.weights, points)
        residuals = found.mean + found.deviation * logs
        times = self.domain.cost_model.estimate(rows).time_ms * np.exp(residuals)
        return Judgement.by_time(times, self.domain.is_baseline(rows))

    def summary(self) -> dict[str, Any]:
        """Features that vary in training."""
        return {"features": [*self.fitted.columns, "variant"], "features_dropped": []}

    def restore(self, state: dict[str, Any]) -> None:
        """Insist on the domain's features, and on scales of the points."""
        found = self.fitted
        self.domain.insist_on_features(found.columns)
        axes = len(found.columns) + len(found.variants)
        if {len(found.scales), self.known.shape[1]} != {axes}:
            raise ValueError("columns, variants and scales are not those of its points")
