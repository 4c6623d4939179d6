"""Figures of models from the evaluation and from blind tests, and which model answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.evaluation import HEURISTICS
from launchwise.learning.recommenders import COMMITTEE
from launchwise.report import wording
from launchwise.report.fields import decimals, field, grouped
from launchwise.report.numbers import records
from launchwise.report.study import StudyData, remembered

ALL_GPUS = "all"  # Name of all GPUs together in the evaluation


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
    """Name of the answering model; without one, of the best of the test. None when no model was
    evaluated there."""
    scores = scores_on(study, split, gpu)
    name = answering(study)
    return name if name in set(scores["model"]) else best_model(scores)


def score_of(study: StudyData, split: str, gpu: str, model: str) -> dict[str, Any]:
    """Row of :func:`scores_on` of one model."""
    return next(row for row in records(scores_on(study, split, gpu)) if row["model"] == model)


def best_rule(study: StudyData, split: str, gpu: str) -> dict[str, Any] | None:
    """Row of :func:`scores_on` of the strongest rule without learning, named after the test. Of
    equal ones the first in the order of the report: of one GPU, the nearest is itself."""
    got = {row["model"]: row for row in records(scores_on(study, split, gpu))}
    rules = [got[name] for name in HEURISTICS if name in got]
    return max(rules, key=lambda row: row["fraction"], default=None)


def is_tied(ratio: tuple[float, float] | None) -> bool:
    """Whether an interval of a ratio holds 1; without an interval nothing is known to differ."""
    return ratio is None or ratio[0] <= 1 <= ratio[1]


FIGURES = {
    "fraction": ("fraction_geometric_mean", 1),
    "fraction_p5": ("fraction_p5", 1),
    "worst": ("fraction_worst", 1),
    "improved": ("percent_improved", 0.01),
    "improved_runs": ("percent_runs_improved", 0.01),
    "coefficient": ("improvement_coefficient", 1),
    "gain": ("gain_geometric_mean", 1),
    "exact": ("accuracy", 1),
    "accuracy": ("accuracy_near_best", 1),
    "mape": ("mape_percent", 1),
    "spearman": ("spearman", 1),
}
"""Columns of :func:`scores_on`: what the evaluation calls each, and the factor to a share."""

INTERVALS = ("fraction_interval", "beside_best_model", "beside_best_heuristic")
"""Columns of :func:`scores_on` with intervals, by the evaluation's names."""


@remembered
def scores_on(study: StudyData, split: str, part: str) -> pd.DataFrame:
    """The evaluation's figures of one split on one GPU, or on ``all`` of them.

    Returns one row a model, sorted from the best fraction of the best: ``model``, ``role``,
    ``problems``, ``unmeasured`` (recommendations without a time, which count as fraction 0),
    ``harmed`` (problems slower than what is usual), the intervals of :data:`INTERVALS` (pairs; None
    where there are too few problems), and the columns of :data:`FIGURES`, shares as 0..1. Empty
    when nothing was evaluated.
    """
    given = study.facts.get("splits", {}).get(split, {}).get(part, {}).get("models", {})
    known = study.facts.get("models", {})
    found = []
    for model, figures in given.items():
        row = {
            "model": model,
            "role": known.get(model, {}).get("role", "model"),
            "problems": figures["problems"],
            "unmeasured": figures["without_time"],
            "harmed": figures["harmed"],
            **{name: figures[name] for name in INTERVALS},
        }
        for column, (name, factor) in FIGURES.items():
            value = figures[name]
            row[column] = float("nan") if value is None else factor * value
        found.append(row)
    # The oracle first where a model is just as good, then by name: the same order every time.
    found.sort(key=lambda row: (row["role"] != "oracle", row["model"]))
    found.sort(key=lambda row: np.inf if np.isnan(row["fraction"]) else -row["fraction"])
    columns = ["model", "role", "problems", "unmeasured", "harmed", *INTERVALS, *FIGURES]
    return pd.DataFrame(found, columns=columns)


def null_accuracy(study: StudyData, split: str, part: str) -> float:
    """Share of the test problems that the most frequent best configuration is the best of."""
    found = study.facts.get("splits", {}).get(split, {}).get(part, {}).get("null_accuracy")
    return float("nan") if found is None else float(found)


def best_model(table: pd.DataFrame) -> str | None:
    """First model (no baseline, no oracle) of :func:`scores_on`."""
    models = table[(table["role"] == "model") & table["fraction"].notna()]
    return None if models.empty else str(models["model"].iloc[0])


AGAINST_USUAL = grouped(
    "relative to the usual choice",
    field("speed-up", "gain_geometric_mean", decimals(2), "geometric"),
    field("slower", "harmed", wording.count, "problems"),
    field("kept", "kept_usual", wording.count, "problems"),
    field(
        "missed", lambda got: f"{got['missed']} of {got['worthwhile']}", str, "of improvable", True
    ),
)
"""Columns of the figures of a model on one split or GPU."""


def of_mean(got: Mapping[str, Any]) -> str:
    """Interval of the mean fraction of the best; empty without one."""
    ends = got["fraction_interval"]
    return wording.interval(tuple(ends)) if ends else ""


def answers_in(name: str) -> Callable[[Mapping[str, Any]], str]:
    """Number of the answers of which a share of intervals tells, by the column that has it."""
    return lambda got: f"of {got[name]}" if got.get(name) else ""


def only_tested(studies: Sequence[StudyData]) -> list[str]:
    """GPUs that blind tests alone have measured, in order."""
    swept = {gpu for study in studies for gpu in study.gpus}
    tested = dict.fromkeys(gpu for study in studies for gpu in study.blind)
    return [gpu for gpu in tested if gpu not in swept]
