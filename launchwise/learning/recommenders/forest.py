"""A random forest (Breiman, 2001)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from launchwise.base import work
from launchwise.learning.recommender import tried
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.trees import OfTrees, Trees


class ForestRecommender(OfTrees, TimeRegressor):
    """scikit-learn's ``RandomForestRegressor``, stored as arrays. ``rows_per_tree`` caps the
    bootstrap sample of a tree: trees of a forest differ by their samples anyway, and a tree's cost
    grows faster than its sample."""

    class Parameters(TimeRegressor.Parameters):
        n_estimators: int = tried(23, 10, 40, ge=1)
        max_depth: int | None = tried(18, 8, 24, ge=1)
        min_samples_split: int = tried(2, 2, 20, ge=2)
        max_features: float = tried(0.6, 0.3, 1.0, gt=0, le=1)
        rows_per_tree: int | None = Field(5000, ge=0)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the forest. Shapes: features (rows, features), float32; target and weights (rows,),
        float64."""
        from sklearn.ensemble import RandomForestRegressor

        cap = self.parameters["rows_per_tree"]
        drawn = cap if cap and cap < len(target) else len(target)
        work.count(work.FITTED, drawn * self.parameters["n_estimators"])
        forest = RandomForestRegressor(
            n_estimators=self.parameters["n_estimators"],
            max_depth=self.parameters["max_depth"],
            min_samples_split=self.parameters["min_samples_split"],
            max_features=self.parameters["max_features"],
            max_samples=drawn if drawn < len(target) else None,
            random_state=self.parameters["seed"],
            n_jobs=1,
        )
        forest.fit(features, target, sample_weight=weights)
        self.trees = Trees.of(forest.estimators_, forest)
