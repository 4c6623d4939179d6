"""Predictors without training (a roofline, the cost model), and trees that correct the cost model.

The roofline is that of Williams, Waterman and Patterson (2009).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json, write_json
from launchwise.learning.analytical import PARTS
from launchwise.learning.boosters import BoostingParameters, LightgbmBooster, boosted
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Judgement, Recommender, tried
from launchwise.learning.row_arrays import FACTS, limits_ms, regrets
from launchwise.learning.trees import OfTrees


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
        return {
            "features": ["gpu", *spec.problem_columns, *spec.tunable_columns],
        }


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

    kept_as = LightgbmBooster

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
        builds = self._builds.beside(rows)
        table = np.column_stack([features, builds, *shares, np.log(estimate.time_ms)])
        return table.astype(np.float32), estimate.time_ms

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn the residuals (see :meth:`Recommender.fit`). Raises UserError when there are no
        rows, or only rows that stopped early (``slow``)."""
        timed = measurements
        if "status" in measurements:
            timed = measurements[measurements["status"] != "slow"].reset_index(drop=True)
        if timed.empty:
            raise UserError("training rows", "", "there are none, or every row stopped early")
        self._builds = BuildFacts.of(self.domain, measurements)
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

    def save_model(self, folder: Path) -> None:
        """Write the trees and ``builds.json``."""
        super().save_model(folder)
        self._builds.write(folder / "builds.json")

    def load_model(self, folder: Path) -> None:
        """Read the files that :meth:`save_model` wrote."""
        super().load_model(folder)
        self._builds = BuildFacts.read(self.domain, folder / "builds.json")


class BuildFacts:
    """Registers and spills of the builds of some training rows.

    A build is known by the GPU's architecture, the variant, the build tunables and whatever of a
    problem has listed values (a type, an order): nothing else of a row changes its code.

    ``domain``: the workload and the GPUs.
    ``table``: index: ``arch`` and the workload's build columns; columns: :data:`FACTS`, float64.
    """

    def __init__(self, domain: Domain, table: pd.DataFrame) -> None:
        self._domain = domain
        self._table = table

    @classmethod
    def of(cls, domain: Domain, rows: pd.DataFrame) -> BuildFacts:
        """Facts from rows of sweeps.

        ``rows``: columns ``gpu``, the problem's, the configuration's and :data:`FACTS`. Raises
        UserError when the rows lack a column: a model that learns without it is another model.
        """
        if absent := [name for name in FACTS if name not in rows]:
            raise UserError("training rows", absent[0], "is missing: the model learns from it")
        keys = _keys(domain, rows)
        of_builds = (
            rows[list(FACTS)].astype(float).groupby([keys[name] for name in keys], sort=True)
        )
        # One launch among thousands may be another kernel of the same build.
        return cls(domain, of_builds.median())

    def beside(self, rows: pd.DataFrame) -> np.ndarray:
        """Facts of each row's build: float64, shape (rows, 2), NaN where it is not known."""
        wanted = pd.MultiIndex.from_frame(_keys(self._domain, rows))
        places = self._table.index.get_indexer(wanted)
        found = self._table.to_numpy()[places]
        found[places < 0] = np.nan
        return found

    def write(self, path: Path) -> None:
        table = self._table.reset_index()
        plain = {str(name): values.tolist() for name, values in table.items()}
        write_json(path, {name: _without_nan(values) for name, values in plain.items()})

    @classmethod
    def read(cls, domain: Domain, path: Path) -> BuildFacts:
        """Read what :meth:`write` wrote; UserError when the file is not one for this workload."""
        names = ["arch", *domain.spec.build_columns]
        try:
            table = pd.DataFrame(read_json(path))[[*names, *FACTS]]
            return cls(domain, table.set_index(names).astype(float))
        except (KeyError, ValueError, TypeError) as error:
            raise UserError(path, "", f"holds no facts of builds: {error}") from error


def _keys(domain: Domain, rows: pd.DataFrame) -> pd.DataFrame:
    """Columns that identify a build."""
    archs = {gpu: profile.arch for gpu, profile in domain.profiles.items()}
    keys = rows[domain.spec.build_columns].reset_index(drop=True)
    keys.insert(0, "arch", rows["gpu"].map(archs).to_numpy())
    return keys


def _without_nan(values: list[Any]) -> list[Any]:
    return [None if isinstance(value, float) and np.isnan(value) else value for value in values]
