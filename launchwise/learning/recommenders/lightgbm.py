"""Gradient-boosted trees grown leaf by leaf (Ke et al., 2017)."""

from __future__ import annotations

import numpy as np

from launchwise.learning.boosters import BoostingParameters, LightgbmBooster, boosted
from launchwise.learning.recommender import tried
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.trees import OfTrees


class LightgbmRecommender(OfTrees, TimeRegressor):
    """LightGBM, deterministic and on one thread, stored as its own text."""

    kept_as = LightgbmBooster

    class Parameters(TimeRegressor.Parameters, BoostingParameters):
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the boosted trees. Shapes: features (rows, features), float32; target and weights
        (rows,), float64."""
        self.trees = boosted(
            self.parameters, features, target, weights, min_sum_hessian_in_leaf=1e-3
        )
