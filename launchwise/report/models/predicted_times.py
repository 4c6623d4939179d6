"""Errors of predicted times of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.learning.prediction_errors import ALL
from launchwise.report import scores, wording
from launchwise.report.blocks import Block, Section, Text
from launchwise.report.fields import Field, decimals, field, file_of, grouped, table_of
from launchwise.report.study import StudyData

Errors = Sequence[Mapping[str, Any]]
"""Records of :func:`launchwise.learning.prediction_errors.prediction_errors`."""

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


def _errors(study: StudyData) -> Errors:
    found: Errors = study.facts.get("predictions", [])
    return found


def whole_split(study: StudyData, split: str, gpu: str = ALL) -> list[Mapping[str, Any]]:
    """Errors over all rows of a split on a GPU, the best median first."""
    own = [
        one for one in _errors(study) if (one["split"], one["gpu"], one["by"]) == (split, gpu, "")
    ]
    return sorted(own, key=lambda one: (one["median_percent"], one["model"]))


def predictions(study: StudyData) -> Section | None:
    """Measured against predicted time; None where no model predicts any."""
    split = scores.first_split(study)
    first = whole_split(study, split)
    if not first:
        return None
    splits = list(dict.fromkeys(one["split"] for one in _errors(study)))
    parts = dict.fromkeys(one["gpu"] for one in _errors(study))
    every = [
        {**one, "split": name, "on": gpu}
        for name in splits
        for gpu in parts
        for one in whole_split(study, name, gpu)
    ]
    fields = [field("split", "split"), field("GPU", "on"), _titled(study), *FIGURES]
    more = table_of("Errors of predicted times, every split and GPU", fields, every)
    caption = f"Errors of predicted times, split “{split}”: {study.split_title(split)}, all GPUs"
    found: list[Block] = [
        table_of(caption, [_titled(study), *FIGURES], first),
        Text(NOTE, "note"),
        file_of(f"data/{study.name}.errors.csv", more),
    ]
    return Section(f"{study.name}-predicted", "Predicted against measured time", found)


def _titled(study: StudyData) -> Field:
    return field("model", lambda one: study.title(one["model"]))
