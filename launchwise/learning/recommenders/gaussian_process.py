"""A Gaussian process over log sizes and log tunables (Rasmussen and Williams, 2006)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from launchwise.base.arrays import read_arrays
from launchwise.base.errors import UserError
from launchwise.learning.hyperparameters import Hyperparameters
from launchwise.learning.matern import Kernel, fitted_kernel, posterior_mean, posterior_weights
from launchwise.learning.recommender import Judgement, Recommender
from launchwise.learning.regression import Scaling
from launchwise.learning.row_arrays import regrets
from launchwise.learning.stored import ProcessState

POINTS_FILE = "points.npz"
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

    stored: ClassVar[type[BaseModel]] = ProcessState

    class Parameters(Hyperparameters):
        most_rows: int = Field(1500, ge=2)
        rows_for_scales: int = Field(200, ge=2)
        iterations: int = Field(20, ge=0)

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn the residuals (see :meth:`Recommender.fit`).

        Raises
        ------
        UserError
            When there are no rows, or only rows that stopped early (``slow``).
        """
        rows, random = self._drawn(measurements)
        features = self.domain.features(rows)
        self._columns = [str(name) for name in features if features[name].nunique() > 1]
        self._variants = sorted(map(str, rows["variant"].unique()))
        self._scaling = Scaling.of(features[self._columns].to_numpy(dtype=float))
        points = self._points(rows)
        estimates = self.domain.cost_model.estimate(rows).time_ms
        logs = np.log(rows["time_ms"].to_numpy(dtype=float) / estimates)
        self._mean, self._deviation = float(logs.mean()), float(logs.std()) or 1.0
        target = (logs - self._mean) / self._deviation
        self._fit(points, target, random)
        return self

    def _fit(self, points: np.ndarray, target: np.ndarray, random: np.random.Generator) -> None:
        """Length scales from some points, then the exact posterior of all."""
        few = random.permutation(len(points))[: self.parameters["rows_for_scales"]]
        self._kernel = fitted_kernel(points[few], target[few], self.parameters["iterations"])
        self._known = points
        self._weights = posterior_weights(self._kernel, points, target)

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

    def _points(self, rows: pd.DataFrame) -> np.ndarray:
        """Scaled features and an axis per variant: float64, shape (rows, axes)."""
        features = self.domain.features(rows)[self._columns].to_numpy(dtype=float)
        names = rows["variant"].to_numpy(dtype=object)[:, None]
        is_variant = names == np.array(self._variants, dtype=object)[None, :]
        return np.column_stack([self._scaling(features), VARIANT_DISTANCE * is_variant])

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by predicted time; the baseline comes first in ties."""
        points = self._points(rows)
        logs = posterior_mean(self._kernel, self._known, self._weights, points)
        residuals = self._mean + self._deviation * logs
        times = self.domain.cost_model.estimate(rows).time_ms * np.exp(residuals)
        return Judgement.by_time(times, self.domain.is_baseline(rows))

    def summary(self) -> dict[str, Any]:
        """Features that vary in training."""
        return {"features": [*self._columns, "variant"], "features_dropped": []}

    def state(self) -> dict[str, Any]:
        """Features, scaling and kernel as JSON values."""
        return {
            "columns": self._columns,
            "variants": self._variants,
            "mean": self._mean,
            "deviation": self._deviation,
            "amplitude": self._kernel.amplitude,
            "scales": self._kernel.scales.tolist(),
            "noise": self._kernel.noise,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore from the result of :meth:`state`."""
        self._columns, self._variants = list(state["columns"]), list(state["variants"])
        self.domain.insist_on_features(self._columns)
        axes = len(self._columns) + len(self._variants)
        if {len(state["scales"]), self._known.shape[1]} != {axes}:
            raise ValueError("columns, variants and scales are not those of its points")
        self._mean, self._deviation = float(state["mean"]), float(state["deviation"])
        scales = np.array(state["scales"], dtype=float)
        self._kernel = Kernel(float(state["amplitude"]), scales, float(state["noise"]))

    def save_model(self, folder: Path) -> None:
        """Write ``points.npz``."""
        np.savez_compressed(
            folder / POINTS_FILE,
            known=self._known,
            weights=self._weights,
            logs=self._scaling.logs,
            mean=self._scaling.mean,
            deviation=self._scaling.deviation,
        )

    def load_model(self, folder: Path) -> None:
        """Read ``points.npz``."""
        path = folder / POINTS_FILE
        kept = read_arrays(path, "a model")
        try:
            self._known, self._weights = kept["known"], kept["weights"]
            self._scaling = Scaling(kept["logs"], kept["mean"], kept["deviation"])
        except KeyError as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error
