"""k nearest neighbours (Fix and Hodges, 1951; Cover and Hart, 1967)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.learning.recommender import tried
from launchwise.learning.regression import Scaling, TimeRegressor
from launchwise.tables.rows import row_numbers

PIECE = 512  # Rows asked at once: the distances of so many to all known ones stay in the cache
ROUNDING = 1e-5  # Largest error of a squared distance, relative to the squares it is made of
DIGITS = 9  # Distances that agree in so many digits are the same: the first known row is nearer


class KnnRecommender(TimeRegressor):
    """Mean of the k nearest training rows among those of the nearest problems.

    Features are compared by ratio: log2 of what is positive, then unit deviation
    (``scaling: log``), or as they are (``scaling: none``). Neighbours are weighed by inverse
    distance (``weights: distance``) or alike (``uniform``); ``focus`` has no effect. Neighbours are
    sought in the ``problems`` training problems (on their GPU) that are nearest by the features
    that no tunable changes; in all rows where it is None. The search compares every two rows: a
    tree of 40 dimensions is slower.
    """

    arrays = ("points", "target", "of_problem")

    class Parameters(TimeRegressor.Parameters):
        k: int = tried(3, 1, 12, ge=1)
        weights: Literal["uniform", "distance"] = tried("distance")
        scaling: Literal["log", "none"] = tried("log")
        problems: int | None = Field(10, ge=1)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Store features, float32 (rows, features), and target, float64 (rows,)."""
        names = set(self.domain.problem_features)
        self.of_problem = np.array([name in names for name in self.columns], dtype=bool)
        self.points, self.target = np.asarray(features, dtype=np.float32), target
        self._prepare()

    def _prepare(self) -> None:
        self._scaling = Scaling.of(self.points)
        scaled = self._scaled(self.points)
        # Around their mean, so that few digits are lost in the differences of squares.
        self._centre = scaled.mean(axis=0)
        problems = self._problems(self.points)
        self._order = np.argsort(problems, kind="stable")
        self._starts = np.searchsorted(problems[self._order], np.arange(problems.max() + 2))
        self._known = (scaled - self._centre)[self._order].astype(np.float32)
        self._squares = (self._known**2).sum(axis=1)
        self._problem_points = self._known[self._starts[:-1]][:, self.of_problem]

    def _scaled(self, points: np.ndarray) -> np.ndarray:
        if self.parameters["scaling"] == "log":
            return self._scaling(points)
        return np.asarray(points, dtype=float)

    def _problems(self, points: np.ndarray) -> np.ndarray:
        """Number of each row's problem; one for all where neighbours are sought in all rows."""
        if self.parameters["problems"] is None or not self.of_problem.any():
            return np.zeros(len(points), dtype=np.int64)
        table = pd.DataFrame(points[:, self.of_problem])
        return row_numbers(table, list(table.columns))

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Weighted mean target of the neighbours: float64, shape (rows,)."""
        asked = (self._scaled(features) - self._centre).astype(np.float32)
        problems = self._problems(features)
        order = np.argsort(problems, kind="stable")
        pieces = np.split(order, np.flatnonzero(np.diff(problems[order])) + 1)
        found = np.empty(len(asked))
        for rows in pieces if len(order) else []:
            known = self._nearby(asked[rows[0], self.of_problem])
            for start in range(0, len(rows), PIECE):
                part = rows[start : start + PIECE]
                found[part] = self._mean(asked[part], known)
        return found

    def _nearby(self, problem: np.ndarray) -> np.ndarray:
        """Known rows of the training problems nearest to a problem, shape (features of it,)."""
        distances = ((self._problem_points - problem) ** 2).sum(axis=1)
        count = min(self.parameters["problems"] or 1, len(distances))
        nearest = np.argpartition(distances, count - 1)[:count]
        pieces = [np.arange(self._starts[each], self._starts[each + 1]) for each in nearest]
        return np.concatenate(pieces)

    def _mean(self, asked: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Mean target of the k nearest of the known rows, shape (asked,)."""
        count = min(self.parameters["k"], len(known))
        points = self._known[known]
        # Their rounding depends on what is asked together: it must not decide between neighbours
        # at the same distance, of which a grid of tunables has many.
        distances = self._squares[known] - 2 * (asked @ points.T)
        largest = float((asked**2).sum(axis=1).max() + self._squares[known].max())
        near = np.sort(_smallest(distances, count, ROUNDING * largest), axis=1)
        apart = np.linalg.norm(points[near].astype(float) - asked[:, None], axis=2)
        first = np.argsort(np.round(apart, DIGITS), axis=1, kind="stable")[:, :count]
        nearest, apart = (np.take_along_axis(each, first, axis=1) for each in (near, apart))
        values = self.target[self._order[known[nearest]]]
        if self.parameters["weights"] == "uniform":
            return np.asarray(values.mean(axis=1))
        # A row that was measured itself has neighbours at distance 0, and those decide alone.
        weights = 1 / np.maximum(apart, 1e-6)
        return np.asarray((weights * values).sum(axis=1) / weights.sum(axis=1))

    def load_model(self, folder: Path) -> None:
        """Read the known rows."""
        super().load_model(folder)
        self._prepare()


def _smallest(values: np.ndarray, count: int, beyond: float) -> np.ndarray:
    """Columns of the smallest values of each row, and of those of other rows that lie up to
    ``beyond`` above the last of them: shape (rows, at least count); overwrites ``values``. They are
    few: to look for one after the other is faster than to sort."""
    rows = np.arange(len(values))
    found: list[np.ndarray] = []
    reach = np.full(len(values), np.inf)
    while len(found) < values.shape[1]:
        place = values.argmin(axis=1)
        least = values[rows, place]
        if len(found) >= count and (least > reach).all():
            break
        found.append(place)
        values[rows, place] = np.inf
        if len(found) == count:
            reach = least + beyond
    return np.stack(found, axis=1)
