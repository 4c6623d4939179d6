"""Gain from tuning, one row per study."""

from __future__ import annotations

import math
from dataclasses import dataclass

from launchwise.learning.merit import Means, resampled_means
from launchwise.report import scores
from launchwise.report.study import StudyData, remembered

INTERVAL_SEED = 0

LITTLE = 1.02  # Least gain of the best configuration over the usual choice that justifies tuning

ORACLE = "oracle"

RULES = {"best_on_average": "one fixed choice", "nearest_size": "the nearest size's choice"}
"""Simple rule to its words, the simplest first."""

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class TuningGain:
    """Speeds relative to the usual choice over the same problems, geometric means."""

    gpu: str
    problems: int
    best: float  # speeds: NaN where there is none
    recommended: float  # by the answering model
    best_interval: Interval  # 95 %, bootstrap over the problems; None for fewer than five
    recommended_interval: Interval
    # The simplest rule that the recommended is not surely faster than, in words; empty without any.
    enough: str = ""

    @property
    def verdict(self) -> str:
        if self.best_interval is None:
            return "too few problems to tell"
        low, high = self.best_interval
        if low >= LITTLE:
            return f"tune; {self.enough} is as good" if self.enough else "tune"
        return "keep the usual choice" if high < LITTLE else "little to gain"


@remembered
def tuning_gain(study: StudyData) -> TuningGain | None:
    """Speeds over test problems of the first split on the first whole card; None without any."""
    split = scores.first_split(study)
    rows = study.evaluation
    rows = rows[rows["split"] == split]
    gpus = [gpu for gpu in study.whole if gpu in rows["gpu"].unique()]
    name = scores.leader(study, split, scores.ALL_GPUS)
    if not gpus or name is None:
        return None
    gpu = gpus[0]
    own = rows[(rows["gpu"] == gpu) & rows["model"].isin([ORACLE, name, *RULES])]
    own = own.assign(fraction=own["gain"].fillna(0.0))
    if own.empty:
        return None
    means = resampled_means(
        own if study.load is None else own.assign(weight=study.load.weights(own)),
        study.problem_columns,
        INTERVAL_SEED,
    )
    speeds = {model: study.mean(part) for model, part in own.groupby("model", sort=False)}
    return TuningGain(
        gpu=gpu,
        problems=len(own[own["model"] == ORACLE]),
        best=speeds.get(ORACLE, math.nan),
        recommended=speeds.get(name, math.nan),
        best_interval=means.interval(ORACLE) if ORACLE in speeds else None,
        recommended_interval=means.interval(name),
        enough=next((words for rule, words in RULES.items() if _ties(means, name, rule)), ""),
    )


def _ties(means: Means, name: str, rule: str) -> bool:
    """Whether a model is not surely faster than a rule over the same problems."""
    ratio = means.ratio(name, rule) if rule in means.methods and rule != name else None
    return ratio is not None and ratio[0] <= 1


NOTE = (
    "Best and recommended are relative to the usual choice, over test problems of each study's "
    "first split on its first whole card (geometric means, bootstrap over problems). As good: the "
    "interval of the recommended over this rule holds 1."
)
