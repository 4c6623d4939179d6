"""Predictors without training (a roofline, the cost model), and trees that correct the cost model.

The roofline is that of Williams, Waterman and Patterson (2009).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.typed import Strict
from launchwise.learning.analytical import PARTS
from launchwise.learning.boosters import BoostingParameters, boosted
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Judgement, Recommender, tried
from launchwise.learning.row_arrays import FACTS, limits_ms, regrets, timed_repeatedly
from launchwise.learning.trees import OfTrees
from launchwise.workloads.parts import Value


class RooflineRecommender(Recommender):
    """Time of a problem's least bytes or of its FLOP, whichever is longer, and one launch. It knows
    nothing of configurations: all of a problem get the same time, and the baseline is
    recommended."""

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by predicted time; the baseline comes first in ties."""
        times = limits_ms(rows, self.domain.spec, self.domain.profiles)["roofline"]
        return Judgement.by_time(times, self.domain.is_baseline(rows))

    def summary(self) -> dict[str, Any]:
        """Inputs of the predictor, for the report."""
        spec = self.domain.spec
        return {"features": ["gpu", *spec.problem_columns]}


class AnalyticalRecommender(Recommender):
    """Time by ``cost.yaml`` and the GPU's profile (:mod:`launchwise.learning.analytical`)."""

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by predicted time; the baseline comes first in ties."""
        times = self.domain.cost_model.estimate(rows).time_ms
        return Judgement.by_time(times, self.domain.is_baseline(rows))

    def summary(self) -> dict[str, Any]:
        """Inputs of the predictor, for the report."""
        spec = self.domain.spec
        return {"features": ["gpu", *spec.problem_columns, *spec.tunable_columns]}


class LearntRecommender(OfTrees, Recommender):
    """Time = cost model x exp(residual predicted by trees).

    LightGBM (Ke et al., 2017) learns log(time / estimate) from the features of GPU, problem and
    configuration, from registers and spills of the build, and from what the estimate is made of:
    the share of each part. Where nothing like a row was in training, a tree's last leaf holds and
    the cost model carries the rest.

    ``focus``: p in the weight (best / time)^p of a row, 0 for all alike. Where many configurations
    are near the best, trees had better tell these apart.

    Rows that are ``slow`` are left out: the one launch that they were timed by was the first, which
    fills caches, and whose kernels wait for the host where a run has several.
    """

    class Fitted(Strict):
        builds: dict[str, list[Value | float | None]]  # see `builds_of`

    class Parameters(BoostingParameters):
        rounds: int = Field(120, ge=1)
        learning_rate: float = tried(0.15, 0.03, 0.2, log=True, gt=0)
        num_leaves: int = tried(95, 15, 127, log=True, ge=2, le=131072)
        feature_fraction: float = tried(0.6, 0.3, 1.0, gt=0, le=1)
        l2: float = Field(1.0, ge=0)
        focus: float = Field(0.0, ge=0)

    def _inputs(self, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Features, float32 (rows, features), and estimates, float64 ms (rows,)."""
        estimate = self.domain.cost_model.estimate(rows)
        shares = [estimate.parts[name] / estimate.time_ms for name in PARTS]
        features = self.domain.features(rows).to_numpy()
        builds = self.facts_beside(rows)
        table = np.column_stack([features, builds, *shares, np.log(estimate.time_ms)])
        return table.astype(np.float32), estimate.time_ms

    def facts_beside(self, rows: pd.DataFrame) -> np.ndarray:
        """:data:`FACTS` of each row's build: float64, shape (rows, 2), NaN where unknown."""
        names = ["arch", *self.domain.spec.build_columns]
        known = pd.DataFrame(self.fitted.builds).set_index(names)[[*FACTS]].astype(float)
        known = known[~known.index.duplicated()]
        places = known.index.get_indexer(pd.MultiIndex.from_frame(_keys(self.domain, rows)))
        return np.where(places[:, None] < 0, np.nan, known.to_numpy()[places])

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn the residuals (see :meth:`Recommender.fit`). Raises UserError when there are no
        rows, or only rows that stopped early (``slow``)."""
        timed = timed_repeatedly(measurements)
        self.fitted = self.Fitted(builds=builds_of(measurements, self.domain))
        features, estimates = self._inputs(timed)
        target = np.log(timed["time_ms"].to_numpy(dtype=float) / estimates)
        weights = np.exp(-self.parameters["focus"] * regrets(timed, self.domain.spec))
        l2 = self.parameters["l2"]
        self.trees = boosted(self.parameters, features, target, weights, lambda_l2=l2)
        return self

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by predicted time; the baseline comes first in ties."""
        features, estimates = self._inputs(rows)
        times = estimates * np.exp(self.predict_rows(features))
        return Judgement.by_time(times, self.domain.is_baseline(rows))

    def summary(self) -> dict[str, Any]:
        """Features, including those of the cost model."""
        names = [*self.domain.spec.features, *self.domain.gpu_features]
        shares = [f"{name}_share" for name in PARTS]
        learnt_from = [*names, *FACTS, *shares, "log_estimate"]
        return {"features": learnt_from}


def builds_of(rows: pd.DataFrame, domain: Domain) -> dict[str, list[Any]]:
    """Registers and spills of the builds of some rows: ``arch``, build columns and :data:`FACTS`.

    A build is known by the GPU's architecture, the variant, the build tunables and whatever of a
    problem has listed values (a type, an order): nothing else of a row changes its code.

    ``rows``: columns ``gpu``, the problem's, the configuration's and :data:`FACTS`. Raises
    UserError when the rows lack a column: a model that learns without it is another model.
    """
    if absent := [name for name in FACTS if name not in rows]:
        raise UserError("training rows", absent[0], "is missing: the model learns from it")
    keys = _keys(domain, rows)
    facts = rows[list(FACTS)].astype(float).groupby([keys[name] for name in keys], sort=True)
    # One launch among thousands may be another kernel of the same build.
    table = facts.median().reset_index().astype(object)
    return table.where(table.notna(), None).to_dict("list")  # type: ignore[return-value]


def _keys(domain: Domain, rows: pd.DataFrame) -> pd.DataFrame:
    """Columns that identify a build."""
    archs = {gpu: profile.arch for gpu, profile in domain.profiles.items()}
    keys = rows[domain.spec.build_columns].reset_index(drop=True)
    keys.insert(0, "arch", rows["gpu"].map(archs).to_numpy())
    return keys
