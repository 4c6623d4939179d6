"""Quality of the models, beside baselines and oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd

from launchwise.learning.merit import HARM_PERCENT
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section, Table, Text
from launchwise.report.fields import field, grouped, table_of
from launchwise.report.numbers import records
from launchwise.report.scores import (
    ALL_GPUS,
    is_tied,
    null_accuracy,
    score_table,
    splits_evaluated,
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

UNMARKED = "fraction_interval"
"""Column in which no value is marked as the best."""


def _usual(study: StudyData) -> str:
    """Reasons for the usual choices of a study in brackets; without any, the baseline."""
    rules = study.settings.usual or study.spec.usual
    if not rules:
        return " (here the baseline)"
    return f" ({'; '.join(dict.fromkeys(rule.reason for rule in rules))})"


NO_TIME = (
    "No time: problems whose recommendation failed on the GPU or was never measured. Each counts "
    "as fraction 0 and improvement 0, so a single one makes a geometric mean 0."
)


def tables_of(study: StudyData) -> Section:
    """One table per split, models among baselines and oracle; GPUs one by one below."""
    near = f"{study.settings.near_best_percent:g}"
    found: list[Block] = [
        Text(
            "Fraction of the best: best time over time of the recommendation, 1 is perfect. "
            "Improvement: baseline time over time of the recommendation, above 1 is faster. "
            "Accuracy: the share of recommendations that are the best configuration, or within "
            f"{near} % of the best time. Usual choice: what an experienced engineer takes without "
            f"measuring{_usual(study)}. Slower: recommendations that take longer than it by more "
            f"than {HARM_PERCENT:g} %, or have no time. Bold: the best model of a column; for the "
            "mean, also every model that does not differ significantly from the best (the 95 % "
            "interval of the ratio contains 1; bootstrap over problems). Grey: baselines. Training "
            "includes the hyper-parameter search; choosing is the time to rank the candidates of "
            "one problem."
        )
    ]
    if study.evaluation["time_ms"].isna().any():
        found.append(Text(NO_TIME, "note"))
    present = splits_evaluated(study)
    for split in present:
        rows = study.evaluation[study.evaluation["split"] == split]
        evaluated = set(rows["gpu"].unique())
        gpus = [gpu for gpu in study.gpus if gpu in evaluated]
        whole = _model_table(study, split, ALL_GPUS, gpus)
        inside = [_model_table(study, split, gpu, [gpu]) for gpu in gpus if len(gpus) > 1]
        if split == present[0]:
            found.append(whole)
            if inside:
                found.append(Fold(f"Split “{split}”: GPU by GPU", inside))
        else:
            title = f"Split “{split}”: {study.split_title(split)}"
            found.append(Fold(title, [whole, *inside]))
    return Section(f"{study.name}-models", "Models and baselines", found)


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
