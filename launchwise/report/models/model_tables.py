"""Quality of the models, beside baselines and oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.merit import HARM_PERCENT, geometric_mean
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Fold, Panel, Section, Table, Text
from launchwise.report.fields import field, grouped, table_of
from launchwise.report.figures import size_axis
from launchwise.report.numbers import records
from launchwise.report.scores import (
    ALL_GPUS,
    is_tied,
    null_accuracy,
    score_table,
    scores_on,
    splits_evaluated,
)
from launchwise.report.study import StudyData
from launchwise.tables.rows import row_numbers

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
        order = [str(model) for model in scores_on(study, split, ALL_GPUS)["model"]]
        heat = fraction_heat(study, rows, order, split)
        inside: list[Block] = []
        if len(gpus) > 1:
            inside = [_model_table(study, split, gpu, [gpu]) for gpu in gpus]
        if split == present[0]:
            found += [whole, heat]
            if inside:
                found.append(Fold(f"Split “{split}”: GPU by GPU", inside))
        else:
            title = f"Split “{split}”: {study.split_title(split)}"
            found.append(Fold(title, [whole, heat, *inside]))
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


def fraction_heat(
    study: StudyData, evaluation: pd.DataFrame, models: Sequence[str], name: str
) -> Figure:
    """Fraction of the best by model and size, one panel per GPU."""
    means = _mean_fractions(study, evaluation)
    sizes = sorted(evaluation[study.size].unique())
    lowest = min(means.values(), default=0.5)
    # One far loser must not bleach the differences between good ones.
    low = min(max(float(np.floor(20 * lowest) / 20), 0.6), 0.9)
    titles = [study.title(model) for model in models]
    panels = []
    for gpu in study.gpus:
        present = [size for size in sizes if any((gpu, one, size) in means for one in models)]
        if not present:
            continue
        trace = theme.heat(
            [str(size) for size in present],
            titles,
            [[means.get((gpu, one, size), np.nan) for size in present] for one in models],
            low=low,
            high=1.0,
            scale=theme.regret_scale(low),
            template=f"%{{y}}, {study.size}=%{{x}}<br>fraction of the best %{{z:.3f}}",
        )
        # Few: the upper ones stand close together.
        ticks = [low, *(tick for tick in (0.7, 0.8, 0.9, 0.95, 0.98) if tick > low), 1.0]
        trace["colorbar"] |= {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
        x = theme.axis(size_axis(study), type="category", showgrid=False)
        y = theme.axis("", type="category", autorange="reversed", showgrid=False, ticks="")
        panels.append(Panel(gpu, [trace], theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-heat-{name}",
        caption=(
            "Fraction of the best (geometric mean over the problems of a size): dark is good, "
            f"1 is the best configuration, {low:.2f} or less is palest. Colours follow the log of "
            "the regret (1 - fraction). The best row is on top."
        ),
        alt="Heat maps: fraction of the best by model and size, one map per GPU.",
        panels=panels,
        height=90 + 19 * len(models),
        width=420,
    )


def _mean_fractions(
    study: StudyData, evaluation: pd.DataFrame
) -> dict[tuple[str, str, Any], float]:
    """GPU, model and size to the geometric mean of its fractions, where none of them is NaN."""
    if evaluation.empty:
        return {}
    key = ["gpu", "model", study.size]
    groups = row_numbers(evaluation, key)
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    fractions = np.split(evaluation["fraction"].to_numpy()[order], ends[:-1])
    first = evaluation[key].iloc[order[ends - 1]]
    names = zip(*(first[name].tolist() for name in key), strict=True)
    means = zip(names, map(geometric_mean, fractions), strict=True)
    return {name: mean for name, mean in means if not np.isnan(mean)}
