"""Gradient-boosted trees grown leaf by leaf (Ke et al., 2017)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from launchwise.learning.boosters import (
    BOOSTING,
    boosted,
    read_booster,
    sum_of_trees,
    write_booster,
)
from launchwise.learning.regression import TimeRegressor


class LightgbmRecommender(TimeRegressor):
    """LightGBM, deterministic and on one thread, stored as its own text."""

    defaults: ClassVar[dict[str, Any]] = {
        **TimeRegressor.defaults,
        "rounds": 100,
        "learning_rate": 0.15,
        "num_leaves": 47,
        "min_data_in_leaf": 5,
        "bagging_fraction": 0.8,
        "feature_fraction": 0.8,
    }

    allowed: ClassVar[dict[str, Any]] = {**TimeRegressor.allowed, **BOOSTING}

    @classmethod
    def suggest(cls, trial: Any) -> dict[str, Any]:
        """Learning rate, leaves, smallest leaf, shares of rows and of features, focus."""
        return {
            "learning_rate": trial.suggest_float("learning_rate", 0.05, 0.3, log=True),
            "num_leaves": trial.suggest_int("num_leaves", 15, 127, log=True),
            "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 2, 20),
            "bagging_fraction": trial.suggest_float("bagging_fraction", 0.5, 1.0),
            "feature_fraction": trial.suggest_float("feature_fraction", 0.5, 1.0),
            "focus": trial.suggest_float("focus", 0.0, 6.0),
        }

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the boosted trees.

        Shapes: features (rows, features), float32; target and weights (rows,), float64.
        """
        self._booster = boosted(
            self.parameters, features, target, weights, min_sum_hessian_in_leaf=1e-3
        )

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Sum of the trees' predictions: float64, shape (rows,)."""
        return sum_of_trees(self._booster, features)

    def save_model(self, folder: Path) -> None:
        """Write ``model.txt.gz``."""
        write_booster(self.model_file(folder, "txt.gz"), self._booster)

    def model_width(self) -> int:
        """Number of features of the booster."""
        return int(self._booster.num_feature())

    def load_model(self, folder: Path) -> None:
        """Read ``model.txt.gz``."""
        self._booster = read_booster(self.model_file(folder, "txt.gz"))
