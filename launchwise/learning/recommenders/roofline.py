"""The roofline (Williams, Waterman, Patterson 2009) as a predictor, without training."""

from __future__ import annotations

from typing import Any

import pandas as pd

from launchwise.learning.recommender import Judgement, Recommender
from launchwise.learning.row_arrays import limits_ms


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
        return {"features": ["gpu", *spec.problem_columns], "features_dropped": []}
