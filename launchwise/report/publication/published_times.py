"""Predictions held against published run times, on cards that no sweep has measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.run_times import FILE, RunTimes, Series
from launchwise.learning.merit import geometric_mean
from launchwise.learning.ranks import correlations, group_ranks
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Cell, Fold, Section, Table, Text
from launchwise.report.fields import Field, decimals, field, grouped, significant, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData, remembered

PREDICTORS = {"learnt": "cost model + trees", "analytical": "cost model", "roofline": "roofline"}
"""Kinds of the table, the most informed first, to their titles."""

FEWEST_FOR_RHO = 4
"""Fewest times whose rank correlation is shown."""

FEWEST_FOR_FACTOR = 3
"""Fewest times whose errors after a common factor are shown: with one they are 0."""

TIME = ["series", "row", "gpu"]
"""Columns that name a published time on a GPU."""

WHOLE, PHASES = "whole runs", "phases of runs"

HOW = (
    "The common factor of some times is the geometric mean of predicted / published. It absorbs "
    "what a source does not say, such as the number of time steps, and what is wrong by the same "
    "ratio everywhere. Least and greatest are the extreme ratios after it. A dash stands where the "
    "source does not say how many runs a time covers, or where there are too few times."
)


@dataclass(frozen=True)
class Judged:
    """One predictor held against some published times."""

    predictor: str
    rows: pd.DataFrame  # of published_times_schema, one predictor's

    @property
    def ratio(self) -> np.ndarray:
        """Predicted divided by published time: float64, shape (rows,)."""
        return (self.rows["predicted_ms"] / self.rows["published_ms"]).to_numpy(dtype=float)

    @property
    def factor(self) -> float:
        """Geometric mean of :attr:`ratio`."""
        return geometric_mean(self.ratio)

    @property
    def is_absolute(self) -> bool:
        """Whether the source says how many runs each time covers."""
        return bool((self.rows["runs"] > 0).all())

    @property
    def median_percent(self) -> float:
        """Median of |predicted / published - 1|, %; NaN where the number of runs is unknown."""
        return 100 * float(np.median(abs(self.ratio - 1))) if self.is_absolute else float("nan")

    @property
    def rho(self) -> float:
        """Spearman's rank correlation; NaN of fewer than :data:`FEWEST_FOR_RHO` times."""
        if len(self.rows) < FEWEST_FOR_RHO:
            return float("nan")
        whole = np.zeros(len(self.rows), dtype=np.int64)
        ranks = [
            group_ranks(whole, self.rows[name].to_numpy(dtype=float))
            for name in ("predicted_ms", "published_ms")
        ]
        return float(correlations(whole, *ranks)[0])

    @property
    def median_around_percent(self) -> float:
        """Median of |ratio / factor - 1|, %."""
        return 100 * float(np.median(abs(self.ratio / self.factor - 1)))

    @property
    def apart(self) -> np.ndarray:
        """:attr:`ratio` / :attr:`factor`; NaN for fewer than :data:`FEWEST_FOR_FACTOR` times."""
        known = len(self.rows) >= FEWEST_FOR_FACTOR
        return self.ratio / self.factor if known else np.array([np.nan])

    @property
    def title(self) -> str:
        """The predictor, for people."""
        return PREDICTORS[self.predictor]


FIGURES = [
    field("times", lambda one: len(one.rows), wording.count, "published"),
    field("median error", "median_percent", decimals(1), "%"),
    field("predicted / published", "factor", wording.number, "×, geometric mean"),
    field("rho", "rho", wording.fixed, "rank correlation"),
    *grouped(
        "error after a common factor",
        field("median", lambda one: 100 * np.median(abs(one.apart - 1)), decimals(1), "%"),
        field("least", lambda one: one.apart.min(), decimals(2), "×"),
        field("greatest", lambda one: one.apart.max(), decimals(2), "×"),
    ),
]


def _figures(caption: str, titles: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Table:
    """A table of :data:`FIGURES`; rows end in what is judged, the first of a group names it."""
    of = [replace(one, value=partial(_of_last, one)) for one in FIGURES]
    predictor = field("predictor", lambda row: row[-1].title)
    return table_of(caption, [*map(field, titles, range(len(titles))), predictor, *of], rows)


def _of_last(one: Field, row: tuple[Any, ...]) -> Cell:
    return one.cell(row[-1])


def judged(rows: pd.DataFrame) -> Iterator[Judged]:
    """Each predictor that has rows."""
    for name in PREDICTORS:
        own = rows[rows["predictor"] == name]
        if len(own):
            yield Judged(name, own.reset_index(drop=True))


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
    rows: list[tuple[Any, ...]] = []
    for study in studies:
        for name, times in parts(study).items():
            named: tuple[str, ...] = study.name, name, wording.listed(dict.fromkeys(times["gpu"]))
            for one in judged(times):
                rows.append((*named, one))
                named = "", "", ""
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
    found = _figures(caption, ("study", "times of", "GPUs"), rows)
    return [Text(lead, "lead"), found, Text(HOW)]


def _said(studies: Sequence[StudyData]) -> Iterator[str]:
    """Median errors of whole runs by predictor, least to most of the studies."""
    known: dict[str, list[float]] = {}
    around: dict[str, list[float]] = {}
    for study in studies:
        for name, times in parts(study).items():
            for one in judged(times) if name != PHASES else ():
                medians, median = (known, one.median_percent)
                if not one.is_absolute:
                    medians, median = (around, one.median_around_percent)
                medians.setdefault(one.title, []).append(median)
    for begin, medians in (
        ("Median error of whole runs", known),
        ("Where the number of runs is unknown, after one common factor", around),
    ):
        if medians:
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
    series = validated(RunTimes, read_yaml(study.folder / FILE), study.folder / FILE).series
    rows = [
        ("" if place else title, one)
        for title in dict.fromkeys(one.title for one in series)
        for place, one in enumerate(judged(every[every["series"] == title]))
    ]
    caption = "Predictions against published run times, per series"
    blocks: list[Block] = [_figures(caption, ["series"], rows), Text(HOW)]
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
