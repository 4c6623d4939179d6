"""C4.5 (Weka's J48) with configurations as classes."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender, tried
from launchwise.learning.row_arrays import configuration_codes, records_of, regrets
from launchwise.learning.splits import case_numbers
from launchwise.workloads.space import label

from .tree import C45Tree

RARE_BELOW = 3
"""Classes with fewer examples than this are named in the report."""


class C45Recommender(Recommender):
    """Predicts the configuration from problem and GPU alone.

    With ``examples: near_best`` every configuration within ``domain.near_best_percent`` of the best
    of its case is an example, and the examples of one case weigh 1 together. With ``all`` every
    training row is an example of weight 1, good or bad, as da Silva, Gomi and Senger count.

    Candidates are taken by their share in the leaf, then by their share in all of the training
    data, the baseline before whatever was never near the best: a class that is not feasible falls
    to the next.
    """

    class Parameters(Hyperparameters):
        examples: Literal["near_best", "all"] = "near_best"
        minimum: float = tried(2.0, 1.0, 5.0, ge=0)
        confidence: float = tried(0.25, 0.05, 0.5, gt=0, le=1)

    cross_validated = True

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn from measurements (see :meth:`Recommender.fit`). Raises UserError when there are no
        rows."""
        if measurements.empty:
            raise UserError("training rows", "", "there are none")
        spec = self.domain.spec
        chosen, weights = self.examples(measurements)
        features = self.domain.features(chosen)[self.domain.problem_features]
        varies = features.nunique() > 1
        self.columns = list(features.columns[varies])
        self.constant = sorted(features.columns[~varies])
        codes = configuration_codes(chosen, self.domain.choice_columns, spec)
        self.classes, numbers = np.unique(codes, return_inverse=True)
        first = np.unique(codes, return_index=True)[1]
        self._configurations = chosen[spec.tunable_columns].iloc[first].reset_index(drop=True)
        self._examples = np.bincount(numbers)
        self._shares = np.bincount(numbers, weights=weights) / weights.sum()
        self._tree = C45Tree(self.parameters["minimum"], self.parameters["confidence"])
        self._tree.fit(features[self.columns].to_numpy(), numbers, weights)
        return self

    def examples(self, measurements: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """Rows that are examples, and the weight of each, float64, shape (examples,)."""
        if self.parameters["examples"] == "all":
            return measurements.reset_index(drop=True), np.ones(len(measurements))
        near = np.log1p(self.domain.near_best_percent / 100)
        regret = regrets(measurements, self.domain.spec)
        chosen = measurements[regret <= near + 1e-12].reset_index(drop=True)
        cases = case_numbers(chosen, self.domain.spec)
        return chosen, 1 / np.bincount(cases)[cases]

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by share in the leaf, then in the training data; the baseline comes before none."""
        spec = self.domain.spec
        cases = case_numbers(rows, spec)
        first = np.unique(cases, return_index=True)[1]
        asked = self.domain.features(rows.iloc[first])[self.columns].to_numpy()
        shares = self._tree.distributions(asked)
        codes = configuration_codes(rows, self.domain.choice_columns, spec)
        found = np.searchsorted(self.classes, codes).clip(max=len(self.classes) - 1)
        known = self.classes[found] == codes
        in_leaf = np.where(known, shares[cases, found], 0.0)
        overall = np.where(known, self._shares[found], 0.0)
        never = ~known & ~self.domain.is_baseline(rows)
        last = self.domain.last_of_ties(rows)
        return Judgement.without_times(-in_leaf, -overall, never, last)

    def summary(self) -> dict[str, Any]:
        """Leaves, classes, classes of fewer than :data:`RARE_BELOW` examples, features."""
        rare = records_of(self._configurations[self._examples < RARE_BELOW])
        return {
            "features": self.columns,
            "features_dropped": self.constant,
            "leaves": self._tree.leaves,
            "classes": len(self.classes),
            "examples": int(self._examples.sum()),
            "rare_classes": sorted(label(each, self.domain.spec) for each in rare),
        }

    def state(self) -> dict[str, Any]:
        return {
            "columns": self.columns,
            "constant": self.constant,
            "classes": self.classes.tolist(),
            "configurations": self._configurations.to_dict("list"),
            "examples": self._examples.tolist(),
            "shares": self._shares.tolist(),
            "tree": self._tree.plain(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.columns, self.constant = list(state["columns"]), list(state["constant"])
        self.classes = np.asarray(state["classes"], dtype=np.int64)
        self._configurations = pd.DataFrame(state["configurations"])
        self._examples = np.asarray(state["examples"], dtype=np.int64)
        self._shares = np.asarray(state["shares"], dtype=float)
        self._tree = C45Tree(self.parameters["minimum"], self.parameters["confidence"])
        self._tree.restore(state["tree"])
