"""Gain from tuning, one row per study: a picture, and the same as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from launchwise.learning.merit import Means, geometric_mean, resampled_means
from launchwise.report import scores, wording
from launchwise.report.blocks import Bar, Block, Drawing, Fold, Section, Table, Text
from launchwise.report.fields import decimals, field, table_of
from launchwise.report.study import StudyData
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
    imported: bool = False  # whether others measured it

    @property
    def verdict(self) -> str:
        """Whether tuning pays, in words."""
        if self.best_interval is None:
            return "too few problems to tell"
        low, high = self.best_interval
        if low >= LITTLE:
            return f"tune; {self.enough} is as good" if self.enough else "tune"
        return "keep the usual choice" if high < LITTLE else "little to gain"


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
        own[["model", "gpu", *study.problem_columns, "fraction"]],
        study.problem_columns,
        INTERVAL_SEED,
    )
    speeds = {
        model: geometric_mean(part["fraction"].to_numpy())
        for model, part in own.groupby("model", sort=False)
    }
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
        imported=not study.profiles[gpu].has_measured_ceilings,
        paired=int((own[own["model"].isin([ORACLE, name])]["basis"] == PAIRS).sum()),
    )


def _ties(means: Means, name: str, rule: str) -> bool:
    """Whether a model is not surely faster than a rule over the same problems."""
    ratio = means.ratio(name, rule) if rule in means.methods and rule != name else None
    return ratio is not None and ratio[0] <= 1


NOTE = (
    "Test problems of each study's first split, on its first whole card; speeds of a row are of "
    "the same problems (geometric means). Usual choice: what an experienced engineer takes without "
    "measuring. In pairs: number of these times, two per problem, that come from runs in turn "
    "with the usual choice on one card; the others are single rows of the sweep. As good: the 95 % "
    "interval of the recommended over this rule, on the same problems, holds 1. "
    "Intervals: 95 %, bootstrap over problems."
)


def section(studies: Sequence[StudyData]) -> Section | None:
    """The picture and the table; None where no study was evaluated."""
    found = [each for each in map(tuning_gain, studies) if each is not None]
    if not found:
        return None
    # What others measured has no usual choice but its baseline, and sizes of its own: on one axis
    # with the rest it would be the longest bar and say nothing.
    theirs = [each for each in found if each.imported]
    ours = [each for each in found if not each.imported] or theirs
    blocks: list[Block] = [_drawing(ours), _table(ours), Text(NOTE, "note")]
    if theirs and ours is not theirs:
        blocks.append(Fold("Measured by others", [_table(theirs)]))
    return Section("worth", "Gain from tuning", blocks)


FIELDS = [
    # A phone shows the first columns alone.
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


def _table(found: Sequence[TuningGain]) -> Table:
    return table_of("Speed relative to the usual choice", FIELDS, found)


def _interval(limits: Interval) -> str:
    return "" if limits is None else wording.interval(limits)


TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def _drawing(found: Sequence[TuningGain]) -> Drawing:
    """A bar per study, from the usual choice to the best."""
    bars = [
        Bar(
            each.title,
            f"{wording.fixed(each.best, 2)}×, {each.verdict}",
            each.best,
            dot=each.recommended,
            tick=each.fixed,
            pale=each.paired < each.problems,
        )
        for each in found
    ]
    speeds = [1.0, *(speed for bar in bars for speed in (bar.end, bar.dot, bar.tick))]
    speeds = [speed for speed in speeds if math.isfinite(speed) and speed > 0]
    said = "; ".join(
        f"{each.title}: best {wording.fixed(each.best, 2)}, recommended "
        f"{wording.fixed(each.recommended, 2)}"
        for each in found
    )
    caption = (
        "Speed relative to the usual choice (1), logarithmic axis. Bar: the fastest configuration; "
        "dot: the recommended one; tick: one fixed configuration. Pale: most are single "
        "rows of a sweep, not pairs."
    )
    alt = f"Speed relative to the usual choice. {said}."
    ends = min(speeds) / 1.1, max(speeds) * 1.05
    return Drawing("worth", caption, alt, bars, TICKS, ends, label=430, row=30)
