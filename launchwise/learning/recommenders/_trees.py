"""Models of trees: one, a forest, one that names configurations; boosted ones.

A regression tree (CART: Breiman, Friedman, Olshen and Stone, 1984), a random forest (Breiman,
2001), and a tree from problems to the configurations that were fastest. Tuners that choose by size
at run time learn one like the last, Helion's for one. It sees no times: of a training problem the
fastest configuration alone counts, however near the others were. Gradient boosting: Chen and
Guestrin, 2016; Ke et al., 2017.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.base import work
from launchwise.base.errors import UserError
from launchwise.learning.baselines import comparable
from launchwise.learning.boosters import BoostingParameters, boosted, grown_by_xgboost
from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender, tried
from launchwise.learning.regression import TimeRegressor
from launchwise.learning.row_arrays import configuration_codes
from launchwise.learning.splits import case_numbers
from launchwise.learning.trees import LEAF, Grown, OfTrees, Trees
from launchwise.tables.rows import fastest_rows


class TreeRecommender(OfTrees, TimeRegressor):
    """scikit-learn's ``DecisionTreeRegressor``."""

    class Parameters(TimeRegressor.Parameters):
        max_depth: int | None = tried(18, 6, 30, ge=1)
        min_samples_split: int = tried(4, 2, 20, ge=2)
        min_samples_leaf: int = tried(1, 1, 5, ge=1)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the tree."""
        from sklearn.tree import DecisionTreeRegressor

        work.count(work.FITTED, len(target))
        names = ("max_depth", "min_samples_split", "min_samples_leaf")
        tree = DecisionTreeRegressor(**self._given(*names))
        tree.fit(features, target, sample_weight=weights)
        self.trees = Grown.of(tree, [tree])

    def summary(self) -> dict[str, Any]:
        """Summary of the regressor, and the number of leaves."""
        return {**super().summary(), "leaves": self.arrays_of_trees.leaves}


class ForestRecommender(OfTrees, TimeRegressor):
    """scikit-learn's ``RandomForestRegressor``. ``rows_per_tree`` caps the
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
        """Fit the forest."""
        from sklearn.ensemble import RandomForestRegressor

        cap = self.parameters["rows_per_tree"]
        drawn = cap if cap and cap < len(target) else len(target)
        work.count(work.FITTED, drawn * self.parameters["n_estimators"])
        names = ("n_estimators", "max_depth", "min_samples_split", "max_features")
        most = drawn if drawn < len(target) else None
        forest = RandomForestRegressor(**self._given(*names), max_samples=most, n_jobs=1)
        forest.fit(features, target, sample_weight=weights)
        self.trees = Grown.of(forest, forest.estimators_)


class BestTreeRecommender(OfTrees, Recommender):
    """scikit-learn's ``DecisionTreeClassifier`` over the fastest configuration of each problem.
    Where the configuration of a leaf is infeasible, the baseline is the answer."""

    class Parameters(Hyperparameters):
        max_depth: int | None = tried(20, 2, 20, ge=1)
        min_samples_leaf: int = tried(1, 1, 5, ge=1)

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn which configuration is the fastest of a problem on a GPU. Raises UserError when
        there are no rows."""
        from sklearn.tree import DecisionTreeClassifier

        if measurements.empty:
            raise UserError("training rows", "", "there are none")
        spec = self.domain.spec
        rows, _ = comparable(measurements, self.domain)
        best = fastest_rows(rows, ["gpu", *spec.problem_columns], spec)
        tree = DecisionTreeClassifier(**self._given("max_depth", "min_samples_leaf"))
        tree.fit(self._features(best), self._choices(best))
        # A leaf's value is the number of its configuration.
        trees = Trees.of([tree])
        chosen = tree.classes_[tree.tree_.value[:, 0, :].argmax(axis=1)].astype(float)
        self.trees = replace(trees, value=np.where(trees.feature == LEAF, chosen, 0.0))
        return self

    def _features(self, rows: pd.DataFrame) -> np.ndarray:
        """Features of problem and GPU: float32, shape (rows, features)."""
        found = self.domain.features(rows)[self.domain.problem_features]
        return found.to_numpy(dtype=np.float32)

    def _choices(self, rows: pd.DataFrame) -> np.ndarray:
        return configuration_codes(rows, self.domain.choice_columns, self.domain.spec)

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score 0 for the configuration of a problem's leaf, 1 for every other row."""
        cases = case_numbers(rows, self.domain.spec)
        first = np.unique(cases, return_index=True)[1]
        chosen = self.trees.predict(self._features(rows.iloc[first]))[cases]
        other = (self._choices(rows) != chosen).astype(float)
        return Judgement.without_times(other, self.domain.last_of_ties(rows))

    def summary(self) -> dict[str, Any]:
        """Features, and the number of leaves."""
        return {"features": self.domain.problem_features, "leaves": self.arrays_of_trees.leaves}


class LightgbmRecommender(OfTrees, TimeRegressor):
    """LightGBM, deterministic and on one thread."""

    class Parameters(TimeRegressor.Parameters, BoostingParameters):
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the boosted trees."""
        self.trees = boosted(
            self.parameters, features, target, weights, min_sum_hessian_in_leaf=1e-3
        )


class XgboostRecommender(OfTrees, TimeRegressor):
    """XGBoost's ``hist`` trees on one thread."""

    class Parameters(TimeRegressor.Parameters):
        rounds: int = Field(100, ge=1)
        eta: float = tried(0.2, 0.05, 0.3, log=True, gt=0, le=1)
        max_depth: int = tried(7, 4, 10, ge=0)
        min_child_weight: float = tried(1.0, 0.1, 10.0, log=True, ge=0)
        subsample: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
        colsample_bytree: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
        focus: float = tried(2.0, 0.0, 6.0, ge=0)

    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the boosted trees."""
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
        self.trees = grown_by_xgboost(fitted)
