"""Blind tests: answers that were written down before their problems were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.report import wording
from launchwise.report.fields import decimals, field, grouped
from launchwise.report.study import StudyData

AGAINST_USUAL = grouped(
    "relative to the usual choice",
    field("speed-up", "gain_geometric_mean", decimals(2), "× usual"),
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


def only_tested(studies: Sequence[StudyData]) -> list[str]:
    """GPUs that blind tests alone have measured, in order."""
    swept = {gpu for study in studies for gpu in study.gpus}
    tested = dict.fromkeys(gpu for study in studies for gpu in study.blind)
    return [gpu for gpu in tested if gpu not in swept]
