"""Quality of the models beside baselines and oracle: a table, gains, and goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd

from launchwise.learning.merit import HARM_PERCENT
from launchwise.report import wording
from launchwise.report.blocks import Block, Section, Table, Text
from launchwise.report.fields import field, grouped, table_of
from launchwise.report.numbers import records
from launchwise.report.scores import (
    ALL_GPUS,
    first_split,
    is_tied,
    leader,
    null_accuracy,
    score_of,
    score_table,
    scores_on,
)
from launchwise.report.study import StudyData

SCORES = [
    *grouped(
        "fraction of the best",
        field("mean", "fraction", wording.fixed, "geometric"),
        field("mean", "fraction_interval", wording.interval, "95 % interval"),
        field("5th", "fraction_p5", wording.fixed, "percentile"),
        field("worst", "worst", wording.fixed, "problem"),
    ),
    *grouped(
        "improved",
        field("problems", "improved", wording.percent, "%"),
        field("runs", "improved_runs", wording.percent, "%"),
        field("coefficient", "coefficient", wording.fixed, "× baseline"),
    ),
    *grouped(
        "relative to the usual choice",
        field("speed-up", "gain", wording.fixed, "geometric"),
        field("slower", "harmed", wording.count, "problems"),
    ),
    *grouped(
        "accuracy",
        field("exact", "exact", wording.percent, "%"),
        field("near", "accuracy", wording.percent, "%"),
    ),
    *grouped(
        "predicted times",
        field("MAPE", "mape", wording.number, "%"),
        field("Spearman", "spearman", wording.fixed, "mean"),
    ),
    *grouped(
        "duration",
        field("train", "train_s", wording.seconds, "s"),
        field("choose", "choose_ms", wording.seconds, "ms each"),
    ),
]
"""Columns of the model table, from left to right."""

LEAST_IS_BEST = {"harmed", "mape", "train_s", "choose_ms"}

UNMARKED = "fraction_interval"  # Column in which no value is marked as the best


def tables_of(study: StudyData) -> Section | None:
    """Models among baselines and oracle in the first split, and the goals of a study that has some;
    other splits and GPUs are in the CSV file."""
    split = first_split(study)
    evaluated = set(study.evaluation.loc[study.evaluation["split"] == split, "gpu"].unique())
    gpus = [gpu for gpu in study.gpus if gpu in evaluated]
    if not gpus:
        return None
    found: list[Block] = [_model_table(study, split, ALL_GPUS, gpus), Text(NOTE.format(
        near=f"{study.settings.near_best_percent:g}",
        usual=study.usual_reasons or "here the baseline",
    ), "note")]  # fmt: skip
    if judged := verdicts(study, split):
        caption = f"Goals, split “{study.split_title(split)}”"
        found.append(table_of(caption, VERDICTS, judged))
    return Section(f"{study.name}-models", "Models and baselines", found)


NOTE = (
    "Fraction of the best: best time over time of the recommendation; without a time it is 0. "
    "Improvement: baseline time over time of the recommendation. Near: within {near} % of the best "
    f"time. Usual choice: {{usual}}. Slower: by more than {HARM_PERCENT:g} %. Bold: the best model "
    "of a column, and those whose mean cannot be told apart from it. Grey: baselines."
)


def _on(gpus: Sequence[str]) -> str:
    return f"on {gpus[0]}" if len(gpus) == 1 else f"on {wording.listed(gpus)} together"


def _model_table(study: StudyData, split: str, part: str, gpus: Sequence[str]) -> Table:
    found = records(score_table(study, split, part))
    best = _best_values([record for record in found if record["role"] == "model"])

    def won(record: Mapping[str, Any], key: str) -> bool:
        tied = key == "fraction" and is_tied(record["beside_best_model"])
        best_one = key in best and record[key] == best[key]
        return record["role"] == "model" and (tied or best_one)

    unmeasured = any(record["unmeasured"] for record in found)
    fields = [
        field("method", lambda record: study.title(record["model"])),
        *([field("no time", "unmeasured", wording.count, "count")] if unmeasured else []),
        *(replace(one, best=partial(won, key=str(one.value))) for one in SCORES),
    ]
    null = wording.percent(null_accuracy(study, split, part))
    problems = wording.plural(max(record["problems"] for record in found), "problem")
    caption = (
        f"Split “{split}”: {study.split_title(split)}, {_on(gpus)} "
        f"({problems}; majority-class accuracy {null} %)"
    )
    return table_of(caption, fields, found, itemgetter("role"))


def _best_values(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Column of :data:`SCORES` to its best value, where models differ."""
    best = {}
    for key in [str(one.value) for one in SCORES if one.value != UNMARKED]:
        values = {record[key] for record in models if not pd.isna(record[key])}
        if len(values) > 1:
            best[key] = min(values) if key in LEAST_IS_BEST else max(values)
    return best


WORDS = (
    ("coefficient", "mean speed-up", ">", wording.fixed, "mean_speed_up", 1),
    ("improved", "problems improved (%)", "≥", wording.percent, "improved_percent", 100),
    ("fraction", "fraction of the best", "≥", wording.fixed, "best_percent", 100),
)
"""Goals in the order they are shown: key, words, relation, how to write the value, key of the
settings, and its value there for one of the figure's."""


def verdicts(study: StudyData, split: str) -> list[dict[str, Any]]:
    """Each goal on every whole card that a model was evaluated on: what is reached, and possible.
    Empty where the study has no goals."""
    found, wanted = [], study.settings.goals
    for gpu in study.whole if wanted else ():
        if (name := leader(study, split, gpu)) is None:
            continue
        got = scores_on(study, split, gpu)
        oracle = got[got["role"] == "oracle"]
        for key, title, relation, shown, setting, scale in WORDS:
            goal = getattr(wanted, setting) / scale
            value = score_of(study, split, gpu, name)[key]
            ceiling = float(oracle[key].iloc[0]) if len(oracle) else float("nan")
            # A mean speed-up must exceed its goal.
            reached = value > goal if relation == ">" else value >= goal
            missed = "missed, out of reach" if ceiling < goal else "missed"
            row = {
                "figure": f"{title}, {gpu}",
                "goal": f"{relation} {shown(goal)}",
                "measured": shown(value),
                "model": study.title(name),
                "possible": shown(ceiling),
                "verdict": "reached" if reached else missed,
            }
            found.append(row)
    return found


VERDICTS = [
    field("figure", "figure"),
    field("goal", "goal", number=True),
    field("measured", "measured", number=True, best=lambda row: row["verdict"] == "reached"),
    field("by model", "model"),
    field("best possible", "possible", number=True),
    field(
        "verdict",
        "verdict",
        role=lambda row: "good" if row["verdict"] == "reached" else "poor",
    ),
]
