"""One regression tree (CART: Breiman, Friedman, Olshen and Stone, 1984)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base import work
from launchwise.learning.hyperparameters import tried
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.trees import Trees, load_trees, save_trees


class TreeRecommender(TimeRegressor):
    """scikit-learn's ``DecisionTreeRegressor``, stored as arrays."""

    class Parameters(TimeRegressor.Parameters):
        max_depth: int | None = tried(18, 6, 30, ge=1)
        min_samples_split: int = tried(4, 2, 20, ge=2)
        min_samples_leaf: int = tried(1, 1, 5, ge=1)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the tree.

        Shapes: features (rows, features), float32; target and weights (rows,), float64.
        """
        from sklearn.tree import DecisionTreeRegressor

        work.count(work.FITTED, len(target))
        tree = DecisionTreeRegressor(
            max_depth=self.parameters["max_depth"],
            min_samples_split=self.parameters["min_samples_split"],
            min_samples_leaf=self.parameters["min_samples_leaf"],
            random_state=self.parameters["seed"],
        )
        tree.fit(features, target, sample_weight=weights)
        self._trees = Trees.of([tree], tree)

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Mean target in the leaf of each row: float64, shape (rows,)."""
        return self._trees.mean(features)

    def summary(self) -> dict[str, Any]:
        """Summary of the regressor, and the number of leaves."""
        return {**super().summary(), "leaves": self._trees.leaves}

    def save_model(self, folder: Path) -> None:
        """Write ``model.npz``."""
        save_trees(self.model_file(folder, "npz"), self._trees)

    def model_width(self) -> int:
        """Number of features of the trees."""
        return self._trees.features

    def load_model(self, folder: Path) -> None:
        """Read ``model.npz``, arrays only."""
        self._trees = load_trees(self.model_file(folder, "npz"))
