"""Baselines: heuristics without learning, with the protocol of recommenders.

What they carry over from other problems is a choice (:attr:`Domain.choice_columns`); a tunable that
follows from the problem has the value of the asked one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
import pandas as pd

from launchwise.base.typed import Strict
from launchwise.learning.answers import Code, Count
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Judgement, Recommender
from launchwise.learning.recommenders import SIMPLE_RULES
from launchwise.learning.regression import UNMEASURED_REGRET, MeanRegret, distances
from launchwise.learning.row_arrays import configuration_codes, regrets
from launchwise.learning.splits import case_codes


def comparable(measurements: pd.DataFrame, domain: Domain) -> tuple[pd.DataFrame, np.ndarray]:
    """Training rows that have what follows from their problems, and their regrets among them. All
    rows where no row has it."""
    follows = domain.follows(measurements)
    rows = measurements[follows] if follows.any() else measurements
    return rows, regrets(rows, domain.spec)


class Untuned(Recommender):
    """The workload's baseline configuration, for every problem."""

    title = "baseline"

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score 0 for the baseline, 1 for every other row."""
        return Judgement.without_times(~self.domain.is_baseline(rows))


class UsualChoice(Recommender):
    """Choice of an experienced engineer without measuring; the baseline without ``usual.yaml``."""

    title = "usual choice"

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score 0 for the usual choice, then the baseline, then every other row."""
        return Judgement.without_times(~self.domain.is_usual(rows), ~self.domain.is_baseline(rows))


class BestOnAverage(Recommender):
    """The configuration of least mean log(time / best) over the training cases."""

    title = "best on average"
    Fitted = MeanRegret

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Compute the mean regret of every configuration over the training cases."""
        rows, regret = comparable(measurements, self.domain)
        # All tunables: a padded row is not what was measured without padding.
        self.fitted = MeanRegret.of(rows, regret, self.domain, self.domain.choice_columns)
        return self

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by the mean regret in training; lower is better."""
        regret = self.fitted.regret(rows, self.domain)
        return Judgement.without_times(regret, self.domain.last_of_ties(rows), losses=regret)


class MostFrequentBest(Recommender):
    """The configuration that is best in most training cases, then the next most frequent."""

    title = "most frequent best"

    class Fitted(Strict):
        wins: dict[Code, Count]  # number of a configuration to the training cases that it won

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Count the training cases in which each configuration is the best."""
        rows, regret = comparable(measurements, self.domain)
        best = rows[regret == 0]
        codes = configuration_codes(best, self.domain.choice_columns, self.domain.spec)
        self.fitted = self.Fitted(wins=pd.Series(codes).value_counts().to_dict())
        return self

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by the number of training cases won; baseline first in ties."""
        codes = configuration_codes(rows, self.domain.choice_columns, self.domain.spec)
        counts = pd.Series(codes).map(self.fitted.wins).fillna(0).to_numpy(dtype=float)
        return Judgement.without_times(-counts, self.domain.last_of_ties(rows))


class _Nearest(Recommender):
    """The configurations of the nearest training case, best first. Problems are compared by problem
    features, GPUs by GPU features (log2 and unit deviation over the training cases)."""

    arrays = ("names", "problems", "gpus", "configurations", "measured", "regrets", "worst")

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Store the regret of every configuration in every training case."""
        spec = self.domain.spec
        rows, regret = comparable(measurements, self.domain)
        codes, keys = case_codes(rows, spec)
        first = np.unique(codes, return_index=True)[1]
        features = self.domain.features(rows.iloc[first])
        self.problems = features[_problem_names(self.domain)].to_numpy()
        self.gpus = features[self.domain.gpu_features].to_numpy()
        self.names = np.array([key[0] for key in keys], dtype=str)
        configurations = configuration_codes(rows, self.domain.choice_columns, spec)
        self.configurations = np.unique(configurations)
        numbers = np.searchsorted(self.configurations, configurations)
        keys_of_rows = codes * len(self.configurations) + numbers
        order = np.argsort(keys_of_rows)
        self.measured, self.regrets = keys_of_rows[order], regret[order]
        self.worst = np.array(regret.max(initial=0.0))
        return self

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by regret in the nearest training case; configurations that it lacks come last."""
        spec = self.domain.spec
        cases, keys = case_codes(rows, spec)
        first = np.unique(cases, return_index=True)[1]
        features = self.domain.features(rows.iloc[first])
        problem = distances(self.problems, features[_problem_names(self.domain)].to_numpy())
        gpu = distances(self.gpus, features[self.domain.gpu_features].to_numpy())
        same = np.array([key[0] for key in keys])[:, None] == self.names
        nearest = self._nearest(problem, gpu, same)[cases]
        choices = configuration_codes(rows, self.domain.choice_columns, spec)
        regret = self._regret(nearest, choices)
        return Judgement.without_times(regret, self.domain.last_of_ties(rows), losses=regret)

    def _regret(self, cases: np.ndarray, configurations: np.ndarray) -> np.ndarray:
        """Regret of each configuration in the training case beside it, shape (rows,)."""
        numbers = _places(self.configurations, configurations)
        keys = cases * len(self.configurations) + numbers
        places = _places(self.measured, keys)
        known = (self.configurations[numbers] == configurations) & (self.measured[places] == keys)
        return np.where(known, self.regrets[places], UNMEASURED_REGRET + self.worst)

    @abstractmethod
    def _nearest(self, problem: np.ndarray, gpu: np.ndarray, same: np.ndarray) -> np.ndarray:
        """Number of the nearest training case of each asked case.

        ``problem``, ``gpu``: distances, shape (asked, training); ``same``: whether both are on the
        same GPU, same shape.
        """


class NearestSize(_Nearest):
    """The nearest training problem, on the same GPU where it has any, else on the nearest."""

    title = "nearest size"

    def _nearest(self, problem: np.ndarray, gpu: np.ndarray, same: np.ndarray) -> np.ndarray:
        own = same.any(axis=1, keepdims=True)
        allowed = np.where(own, same, True)
        return _first(np.where(allowed, problem, np.inf), np.where(allowed, gpu, np.inf))


class NearestGpu(_Nearest):
    """The nearest other training GPU, by its profile; there the same problem, or the nearest."""

    title = "nearest GPU"

    def _nearest(self, problem: np.ndarray, gpu: np.ndarray, same: np.ndarray) -> np.ndarray:
        others = (~same).any(axis=1, keepdims=True)
        allowed = np.where(others, ~same, True)
        return _first(np.where(allowed, gpu, np.inf), np.where(allowed, problem, np.inf))


def _places(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Place of each value in an ascending array, some place if it is not there."""
    return np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)


def _first(criterion: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """Column of the smallest entry of each row, the second criterion and the column breaking ties.
    Both have shape (rows, columns), the result (rows,)."""
    smallest = criterion == criterion.min(axis=1, keepdims=True)
    tied = np.where(smallest, ties, np.inf)
    # Where every tie is infinite, too, the first of the smallest counts and not the first of all.
    return np.argmax(smallest & (tied == tied.min(axis=1, keepdims=True)), axis=1)


def _problem_names(domain: Domain) -> list[str]:
    return [name for name in domain.problem_features if name not in domain.gpu_features]


BASELINES: dict[str, type[Recommender]] = dict(
    zip(
        SIMPLE_RULES,
        (Untuned, UsualChoice, BestOnAverage, NearestSize, NearestGpu, MostFrequentBest),
        strict=True,
    )
)
"""Name in tables to class."""
