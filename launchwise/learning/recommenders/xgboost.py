"""Gradient-boosted trees (Chen and Guestrin, 2016)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from launchwise.base import work
from launchwise.learning.boosters import XgboostBooster
from launchwise.learning.recommender import tried
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.trees import OfTrees


class XgboostRecommender(OfTrees, TimeRegressor):
    """XGBoost's ``hist`` trees on one thread, stored as its JSON."""

    kept_as = XgboostBooster

    class Parameters(TimeRegressor.Parameters):
        rounds: int = Field(100, ge=1)
        eta: float = tried(0.2, 0.05, 0.3, log=True, gt=0, le=1)
        max_depth: int = tried(7, 4, 10, ge=0)
        min_child_weight: float = tried(1.0, 0.1, 10.0, log=True, ge=0)
        subsample: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
        colsample_bytree: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the boosted trees. Shapes: features (rows, features), float32; target and weights
        (rows,), float64."""
        import xgboost

        work.count(work.FITTED, len(target) * self.parameters["rounds"])
        names = ("eta", "max_depth", "min_child_weight", "subsample", "colsample_bytree", "seed")
        data = xgboost.QuantileDMatrix(features, target, weight=weights, nthread=1)
        fitted = xgboost.train(
            {name: self.parameters[name] for name in names}
            | {"tree_method": "hist", "nthread": 1, "verbosity": 0},
            data,
            num_boost_round=self.parameters["rounds"],
        )
        self.trees = XgboostBooster(fitted)
