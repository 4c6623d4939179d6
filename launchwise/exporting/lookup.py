"""Which answer a problem gets: one rule for every door.

``recommend``, the lookup of the report and every exported form look up the same table:

1. a device is found by its name in the settings or by what CUDA calls it;
2. of its entries those with the same texts (such as a type) count;
3. the one of this very problem is the answer;
4. else the device's judge chooses (:class:`Judge`): of the usual choice and the table's candidates
   that may run the problem, the first of least loss. Its gain is the judge's, by :func:`growth`. A
   device without a judge has the configuration of the entry nearest in size that
   may run the problem, and no gain unless that is the usual choice. What follows from the problem
   follows from this one; the time is that of the nearest entry with one, scaled by the work that
   fits its neighbours best; limits are those of answers between entries on this device. Outside of
   what the device measured (of its entries, where it measured nothing) no answer has a time or a
   limit, one of an entry neither: nothing says how a time grows there, and small problems take what
   a launch takes. :meth:`launchwise.learning.conformal.MeasuredProblems.outside` says where;
5. without any, the usual choice is; where nothing is usual, the default.

A distance is that of :func:`launchwise.workloads.near_problems.distances`.

Divisions and products of doubles are rounded the same in every language, logarithms are not.

A study's answering model needs its libraries, hundreds of candidates and a model of costs. So what
it says of drawn problems is learnt anew by boosted trees over expressions that every language can
compute: a judge of the configurations that the model chose anywhere. Sums of doubles in the same
order are the same in every language, so every door has the same choice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pandas as pd
from pydantic import ConfigDict

from launchwise.base.vectors import Columns
from launchwise.exporting.formulas import Ratio, exported_facts
from launchwise.learning.answers import Interval
from launchwise.learning.boosters import BoostingParameters, boosted
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import arrays, of_gpus
from launchwise.learning.trees import Trees
from launchwise.tables.rows import least_by, row_numbers


def within(factors: Interval | None) -> str:
    """How far such times are off, in words; empty where that is unknown."""
    limits = around(1.0, factors)
    if limits is None:
        return ""
    return f": nine of ten such times are within a factor of {max(1 / limits[0], limits[1]):.3g}"


def around(value: float | None, factors: Interval | None) -> Interval | None:
    """Limits of a stated value: factors of it."""
    if value is None or factors is None:
        return None
    return value * factors[0], value * factors[1]


LARGEST_LOSS = 3.0
"""Log time over that of the best candidate above which more makes no difference."""

SHARPNESS = 0.03
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
        try:
            self._trees(features)
        except ValueError:
            return False
        return True

    def _trees(self, features: int) -> Trees:
        numbers = [
            np.array(each, np.int64) for each in (self.starts, self.feature, self.left, self.right)
        ]
        starts, feature, *children = numbers
        threshold, value = np.array(self.threshold), np.array(self.value)
        return Trees(features, starts, feature, threshold, np.column_stack(children), value)

    def sums(self, features: np.ndarray) -> np.ndarray:
        """Sum of the trees, one after the other, of each row: float64, shape (rows,).

        ``features``: float64, shape (rows, features).
        """
        return self._trees(features.shape[1]).sum(features)


def ratios(columns: Columns, parts: Ratio) -> np.ndarray:
    """The first number over the second of each row; over 1 in place of 0."""
    over, under = (columns.value(text).astype(float) for text in parts)
    return np.asarray(over / np.where(under == 0, 1.0, under))


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
        facts = {gpu: exported_facts(one) for gpu, one in self.domain.profiles.items()}
        columns = Columns(spec.derived, {**arrays(self.rows, spec), **of_gpus(self.rows, facts)})
        return np.column_stack([ratios(columns, each) for each in self.features])

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
        return _judge(fitted.arrays())


PARAMETERS = BoostingParameters(
    rounds=100, num_leaves=31, bagging_fraction=1.0, feature_fraction=1.0
).model_dump()


def _judge(trees: Trees) -> Judge:
    return Judge(
        starts=tuple(trees.starts.tolist()),
        feature=tuple(trees.feature.tolist()),
        threshold=tuple(float(f"{each:.7g}") for each in trees.threshold),
        left=tuple(trees.children[:, 0].tolist()),
        right=tuple(trees.children[:, 1].tolist()),
        value=tuple(float(f"{each:.5g}") for each in trees.value),
    )


SQUARINGS = 20

Real = TypeVar("Real", float, np.ndarray)


def growth(exponent: Real) -> Real:
    """exp(exponent) by products alone: the same in every language, 1e-6 away at 1."""
    found = 1 + exponent / (1 << SQUARINGS)
    for _ in range(SQUARINGS):
        found *= found
    return found
