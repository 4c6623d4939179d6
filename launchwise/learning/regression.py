"""Recommenders that predict run times and choose the fastest configuration.

What is learnt is not the time itself. With ``bound`` the time that moving the problem's least
bytes at the GPU's measured copy bandwidth takes::

    time = bound * exp(level(GPU, problem) + regret(GPU, problem, configuration))

``regret``, 0 for the best configuration of a problem, is what a ranking needs, and the model learns
only it: nothing is spent on how long a large problem takes. ``level``, how far the best is from the
bound, shifts every candidate alike, so it matters for predicted times alone and a distance-weighted
mean of the nearest training problems is enough. Rows near the best weigh more: the arg min is
sought there, and a tree that explains how bad the worst are is of no use.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field, FiniteFloat

from launchwise.base.errors import UserError
from launchwise.base.typed import Strict
from launchwise.learning.answers import Code, Log
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender
from launchwise.learning.row_arrays import configuration_codes, regrets
from launchwise.learning.splits import case_numbers

RESOLUTION = 0.002
"""Predicted log times closer than this tie: sweeps are not measured more precisely."""
UNMEASURED_REGRET = float(np.log(3.0))
"""Least regret of rows that stopped early, failed or were filtered: a sweep stops at 3 times the
best."""
NEAREST_LEVELS = 4


class MeanRegret(Strict):
    """Mean regret of every configuration over the training cases. A configuration without a row in
    a case (failed, filtered) has :data:`UNMEASURED_REGRET` there, or the largest regret that was
    measured: others' sweeps keep what ours would stop early, and a failure is no better than that.
    Tunables that never varied in training tell nothing and are left out of its name."""

    columns: list[str]  # tunables that name a configuration
    # Number of a configuration (`launchwise.learning.row_arrays.configuration_codes`) to its mean.
    regrets: dict[Code, Log]

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        regret: np.ndarray,
        domain: Domain,
        columns: list[str] | None = None,
    ) -> MeanRegret:
        """From training rows and their regrets, shape (rows,); by default of varying tunables."""
        varied = columns
        if varied is None:
            varied = [name for name in domain.choice_columns if rows[name].nunique() > 1]
        cases = case_numbers(rows, domain.spec)
        names = configuration_codes(rows, varied, domain.spec)
        known, numbers = np.unique(names, return_inverse=True)
        best = np.full((len(known), cases.max() + 1), np.inf)
        np.minimum.at(best, (numbers, cases), regret)
        worst = np.full(cases.max() + 1, UNMEASURED_REGRET)
        np.maximum.at(worst, cases, regret)
        means = np.where(np.isfinite(best), best, worst).mean(axis=1)
        found = dict(zip(known.tolist(), means.tolist(), strict=True))
        return cls(columns=varied, regrets=found)

    def regret(self, rows: pd.DataFrame, domain: Domain) -> np.ndarray:
        """Mean regret of each row's configuration, (rows,); unknown: :data:`UNMEASURED_REGRET`."""
        names = pd.Series(configuration_codes(rows, self.columns, domain.spec))
        return names.map(self.regrets).fillna(UNMEASURED_REGRET).to_numpy(dtype=float)


class Levels(Strict):
    """log(best time / bound) of the training cases, and between them by distance."""

    columns: list[str]  # features of problem and GPU that vary
    points: list[list[FiniteFloat]]  # those features of each training case: shape (cases, features)
    levels: Annotated[list[Log], Field(min_length=1)]

    @classmethod
    def of(
        cls, rows: pd.DataFrame, features: pd.DataFrame, level: np.ndarray, domain: Domain
    ) -> Levels:
        """From training rows, their features and log(best / bound) of their case, (rows,)."""
        codes = case_numbers(rows, domain.spec)
        first = np.unique(codes, return_index=True)[1]
        names = [name for name in domain.problem_features if features[name].nunique() > 1]
        points = features[names].to_numpy()[first].tolist()
        return cls(columns=names, points=points, levels=level[first].tolist())

    def at(self, rows: pd.DataFrame, features: pd.DataFrame, domain: Domain) -> np.ndarray:
        """Level of each row's case: float64, shape (rows,)."""
        codes = case_numbers(rows, domain.spec)
        first = np.unique(codes, return_index=True)[1]
        levels = np.array(self.levels)
        if not self.columns:
            return np.full(len(rows), levels.mean())
        asked = features[self.columns].to_numpy()[first]
        return nearest_mean(np.array(self.points), levels, asked)[codes]


class TimeRegressor(Recommender):
    """Predicts the time of every candidate.

    Two hyper-parameters are common to all:

    ``target``
        ``regret`` (above); ``time``: raw ms, as the published study did.
    ``focus``
        p in the weight (best / time)^p of a row; 0 weighs all alike. Ignored by ``time``.

    Ties are broken in favour of what resembles the training data (features that never varied there
    and have the same value), then of what was good on average in training.
    """

    class Parameters(Hyperparameters):
        target: Literal["regret", "time"] = "regret"
        focus: float = Field(2.0, ge=0)

    class Fitted(Strict):
        # Features that vary in the training rows.
        columns: Annotated[list[str], Field(min_length=1)]
        # Features that do not vary, with their value: dropped, and named in the report.
        constant: dict[str, FiniteFloat]
        prior: MeanRegret
        levels: Levels

    @property
    def columns(self) -> list[str]:
        """Features that the model learns from."""
        return list(self.fitted.columns)

    @abstractmethod
    def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        """Fit the model. Shapes: features (rows, features), float32; target and weights (rows,),
        float64."""

    @abstractmethod
    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Predicted target, float64 (rows,), from float32 (rows, features)."""

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn from measurements (see :meth:`Recommender.fit`). Raises UserError when there are no
        rows."""
        if measurements.empty:
            raise UserError("training rows", "", "there are none")
        features = self.domain.features(measurements)
        low, high = features.min(), features.max()
        names = [str(name) for name in features]
        columns = [name for name in names if low[name] < high[name]]
        constant = {name: float(low[name]) for name in names if low[name] == high[name]}
        if not columns:
            # One configuration of one problem: a constant model is all there is to learn.
            columns, constant = names[:1], {}
        regret = regrets(measurements, self.domain.spec)
        times = measurements["time_ms"].to_numpy(dtype=float)
        ratios = np.log(times / self.domain.bounds_ms(measurements))
        target, weights = regret, np.exp(-self.parameters["focus"] * regret)
        if self.parameters["target"] == "time":
            target, weights = times, np.ones(len(times))
        self.fitted = self.Fitted(
            columns=columns,
            constant=constant,
            prior=MeanRegret.of(measurements, regret, self.domain),
            levels=Levels.of(measurements, features, ratios - regret, self.domain),
        )
        self.fit_rows(self._matrix(features), target, weights)
        return self

    def _matrix(self, features: pd.DataFrame) -> np.ndarray:
        return features[self.columns].to_numpy(dtype=np.float32)

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by predicted log time in steps of :data:`RESOLUTION`, novelty, mean regret."""
        features = self.domain.features(rows)
        predicted = self.predict_rows(self._matrix(features))
        times = self._times(rows, features, predicted)
        logs = np.log(times) if self.parameters["target"] == "time" else predicted
        constant = self.fitted.constant.items()
        same = np.array([features[name] == value for name, value in constant])
        novelty = (~same).sum(axis=0) if len(same) else np.zeros(len(rows))
        steps = np.round(logs / RESOLUTION)
        mean_regret = self.fitted.prior.regret(rows, self.domain)
        return Judgement(np.column_stack([steps, novelty, mean_regret]), times)

    def _times(
        self, rows: pd.DataFrame, features: pd.DataFrame, predicted: np.ndarray
    ) -> np.ndarray:
        """Convert the predicted target to ms."""
        if self.parameters["target"] == "time":
            # A regressor of raw times may predict one at or below zero; no time is.
            return np.maximum(predicted, 1e-6)
        level = self.fitted.levels.at(rows, features, self.domain)
        return self.domain.bounds_ms(rows) * np.exp(predicted + level)

    def summary(self) -> dict[str, Any]:
        """Features used, and features dropped because they do not vary in training."""
        return {"features": self.columns, "features_dropped": sorted(self.fitted.constant)}


def nearest_mean(points: np.ndarray, values: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Mean of the nearest points' values, weighted by inverse squared distance.

    Returns shape (asked,); a point's own value where it is asked for. ``points``, ``asked``: shapes
    (points, features) and (asked, features); distances are taken on :func:`scaled` features.
    ``values``: shape (points,).
    """
    distance = distances(points, asked)
    count = min(NEAREST_LEVELS, len(points))
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :count]
    weights = 1 / (np.take_along_axis(distance, nearest, axis=1) ** 2 + 1e-9)
    return (weights * values[nearest]).sum(axis=1) / weights.sum(axis=1)


def distances(points: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Euclidean distances (asked, points) on features scaled by the points."""
    transform = Scaling.of(points)
    return np.asarray(
        np.linalg.norm(transform(asked)[:, None, :] - transform(points)[None, :, :], axis=2)
    )


@dataclass(frozen=True)
class Scaling:
    """Features to a common scale: log2 of what is positive, then mean 0 and deviation 1. Sizes,
    block shapes and bandwidths are compared by their ratios, hence the logarithm."""

    logs: np.ndarray  # features whose logarithms are taken: booleans, shape (features,)
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> Scaling:
        """From points of shape (points, features)."""
        logs = np.asarray((points > 0).all(axis=0))
        values = _logarithms(points, logs)
        deviation = values.std(axis=0)
        return cls(logs, values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Scaled points: float64, the shape of ``points``."""
        return (_logarithms(points, self.logs) - self.mean) / self.deviation


def _logarithms(points: np.ndarray, logs: np.ndarray) -> np.ndarray:
    values = np.array(points, dtype=float)
    values[:, logs] = np.log2(np.maximum(values[:, logs], 1e-12))
    return values
