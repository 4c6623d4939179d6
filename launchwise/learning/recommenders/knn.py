"""k nearest neighbours (Fix and Hodges, 1951; Cover and Hart, 1967)."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file
from launchwise.learning.regression import Scaling, TimeRegressor

WEIGHTS = ("uniform", "distance")
SCALINGS = ("log", "none")


class KnnRecommender(TimeRegressor):
    """Mean of the k nearest training rows, found with SciPy's k-d tree; stored as arrays.

    Features are compared by ratio: log2 of what is positive, then unit deviation
    (``scaling: log``), or as they are (``scaling: none``). Neighbours are weighed by inverse
    distance (``weights: distance``) or alike (``uniform``); ``focus`` has no effect. ``slack``
    allows neighbours at most so much farther than the true ones, which makes a search in 20
    dimensions several times faster; 0 is exact.
    """

    defaults: ClassVar[dict[str, Any]] = {
        **TimeRegressor.defaults,
        "k": 3,
        "weights": "distance",
        "scaling": "log",
        "slack": 0.5,
    }

    @classmethod
    def suggest(cls, trial: Any) -> dict[str, Any]:
        """Neighbours, their weights, scaling of features."""
        return {
            "k": trial.suggest_int("k", 1, 12),
            "weights": trial.suggest_categorical("weights", list(WEIGHTS)),
            "scaling": trial.suggest_categorical("scaling", list(SCALINGS)),
        }

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Store scaled features, float32 (rows, features), target and weights, float64 (rows,)."""
        for name, allowed in (("weights", WEIGHTS), ("scaling", SCALINGS)):
            if self.parameters[name] not in allowed:
                message = f"{self.parameters[name]!r} is not among {', '.join(allowed)}"
                raise UserError("config.yaml", f"models.parameters.{name}", message)
        self._points, self._values = np.asarray(features, dtype=np.float32), target
        self._prepare()

    def _prepare(self) -> None:
        from scipy.spatial import KDTree

        self._scaling = Scaling.of(self._points)
        self._tree = KDTree(self._scaled(self._points))

    def _scaled(self, points: np.ndarray) -> np.ndarray:
        return self._scaling(points) if self.parameters["scaling"] == "log" else points

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Weighted mean target of the neighbours: float64, shape (rows,)."""
        count = min(self.parameters["k"], len(self._values))
        asked = self._scaled(features)
        distance, nearest = self._tree.query(
            asked, k=np.arange(1, count + 1), eps=self.parameters["slack"]
        )
        if self.parameters["weights"] == "uniform":
            return np.asarray(self._values[nearest].mean(axis=1))
        # A row that was measured itself has neighbours at distance 0, and those decide alone.
        weights = 1 / np.maximum(distance, 1e-6)
        return np.asarray((weights * self._values[nearest]).sum(axis=1) / weights.sum(axis=1))

    def save_model(self, folder: Path) -> None:
        """Write ``model.npz``."""
        with whole_file(self.model_file(folder, "npz")) as scratch, open(scratch, "wb") as file:
            np.savez_compressed(file, points=self._points, target=self._values)

    def load_model(self, folder: Path) -> None:
        """Read ``model.npz``, arrays only."""
        path = self.model_file(folder, "npz")
        try:
            with np.load(path, allow_pickle=False) as stored:
                self._points, self._values = stored["points"], stored["target"]
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error
        self._prepare()
