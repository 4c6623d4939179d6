"""Quality of the models, beside baselines and oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from launchwise.learning.merit import HARM_PERCENT
from launchwise.learning.recommenders import COMMITTEE
from launchwise.report import maps, wording
from launchwise.report.blocks import Block, Cell, Column, Fold, Row, Section, Table, Text
from launchwise.report.numbers import best_model, null_accuracy, records, scores_on
from launchwise.report.study import StudyData, remembered


@dataclass(frozen=True)
class Score:
    """A column of the model table: which figure, its heading, and how to write it.

    ``more`` says whether the highest value is the best one; None where no value is marked.
    """

    key: str
    column: Column
    shown: Callable[[Any], str]
    more: bool | None = True


ALL_GPUS = "all"
"""Name of all GPUs together in the evaluation."""

OPTIMUM = "fraction of the best"
USUAL = "relative to the usual choice"
SCORES = (
    Score("fraction", Column("mean", "geometric", group=OPTIMUM), wording.fixed),
    Score(
        "fraction_interval",
        Column("mean", "95 % interval", group=OPTIMUM),
        wording.interval,
        more=None,
    ),
    Score("fraction_p5", Column("5th", "percentile", group=OPTIMUM), wording.fixed),
    Score("worst", Column("worst", "problem", group=OPTIMUM), wording.fixed),
    Score("improved", Column("problems", "%", group="improved"), wording.percent),
    Score("improved_runs", Column("runs", "%", group="improved"), wording.percent),
    Score("coefficient", Column("coefficient", "× baseline", group="improved"), wording.fixed),
    Score("gain", Column("speed-up", "geometric", group=USUAL), wording.fixed),
    Score("harmed", Column("slower", "problems", group=USUAL), wording.count, more=False),
    Score("exact", Column("exact", "%", group="accuracy"), wording.percent),
    Score("accuracy", Column("near", "%", group="accuracy"), wording.percent),
    Score("mape", Column("MAPE", "%", group="predicted times"), wording.number, more=False),
    Score("spearman", Column("Spearman", "mean", group="predicted times"), wording.fixed),
    Score("train_s", Column("train", "s", group="duration"), wording.seconds, more=False),
    Score("choose_ms", Column("choose", "ms each", group="duration"), wording.seconds, more=False),
)
"""Columns of the model table, from left to right."""


@remembered
def splits_evaluated(study: StudyData) -> list[str]:
    """Splits that the evaluation has rows of, in the order of the settings."""
    present = set(study.evaluation["split"].unique())
    return [split for split in study.settings.splits if split in present]


def first_split(study: StudyData) -> str:
    """The split of the headline figures: the first of the settings that was evaluated."""
    return next(iter(splits_evaluated(study)), "")


def first_split_is_transfer(study: StudyData) -> bool:
    """Whether the first split leaves GPUs out of training, not problems."""
    asked = study.settings.splits.get(first_split(study))
    return asked is not None and asked.kind == "leave_one_gpu_out"


def answering(study: StudyData) -> str | None:
    """Name of the model that answers users; None in a study without one."""
    kinds = {name: model.get("kind") for name, model in study.models.items()}
    return next((name for name, kind in kinds.items() if kind == COMMITTEE), None)


def leader(study: StudyData, split: str, gpu: str) -> str | None:
    """Name of the answering model; without one, of the best of the test.

    None when no model was evaluated there.
    """
    scores = scores_on(study, split, gpu)
    name = answering(study)
    return name if name in set(scores["model"]) else best_model(scores)


def score_of(study: StudyData, split: str, gpu: str, model: str) -> dict[str, Any]:
    """Row of :func:`numbers.scores_on` of one model."""
    return next(row for row in records(scores_on(study, split, gpu)) if row["model"] == model)


def folds_of(study: StudyData, model: str, split: str) -> list[Mapping[str, Any]]:
    """Training records of a model's fits for a split, one per fold; those of its members, if any.

    Simple rules, which may be members, have none.
    """
    members = study.models.get(model, {}).get("members", [model])
    found = [fold for one in members for fold in study.models.get(one, {}).get("folds", [])]
    return [fold for fold in found if fold["split"] == split]


def dropped_features(study: StudyData, split: str) -> list[str]:
    """GPU features that a split's training dropped because they did not vary, by name."""
    folds = [fold for model in study.models for fold in folds_of(study, model, split)]
    names = {name for fold in folds for name in fold.get("features_dropped", [])}
    return sorted(name.removeprefix("gpu_") for name in names if name.startswith("gpu_"))


def seconds_to_train(study: StudyData, model: str, split: str) -> float:
    """Seconds of search and fits for one split, all folds; NaN for what is not trained."""
    folds = folds_of(study, model, split)
    if not folds:
        return float("nan")
    return float(sum(fold["seconds_search"] + fold["seconds_fit"] for fold in folds))


@remembered
def _rows_of_models(study: StudyData) -> dict[str, int]:
    counts = study.evaluation["model"].value_counts()
    return dict(zip(counts.index, counts.tolist(), strict=True))


def ms_to_choose(study: StudyData, model: str) -> float:
    """Milliseconds to rank the candidates of one test problem; NaN if it was not measured."""
    seconds = study.facts.get("models", {}).get(model, {}).get("seconds_to_recommend")
    problems = _rows_of_models(study).get(model, 0)
    return float("nan") if seconds is None or not problems else 1000 * float(seconds) / problems


def score_table(study: StudyData, split: str, part: str) -> pd.DataFrame:
    """:func:`numbers.scores_on` with ``train_s`` and ``choose_ms``."""
    found = scores_on(study, split, part)
    return found.assign(
        train_s=[seconds_to_train(study, model, split) for model in found["model"]],
        choose_ms=[ms_to_choose(study, model) for model in found["model"]],
    )


def is_tied(ratio: tuple[float, float] | None) -> bool:
    """Whether an interval of a ratio holds 1; without an interval nothing is known to differ."""
    return ratio is None or ratio[0] <= 1 <= ratio[1]


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
        heat = maps.fraction_heat(study, rows, order, split)
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
    models = [record for record in found if record["role"] == "model"]
    best = {}
    for score in SCORES:
        if score.more is None:
            continue
        values = {record[score.key] for record in models if not pd.isna(record[score.key])}
        if len(values) > 1:
            best[score.key] = max(values) if score.more else min(values)
    unmeasured = any(record["unmeasured"] for record in found)
    rows = []
    for record in found:
        cells = [Cell(study.title(record["model"]))]
        if unmeasured:
            cells.append(Cell(wording.count(record["unmeasured"])))
        for score in SCORES:
            value = record[score.key]
            won = record["role"] == "model" and score.key in best and value == best[score.key]
            if score.key == "fraction" and record["role"] == "model":
                won = won or is_tied(record["beside_best_model"])
            cells.append(Cell(score.shown(value), best=won))
        rows.append(Row(cells, role=record["role"]))
    columns = [Column("method", number=False), *(score.column for score in SCORES)]
    if unmeasured:
        columns.insert(1, Column("no time", "count"))
    null = wording.percent(null_accuracy(study, split, part))
    problems = wording.plural(max(record["problems"] for record in found), "problem")
    caption = (
        f"Split “{split}”: {study.split_title(split)}, {_on(gpus)} "
        f"({problems}; majority-class accuracy {null} %)"
    )
    return Table(caption, columns, rows)
