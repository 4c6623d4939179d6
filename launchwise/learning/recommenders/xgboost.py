"""Gradient-boosted trees (Chen and Guestrin, 2016)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from launchwise.base import work
from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file
from launchwise.learning.booster_trees import StoredBooster, xgboost_trees
from launchwise.learning.hyperparameters import tried
from launchwise.learning.regression import TimeRegressor


class XgboostRecommender(TimeRegressor):
    """XGBoost's ``hist`` trees on one thread, stored as UBJ."""

    class Parameters(TimeRegressor.Parameters):
        rounds: int = Field(100, ge=1)
        eta: float = tried(0.2, 0.05, 0.3, log=True, gt=0, le=1)
        max_depth: int = tried(7, 4, 10, ge=0)
        min_child_weight: float = tried(1.0, 0.1, 10.0, log=True, ge=0)
        subsample: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
        colsample_bytree: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the boosted trees.

        Shapes: features (rows, features), float32; target and weights (rows,), float64.
        """
        import xgboost

        work.count(work.FITTED, len(target) * self.parameters["rounds"])
        names = ("eta", "max_depth", "min_child_weight", "subsample", "colsample_bytree", "seed")
        data = xgboost.QuantileDMatrix(features, target, weight=weights, nthread=1)
        self._booster: Any = xgboost.train(
            {name: self.parameters[name] for name in names}
            | {"tree_method": "hist", "nthread": 1, "verbosity": 0},
            data,
            num_boost_round=self.parameters["rounds"],
        )

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Sum of the trees' predictions: float64, shape (rows,)."""
        booster = self._booster
        if isinstance(booster, StoredBooster):
            found = booster.sum(features)
            if found is not None:
                return found
            booster = booster.loaded
        work.count(work.ASKED, len(features) * booster.num_boosted_rounds())
        return np.asarray(booster.inplace_predict(features), dtype=float)

    def save_model(self, folder: Path) -> None:
        """Write ``model.ubj``."""
        # XGBoost picks the format by the name's ending, which a scratch file does not have.
        with whole_file(self.model_file(folder, "ubj")) as scratch:
            booster = self._booster
            if isinstance(booster, StoredBooster):
                scratch.write_bytes(booster.content)
            else:
                scratch.write_bytes(booster.save_raw(raw_format="ubj"))

    def model_width(self) -> int:
        """Number of features of the booster."""
        return int(self._booster.num_features())

    def load_model(self, folder: Path) -> None:
        """Read ``model.ubj``."""
        path = self.model_file(folder, "ubj")
        try:
            content = path.read_bytes()
            self._booster = StoredBooster(content, xgboost_trees(content), "xgboost", _loaded)
        except (OSError, ValueError) as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error


def _loaded(content: bytes) -> Any:
    import xgboost

    booster = xgboost.Booster({"nthread": 1})
    try:
        booster.load_model(bytearray(content))
    except xgboost.core.XGBoostError as error:
        raise ValueError(str(error)) from error
    return booster
