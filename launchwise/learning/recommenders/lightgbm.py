"""Gradient-boosted trees grown leaf by leaf (Ke et al., 2017)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from launchwise.learning.boosters import (
    BoostingParameters,
    boosted,
    read_booster,
    sum_of_trees,
    write_booster,
)
from launchwise.learning.hyperparameters import tried
from launchwise.learning.regression import TimeRegressor


class LightgbmRecommender(TimeRegressor):
    """LightGBM, deterministic and on one thread, stored as its own text."""

    class Parameters(TimeRegressor.Parameters, BoostingParameters):
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

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
