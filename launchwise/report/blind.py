"""Blind tests: answers that were written down before their problems were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from launchwise.report import wording
from launchwise.report.blocks import Section, Text
from launchwise.report.fields import decimals, field, grouped, percents, table_of
from launchwise.report.study import StudyData

NOTE = (
    "Problems were drawn at random from the ranges of each study, and none of them had been "
    "measured. The answers were recorded with a digest and the commit. Then these problems were "
    "measured in full, and answer, usual choice and fastest configuration were timed in pairs. "
    "Mean, percentile and speed are from these pairs; the best is the fastest of at most eight "
    "configurations that ran in them, so fractions are upper bounds. The best of five measurements "
    "is from single rows of the test's sweep. "
    "Slower: slower than the usual choice by more than 2 %. Kept: the answer was the usual choice; "
    "missed: of these, problems whose best configuration is more than 5 % faster. "
    "New: the study had no row of this GPU when it answered."
)

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


FIELDS = [
    field("study", "title"),
    field("GPU", lambda got: f"{got['gpu']}, new" if got["new_gpu"] else got["gpu"]),
    field("problems", "problems", wording.count, "count"),
    *grouped(
        "fraction of the best",
        field("mean", "fraction_geometric_mean", wording.fixed, "geometric, 95 %", detail=of_mean),
        field("5th percentile", "fraction_p5", wording.fixed),
        field("5 measured", "best_of_5", wording.fixed, "geometric, single rows"),
    ),
    *AGAINST_USUAL,
    *grouped(
        "90 % intervals",
        field("gains covered", "covered", percents(0), "%"),
        field("times covered", "times_covered", percents(0), "%"),
    ),
    field(
        "commit and day",
        lambda got: f"{wording.short(got['commit'])}, {got['frozen_at'][:10]}",
        unit="digest of the answers",
        detail=itemgetter("digest"),
    ),
]


def section(studies: Sequence[StudyData]) -> Section | None:
    """Figures of every blind test, one row per study and GPU; None without any."""
    rows = [
        {**got, "title": study.settings.title, "gpu": gpu}
        for study in studies
        for gpu, got in study.blind.items()
    ]
    if not rows:
        return None
    made = table_of("Blind tests: answered first, measured afterwards", FIELDS, rows)
    return Section("blind", "Blind tests", [Text(NOTE, "note"), made])


def sentence(study: StudyData, gpu: str) -> str | None:
    """Result of a blind test as a clause; None without one."""
    got = study.blind.get(gpu)
    if got is None:
        return None
    between = f" ({interval})" if (interval := of_mean(got)) else ""
    new = ", when the study had no row of this GPU," if got["new_gpu"] else ","
    return (
        f"in a blind test of {got['problems']} problems{new} its answers reach "
        f"{wording.fixed(got['fraction_geometric_mean'])} of the best speed{between}"
    )


def only_tested(studies: Sequence[StudyData]) -> list[str]:
    """GPUs that blind tests alone have measured, in order."""
    swept = {gpu for study in studies for gpu in study.gpus}
    tested = dict.fromkeys(gpu for study in studies for gpu in study.blind)
    return [gpu for gpu in tested if gpu not in swept]
