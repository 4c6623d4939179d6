"""Which configuration an unlisted problem gets: the model's choice among few, as trees.

A study's answering model needs its libraries, hundreds of candidates and a model of costs. What it
says of drawn problems is learnt anew by boosted trees over expressions that every language can
compute; they judge the configurations that the model chose anywhere. Sums of doubles in the same
order are the same in every language, so every door has the same choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from pydantic import ConfigDict

from launchwise.base.vectors import Columns
from launchwise.exporting.formulas import Ratio
from launchwise.learning.boosters import BoostingParameters, boosted, lightgbm_trees
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import arrays
from launchwise.learning.trees import Trees
from launchwise.tables.rows import least_by, row_numbers

LARGEST_LOSS = 3.0
"""Log time over that of the best candidate above which more makes no difference."""

SHARPNESS = 0.15
"""Loss at which a row weighs half as much as the best one."""


@dataclass(frozen=True)
class Judge:
    """Trees of one device: their sum is the log time of a candidate relative to the best one."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    starts: tuple[int, ...]  # first node of each tree
    feature: tuple[int, ...]  # number of the feature that a node compares; -1: it is a leaf
    threshold: tuple[float, ...]  # a feature up to it goes left
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[float, ...]  # of a leaf

    def is_whole(self, features: int) -> bool:
        """Whether every way from a root ends in a leaf."""
        numbers = [
            np.array(each, np.int64) for each in (self.starts, self.feature, self.left, self.right)
        ]
        starts, feature, *children = numbers
        threshold, value = np.array(self.threshold), np.array(self.value)
        try:
            Trees(features, starts, feature, threshold, np.column_stack(children), value)
        except ValueError:
            return False
        return True

    def sum(self, features: Sequence[float]) -> float:
        """Sum of the trees, one after the other."""
        found = 0.0
        for node in self.starts:
            while self.feature[node] >= 0:
                low = features[self.feature[node]] <= self.threshold[node]
                node = (self.left if low else self.right)[node]
            found += self.value[node]
        return found


@dataclass(frozen=True)
class Judged:
    """What the model said of drawn problems."""

    rows: pd.DataFrame  # GPU, problem, configuration and ``loss`` of candidates, none of them NaN
    features: list[Ratio]
    domain: Domain

    @cached_property
    def values(self) -> np.ndarray:
        """Features of every row: float64, shape (rows, features)."""
        spec = self.domain.spec
        columns = Columns(spec.derived, arrays(self.rows, spec))
        found = []
        for over, under in self.features:
            below = columns.value(under).astype(float)
            found.append(columns.value(over).astype(float) / np.where(below == 0, 1.0, below))
        return np.column_stack(found)

    @cached_property
    def losses(self) -> np.ndarray:
        """Log time relative to the best candidate of the same problem: float64, shape (rows,)."""
        loss = self.rows["loss"].to_numpy(dtype=float)
        cases = row_numbers(self.rows, ["gpu", *self.domain.spec.problem_columns])
        return np.minimum(loss - least_by(cases, loss)[cases], LARGEST_LOSS)

    def judge(self, gpu: str, left_out: np.ndarray | None = None) -> Judge | None:
        """Trees for a GPU; None where the model said nothing of it.

        ``left_out``: rows that are not learnt from: booleans, shape (rows,).
        """
        mine = (self.rows["gpu"] == gpu).to_numpy()
        if left_out is not None:
            mine = mine & ~left_out
        if not mine.any():
            return None
        losses = self.losses[mine]
        weights = 1 / (1 + losses / SHARPNESS)
        fitted = boosted(PARAMETERS, self.values[mine].astype(np.float32), losses, weights)
        return _judge(lightgbm_trees(fitted.text))


PARAMETERS = BoostingParameters(
    rounds=100, num_leaves=31, bagging_fraction=1.0, feature_fraction=1.0
).model_dump()


def _judge(trees: Trees | None) -> Judge:
    assert trees is not None
    return Judge(
        starts=tuple(trees.starts.tolist()),
        feature=tuple(trees.feature.tolist()),
        threshold=tuple(float(f"{each:.7g}") for each in trees.threshold),
        left=tuple(trees.children[:, 0].tolist()),
        right=tuple(trees.children[:, 1].tolist()),
        value=tuple(float(f"{each:.5g}") for each in trees.value),
    )


def growth(exponent: float) -> float:
    """exp(exponent) by products alone: the same in every language, 1e-6 away at 1."""
    found = 1 + exponent / (1 << SQUARINGS)
    for _ in range(SQUARINGS):
        found *= found
    return found


SQUARINGS = 20
