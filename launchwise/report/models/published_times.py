"""Predictions held against published run times, on cards that no sweep has measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.published import RUN_TIMES, RunTimes, Series
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Section, Table, Text
from launchwise.report.fields import decimals, field, file_of, grouped, significant, table_of
from launchwise.report.study import StudyData

PREDICTORS = {"learnt": "cost model + trees", "analytical": "cost model", "roofline": "roofline"}
"""Kinds of the table, the most informed first, to their titles."""

FEWEST_FOR_RHO = 4  # Fewest times whose rank correlation is shown

FEWEST_FOR_FACTOR = 3
"""Fewest times whose errors after a common factor are shown: with one they are 0."""

HOW = (
    "Common factor: the geometric mean of predicted / published; least and greatest are the "
    "extreme ratios after it. A dash: the source does not say how many runs a time covers, or "
    "there are too few times."
)


FIGURES = [
    field("predictor", "predictor"),
    field("times", "times", wording.count, "published"),
    field("median error", "median", decimals(1), "%"),
    field("predicted / published", "factor", wording.number, "×, geometric mean"),
    field("rho", "rho", wording.fixed, "rank correlation"),
    *grouped(
        "error after a common factor",
        field("median", "median_around", decimals(1), "%"),
        field("least", "least", decimals(2), "×"),
        field("greatest", "greatest", decimals(2), "×"),
    ),
]


def judged(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Figures of each predictor that has rows of published times: keys as in :data:`FIGURES`. NaN
    stands where the number of runs is unknown, or where there are too few times."""
    for name, title in PREDICTORS.items():
        own = rows[rows["predictor"] == name]
        if own.empty:
            continue
        ratio = (own["predicted_ms"] / own["published_ms"]).to_numpy(dtype=float)
        factor, known = geometric_mean(ratio), bool((own["runs"] > 0).all())
        around = ratio / factor if len(own) >= FEWEST_FOR_FACTOR else np.array([np.nan])
        rho = np.nan
        if len(own) >= FEWEST_FOR_RHO:
            # pandas' own of ranks loads scipy.stats, for half a second in each process.
            rho = own["predicted_ms"].rank().corr(own["published_ms"].rank())
        yield {
            "predictor": title,
            "times": len(own),
            "median": 100 * float(np.median(abs(ratio - 1))) if known else np.nan,
            "factor": factor,
            "rho": rho,
            "median_around": 100 * float(np.median(abs(around - 1))),
            "least": float(around.min()),
            "greatest": float(around.max()),
        }


def published_times(study: StudyData) -> Section | None:
    """Errors against the published times of a study's paper by series, and every time as a file;
    None without any."""
    every = study.published_times
    if every is None or every.empty or study.folder is None:
        return None
    path = study.folder / RUN_TIMES
    series = validated(RunTimes, read_yaml(path), path).series
    rows = [
        {**row, "series": title}
        for title in dict.fromkeys(one.title for one in series)
        for row in judged(every[every["series"] == title])
    ]
    title = "Predictions against published run times"
    blocks: list[Block] = [
        table_of(f"{title}, per series", [field("series", "series"), *FIGURES], rows),
        Text(HOW, "note"),
        Bullets([*_notes(series), *_left_out(study)]),
        file_of(f"data/{study.name}.published_times.csv", _times(study, every)),
    ]
    return Section(f"{study.name}-against", title, blocks)


def _notes(series: Sequence[Series]) -> Iterator[tuple[str, str]]:
    for title, note in dict.fromkeys((one.title, one.note) for one in series if one.note):
        yield f"{title}:", note


def _left_out(study: StudyData) -> Iterator[tuple[str, str]]:
    for name, why in (
        ("skipped", "of the published table left out: a cell is empty there"),
        ("unfit", "without a prediction: no configuration fits the card"),
    ):
        for title, count in study.published_facts.get(name, {}).items():
            if count:
                yield f"{title}:", f"{wording.plural(count, 'row')} {why}."


def _times(study: StudyData, every: pd.DataFrame) -> Table:
    fields = [
        field("series", "series"),
        field("GPU", "gpu"),
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("configuration", lambda row: wording.configuration(row, study.spec)),
        field("published", "published_ms", significant(4), "ms"),
        field("predictor", lambda row: PREDICTORS[row["predictor"]]),
        field("predicted", "predicted_ms", significant(4), "ms of one run"),
    ]
    return table_of("Every published time and its predictions", fields, every)
