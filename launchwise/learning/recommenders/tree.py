"""One regression tree (CART: Breiman, Friedman, Olshen and Stone, 1984)."""

from __future__ import annotations

from typing import Any

import numpy as np

from launchwise.base import work
from launchwise.learning.recommender import tried
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.trees import OfTrees, Trees


class TreeRecommender(OfTrees, TimeRegressor):
    """scikit-learn's ``DecisionTreeRegressor``, stored as arrays."""

    class Parameters(TimeRegressor.Parameters):
        max_depth: int | None = tried(18, 6, 30, ge=1)
        min_samples_split: int = tried(4, 2, 20, ge=2)
        min_samples_leaf: int = tried(1, 1, 5, ge=1)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the tree. Shapes: features (rows, features), float32; target and weights (rows,),
        float64."""
        from sklearn.tree import DecisionTreeRegressor

        work.count(work.FITTED, len(target))
        tree = DecisionTreeRegressor(
            max_depth=self.parameters["max_depth"],
            min_samples_split=self.parameters["min_samples_split"],
            min_samples_leaf=self.parameters["min_samples_leaf"],
            random_state=self.parameters["seed"],
        )
        tree.fit(features, target, sample_weight=weights)
        self.trees = Trees.of([tree], tree)

    def summary(self) -> dict[str, Any]:
        """Summary of the regressor, and the number of leaves."""
        return {**super().summary(), "leaves": self.trees.leaves}
