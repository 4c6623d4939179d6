"""The cost model as a predictor, without training."""

from __future__ import annotations

from typing import Any

import pandas as pd

from launchwise.learning.recommender import Judgement, Recommender


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
            "features_dropped": [],
        }
