"""Gain from tuning, one row per study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from launchwise.learning.merit import Means, resampled_means
from launchwise.report import scores, wording
from launchwise.report.blocks import Table
from launchwise.report.fields import decimals, field, table_of
from launchwise.report.study import StudyData, remembered
from launchwise.tables.times import PAIRS

INTERVAL_SEED = 0

LITTLE = 1.02  # Least gain of the best configuration over the usual choice that justifies tuning

ORACLE, FIXED, BASELINE = "oracle", "best_on_average", "untuned"

RULES = {FIXED: "one fixed choice", "nearest_size": "the nearest size's choice"}
"""Simple rule to its words, the simplest first."""

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class TuningGain:
    """Speeds relative to the usual choice over the same problems, geometric means."""

    study: str
    title: str
    gpu: str
    problems: int
    best: float  # speeds: NaN where there is none
    recommended: float  # by the answering model
    fixed: float
    baseline: float
    best_interval: Interval  # 95 %, bootstrap over the problems; None for fewer than five
    recommended_interval: Interval
    paired: int  # of the times of best and recommended, two per problem, those in pairs
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
    shown = [ORACLE, name, *RULES, BASELINE]
    own = rows[(rows["gpu"] == gpu) & rows["model"].isin(shown)]
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
        study=study.name,
        title=study.settings.title,
        gpu=gpu,
        problems=len(own[own["model"] == ORACLE]),
        best=speeds.get(ORACLE, math.nan),
        recommended=speeds.get(name, math.nan),
        fixed=speeds.get(FIXED, math.nan),
        baseline=speeds.get(BASELINE, math.nan),
        best_interval=means.interval(ORACLE) if ORACLE in speeds else None,
        recommended_interval=means.interval(name),
        enough=next((words for rule, words in RULES.items() if _ties(means, name, rule)), ""),
        paired=int((own[own["model"].isin([ORACLE, name])]["basis"] == PAIRS).sum()),
    )


def _ties(means: Means, name: str, rule: str) -> bool:
    """Whether a model is not surely faster than a rule over the same problems."""
    ratio = means.ratio(name, rule) if rule in means.methods and rule != name else None
    return ratio is not None and ratio[0] <= 1


NOTE = (
    "Test problems of each study's first split, on its first whole card (geometric means, 95 % by "
    "bootstrap over problems). In pairs: times that come from runs in turn with the usual choice; "
    "the others are single rows of the sweep. As good: the interval of the recommended over this "
    "rule holds 1."
)


def table(studies: Sequence[StudyData]) -> Table:
    """All figures of every study that was evaluated."""
    found = [each for each in map(tuning_gain, studies) if each is not None]
    return table_of("Speed relative to the usual choice", FIELDS, found)


FIELDS = [
    field("study", "title", link=lambda each: f"#{each.study}-answer"),
    field(
        "best",
        "best",
        decimals(2),
        "× usual, 95 %",
        detail=lambda each: _interval(each.best_interval),
    ),
    field(
        "recommended",
        "recommended",
        decimals(2),
        "× usual, 95 %",
        detail=lambda each: _interval(each.recommended_interval),
    ),
    field("one fixed", "fixed", decimals(2), "× usual"),
    field("baseline", "baseline", decimals(2), "× usual"),
    field("problems", "problems", wording.count, "count"),
    field("GPU", "gpu"),
    field(
        "in pairs",
        lambda each: f"{wording.count(each.paired)} of {wording.count(2 * each.problems)}",
        unit="of best and recommended",
        number=True,
    ),
    field("verdict", "verdict"),
]


def _interval(limits: Interval) -> str:
    return "" if limits is None else wording.interval(limits)
