"""Predictions held against published run times, on cards that no sweep has measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.published import RUN_TIMES, RunTimes, Series
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Fold, Section, Table, Text
from launchwise.report.fields import decimals, field, grouped, significant, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData, remembered

PREDICTORS = {"learnt": "cost model + trees", "analytical": "cost model", "roofline": "roofline"}
"""Kinds of the table, the most informed first, to their titles."""

FEWEST_FOR_RHO = 4  # Fewest times whose rank correlation is shown

FEWEST_FOR_FACTOR = 3
"""Fewest times whose errors after a common factor are shown: with one they are 0."""

TIME = ["series", "row", "gpu"]  # Columns that name a published time on a GPU

WHOLE, PHASES = "whole runs", "phases of runs"

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
    stands where the number of runs is unknown, or where there are too few times. ``error`` is the
    median of the errors, after the common factor where the number of runs is unknown."""
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
            "known": known,
            "error": 100 * float(np.median(abs(ratio / (1 if known else factor) - 1))),
        }


@remembered
def parts(study: StudyData) -> dict[str, pd.DataFrame]:
    """Scope of published times (:data:`WHOLE`, :data:`PHASES`) to their rows."""
    every = study.published_times
    if every is None or every.empty:
        return {}
    found = {
        WHOLE: every[(every["phases"] == "") & (every["runs"] > 0)],
        f"{WHOLE}, their number unknown": every[(every["phases"] == "") & (every["runs"] == 0)],
        PHASES: every[every["phases"] != ""],
    }
    return {name: rows for name, rows in found.items() if len(rows)}


def overall(studies: Sequence[StudyData]) -> list[Block]:
    """Every study's predictors against published times; nothing where there are none."""
    rows: list[dict[str, Any]] = []
    for study in studies:
        for name, times in parts(study).items():
            named = study.name, name, wording.listed(dict.fromkeys(times["gpu"]))
            rows += _named_once(("study", "of", "gpus"), named, judged(times))
    if not rows:
        return []
    every = pd.concat([times for study in studies for times in parts(study).values()])
    count = wording.plural(len(every.drop_duplicates([*TIME, "source"])), "published time")
    cards = wording.plural(every["gpu"].nunique(), "card")
    lead = (
        f"{count} on {cards} judge the predictions on cards that no sweep here has measured. "
        f"{' '.join(_said(studies))}"
    )
    caption = "Predictions against published run times, per study"
    of = [field("study", "study"), field("times of", "of"), field("GPUs", "gpus")]
    return [Text(lead, "lead"), table_of(caption, [*of, *FIGURES], rows), Text(HOW)]


def _named_once(
    keys: Sequence[str], names: Sequence[str], rows: Iterable[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Rows of one group, whose names stand in the first of them."""
    for place, row in enumerate(rows):
        yield {**row, **(dict.fromkeys(keys, "") if place else dict(zip(keys, names, strict=True)))}


def _said(studies: Sequence[StudyData]) -> Iterator[str]:
    """Median errors of whole runs by predictor, least to most of the studies."""
    found: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    for study in studies:
        for name, times in parts(study).items():
            for one in judged(times) if name != PHASES else ():
                found[one["known"]].setdefault(one["predictor"], []).append(one["error"])
    for begin, known in (
        ("Median error of whole runs", True),
        ("Where the number of runs is unknown, after one common factor", False),
    ):
        if medians := found[known]:
            told = [f"{title} {_span(values)} %" for title, values in medians.items()]
            count = wording.plural(max(map(len, medians.values())), "study", "studies")
            yield f"{begin}: {wording.listed(told)} ({count})."


def _span(values: Sequence[float]) -> str:
    ends = dict.fromkeys(wording.number(value) for value in (min(values), max(values)))
    return " to ".join(ends)


def published_times(study: StudyData) -> Section | None:
    """Every published time of a study's paper beside its predictions; None without any."""
    found = parts(study)
    if not found or study.folder is None:
        return None
    every = pd.concat(found.values())
    series = validated(
        RunTimes, read_yaml(study.folder / RUN_TIMES), study.folder / RUN_TIMES
    ).series
    rows = [
        row
        for title in dict.fromkeys(one.title for one in series)
        for row in _named_once(["series"], [title], judged(every[every["series"] == title]))
    ]
    caption = "Predictions against published run times, per series"
    table = table_of(caption, [field("series", "series"), *FIGURES], rows)
    blocks: list[Block] = [table, Text(HOW)]
    notes = [*_notes(series), *_left_out(study), *_most_runs(every)]
    blocks += [Bullets(notes)] if notes else []
    blocks.append(Fold("Every published time", [_times(study, every)]))
    title = "Predictions against published run times"
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


def _most_runs(every: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Most runs that times of an unknown number can cover: no run is faster than the roofline."""
    unknown = every[(every["runs"] == 0) & (every["predictor"] == "roofline")]
    for title in dict.fromkeys(unknown["series"]):
        own = unknown[unknown["series"] == title]
        most = own["published_ms"] / own["predicted_ms"]
        row = dict(own.iloc[int(most.argmin())])
        yield (
            f"{title}:",
            f"by the roofline a time covers at most {wording.count(most.min())} runs, if all cover "
            f"as many (row {row['row']}, {row['gpu']}). With so many, the slowest of the others "
            f"takes {wording.number(most.max() / most.min())} times its roofline.",
        )


def _times(study: StudyData, every: pd.DataFrame) -> Table:
    predicted = {
        (*(row[name] for name in TIME), row["predictor"]): row["predicted_ms"]
        for row in records(every)
    }

    def time(row: Mapping[str, Any], predictor: str) -> float | None:
        return predicted.get((*(row[name] for name in TIME), predictor))

    def ratio(row: Mapping[str, Any], predictor: str) -> float | None:
        known = time(row, predictor)
        return None if known is None else known / row["published_ms"]

    known = [name for name in PREDICTORS if (every["predictor"] == name).any()]
    fields = [
        field("series", "series"),
        field("GPU", "gpu"),
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("configuration", lambda row: wording.configuration(row, study.spec)),
        field("published", "published_ms", significant(4), "ms"),
    ]
    for group, unit, of in (("predicted", "ms", time), ("predicted / published", "×", ratio)):
        for name in known:
            own = partial(of, predictor=name)
            fields += grouped(group, field(PREDICTORS[name], own, wording.number, unit))
    caption = (
        "Published times and predictions. Where the number of runs is unknown, a prediction is of "
        "one run. Where the source leaves tunables open, each predictor takes its own fastest; the "
        "table names the cost model's"
    )
    return table_of(caption, fields, every[every["predictor"] == "analytical"])
