"""One regression tree (CART: Breiman, Friedman, Olshen and Stone, 1984)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from launchwise.base import work
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.trees import Trees, load_trees, save_trees


class TreeRecommender(TimeRegressor):
    """scikit-learn's ``DecisionTreeRegressor``, stored as arrays."""

    defaults: ClassVar[dict[str, Any]] = {
        **TimeRegressor.defaults,
        "max_depth": 18,
        "min_samples_split": 4,
        "min_samples_leaf": 1,
    }

    allowed: ClassVar[dict[str, Any]] = {
        **TimeRegressor.allowed,
        "max_depth": [(1, None), None],
        "min_samples_split": [(2, None)],
        "min_samples_leaf": [(1, None)],
    }

    @classmethod
    def suggest(cls, trial: Any) -> dict[str, Any]:
        """Depth, smallest split and leaf, focus."""
        return {
            "max_depth": trial.suggest_int("max_depth", 6, 30),
            "min_samples_split": trial.suggest_int("min_samples_split", 2, 20),
            "min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 5),
            "focus": trial.suggest_float("focus", 0.0, 6.0),
        }

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
