"""Datasheet-only GPUs: the lookup's answers as a table, and intervals of predicted times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.learning.rooflines import least_ms
from launchwise.report import wording
from launchwise.report.study import StudyData, remembered


@remembered
def predicted_choices(study: StudyData) -> pd.DataFrame:
    """The lookup's answers for datasheet-only GPUs that have a time.

    Returns
    -------
    pandas.DataFrame
        Columns ``gpu``, the problem's, the tunables', ``predicted_ms``, ``baseline_ms`` (NaN where
        it is unknown) and ``roofline_ms``.
    """
    rows = [
        {
            "gpu": each["gpu"],
            **each["problem"],
            **study.spec.neutral,
            **each["configuration"],
            "predicted_ms": each["time_ms"],
            "baseline_ms": (each["improvement"] or float("nan")) * each["time_ms"],
        }
        for each in study.answers or ()
        if each["gpu"] in study.described and each["time_ms"] is not None
    ]
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    return table.assign(roofline_ms=least_ms(table, study.spec, study.described))


LEARNT = "learnt"
"""Predictor of the times: trees that correct the cost model."""

SHARE = 0.9
"""Share of the published times that lie within the interval."""

FEWEST = 10
"""Fewest published times that give an interval."""

UNKNOWN = (
    "No interval: too few run times are published for cards that no sweep measured to say how far "
    "predictions are off."
)


@dataclass(frozen=True)
class Spread:
    """Errors of predictions on cards that no sweep measured.

    90 % of the published times lie between predicted / factor and predicted x factor.
    """

    factor: float
    times: int
    gpus: tuple[str, ...]

    @property
    def words(self) -> str:
        """Basis of an interval."""
        return (
            f"Intervals: {wording.percent(SHARE, 0)} % of {self.times} published run times on "
            f"{wording.listed(self.gpus)}, which no sweep measured, lie within a factor "
            f"{wording.number(self.factor, 2)} of what was predicted; none lies below the roofline."
        )

    def limits(self, predicted_ms: float, least_ms: float) -> tuple[float, float]:
        """Interval of a predicted time whose lower bound is known, ms."""
        return max(least_ms, predicted_ms / self.factor), predicted_ms * self.factor


def spread(studies: Sequence[StudyData]) -> Spread | None:
    """Of the whole runs whose number the publications state; None where there are too few."""
    tables = [study.published_times for study in studies if study.published_times is not None]
    used = ["predictor", "gpu", "phases", "runs", "published_ms", "predicted_ms"]
    if not tables:
        return None
    rows = pd.concat([table[used] for table in tables], ignore_index=True)
    rows = rows[(rows["predictor"] == LEARNT) & (rows["phases"] == "") & (rows["runs"] > 0)]
    if len(rows) < FEWEST:
        return None
    apart = np.abs(np.log((rows["predicted_ms"] / rows["published_ms"]).to_numpy(dtype=float)))
    gpus = tuple(dict.fromkeys(map(str, rows["gpu"])))
    return Spread(float(np.exp(np.quantile(apart, SHARE))), len(rows), gpus)
