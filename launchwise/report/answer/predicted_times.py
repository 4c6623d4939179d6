"""Predicted times: answers for datasheet-only GPUs, errors on test and published problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.arrays import read_parquet
from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.published import RUN_TIMES, RunTimes
from launchwise.learning.merit import geometric_mean
from launchwise.learning.prediction_errors import ALL
from launchwise.learning.row_arrays import least_ms
from launchwise.report import numbers, wording
from launchwise.report.blocks import Block, Bullets, Fold, Section, Text
from launchwise.report.fields import decimals, field, grouped, table_of
from launchwise.report.study_tables import StudyData, remembered

NOTE = (
    "The error of a row is |predicted / measured - 1|, over all candidates of the test problems "
    "that were timed more than once; bias is the geometric mean of predicted over measured. Rho "
    "is Spearman's rank correlation, over all rows and within problems (mean): choosing needs only "
    "the latter."
)

FIGURES = [
    field("rows", "rows", wording.count, "tested"),
    *grouped(
        "error",
        field("median", "median_percent", decimals(1), "%"),
        field("mean", "mape_percent", decimals(1), "%"),
        field("90th", "p90_percent", decimals(1), "percentile, %"),
    ),
    field("bias", "ratio", decimals(2), "×"),
    *grouped(
        "order",
        field("all", "spearman", wording.fixed, "rho"),
        field("within", "spearman_within", wording.fixed, "rho"),
    ),
]


def whole_split(study: StudyData, split: str) -> list[Mapping[str, Any]]:
    """Errors over all rows of a split, the best median first."""
    known = study.facts.get("predictions", [])
    own = [one for one in known if (one["split"], one["gpu"], one["by"]) == (split, ALL, "")]
    return sorted(own, key=lambda one: (one["median_percent"], one["model"]))


def predictions(study: StudyData) -> Section | None:
    """Measured against predicted time; None where no model predicts any."""
    split = numbers.first_split(study)
    first = whole_split(study, split)
    if not first:
        return None
    caption = f"Errors of predicted times, split “{split}”: {study.split_title(split)}, all GPUs"
    found: list[Block] = [
        table_of(caption, [field("model", lambda one: study.title(one["model"])), *FIGURES], first),
        Text(NOTE, "note"),
    ]
    return Section(f"{study.name}-predicted", "Predicted against measured time", found)


LEARNT = "learnt"  # Predictor of the times: trees that correct the cost model

PUBLISHED_NOTE = (
    "By cost model + trees. Least and greatest: ratios over their geometric mean, the factor. A "
    "dash: the source does not say how many runs a time covers."
)

PUBLISHED = [
    field("series", "series"),
    field("times", "times", wording.count, "published"),
    field("median error", "median", decimals(1), "%"),
    field("predicted / published", "factor", wording.number, "×, geometric mean"),
    field("least", "least", decimals(2), "× factor"),
    field("greatest", "greatest", decimals(2), "× factor"),
]


def judged(rows: pd.DataFrame, series: str) -> dict[str, Any]:
    """Figures of predictions of one series of published times: keys as in :data:`PUBLISHED`. NaN
    stands where the number of runs is unknown."""
    own = rows[(rows["predictor"] == LEARNT) & (rows["series"] == series)]
    ratio = (own["predicted_ms"] / own["published_ms"]).to_numpy(dtype=float)
    factor, known = geometric_mean(ratio), bool((own["runs"] > 0).all())
    return {
        **{"series": series, "times": len(own), "factor": factor},
        "median": 100 * float(np.median(abs(ratio - 1))) if known else np.nan,
        **{"least": float(ratio.min()) / factor, "greatest": float(ratio.max()) / factor},
    }


def published_times(study: StudyData) -> Section | None:
    """Errors against the published times of a study's paper by series; None without any."""
    every = study.published_times
    if every is None or every.empty or study.folder is None:
        return None
    path = study.folder / RUN_TIMES
    series = validated(RunTimes, read_yaml(path), path).series
    told = {*every.loc[every["predictor"] == LEARNT, "series"]}
    titles = dict.fromkeys(one.title for one in series if one.title in told)
    title = "Predictions against published run times"
    notes = [*dict.fromkeys((f"{one.title}:", one.note) for one in series if one.note)]
    blocks: list[Block] = [
        table_of(f"{title}, per series", PUBLISHED, [judged(every, one) for one in titles]),
        Fold("How they were predicted", [Text(PUBLISHED_NOTE, "note"), Bullets(notes)]),
    ]
    return Section(f"{study.name}-against", title, blocks)


@remembered
def predicted_choices(study: StudyData) -> pd.DataFrame:
    """The lookup's answers for datasheet-only GPUs that have a time. Returns columns ``gpu``, the
    problem's, the tunables', ``predicted_ms``, ``baseline_ms`` (NaN where it is unknown) and
    ``least_ms``."""
    rows = [
        {
            "gpu": each["gpu"],
            **each["problem"],
            **study.spec.neutral,
            **each["configuration"],
            "predicted_ms": each["time_ms"],
            "baseline_ms": (each["improvement"] or float("nan")) * each["time_ms"],
        }
        for each in study.answers
        if each["gpu"] in study.described and each["time_ms"] is not None
    ]
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    return table.assign(least_ms=least_ms(table, study.spec, study.described))


SHARE = 0.9  # Share of the published times that lie within the interval
FEWEST = 10  # Fewest published times that give an interval

UNKNOWN = (
    "No interval: too few run times are published for cards that no sweep measured to say how far "
    "predictions are off."
)


@dataclass(frozen=True)
class Spread:
    """Errors of predictions on cards that no sweep measured. 90 % of the published times lie
    between predicted / factor and predicted x factor."""

    factor: float
    times: int
    gpus: tuple[str, ...]

    @property
    def words(self) -> str:
        """Basis of an interval."""
        return (
            f"Intervals: {wording.percent(SHARE, 0)} % of {self.times} published run times on "
            f"{wording.listed(self.gpus)}, which no sweep measured, lie within a factor "
            f"{self.factor:.2f} of what was predicted."
        )


USED = ["predictor", "gpu", "phases", "runs", "published_ms", "predicted_ms"]


def spread(published: Iterable[pd.DataFrame | None]) -> Spread | None:
    """Of the whole runs whose number the publications state; None where there are too few.
    ``published``: tables of :func:`launchwise.tables.learning.published_times_schema`."""
    tables = [table[USED] for table in published if table is not None]
    if not tables:
        return None
    rows = pd.concat(tables, ignore_index=True)
    rows = rows[(rows["predictor"] == LEARNT) & (rows["phases"] == "") & (rows["runs"] > 0)]
    if len(rows) < FEWEST:
        return None
    apart = np.abs(np.log((rows["predicted_ms"] / rows["published_ms"]).to_numpy(dtype=float)))
    gpus = tuple(dict.fromkeys(map(str, rows["gpu"])))
    # The next of the times, and upwards: so many lie within.
    factor = np.ceil(100 * np.exp(np.quantile(apart, SHARE, method="higher"))) / 100
    return Spread(float(factor), len(rows), gpus)


def off_in(results: Path) -> str:
    """:func:`within` of a folder of results; empty where too few times are published. Raises
    UserError when it cannot be read."""
    paths = sorted((results / "predictions").glob("*.published.parquet"))
    try:
        apart = spread([read_parquet(path, USED).to_pandas() for path in paths])
    except ValueError as error:
        raise UserError(results / "predictions", "", f"cannot be read: {error}") from error
    return within(apart) if apart else ""


def within(apart: Spread | None) -> str:
    """What stands at every time that a datasheet alone gives, and at every ratio of such times."""
    if apart is None:
        return "error unknown"
    return f"within {wording.number(apart.factor, 2)} times"
