"""Blind tests: answers that were written down before their problems were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.report import wording
from launchwise.report.blocks import Block, Cell, Column, Section, Text, table
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

_GROUP = "relative to the usual choice"
AGAINST_USUAL = (
    Column("speed-up", "× usual", group=_GROUP),
    Column("slower", "problems", group=_GROUP),
    Column("kept", "problems", group=_GROUP),
    Column("missed", "of improvable", group=_GROUP),
)


def against_usual(got: Mapping[str, Any]) -> list[str]:
    """A row's cells for :data:`AGAINST_USUAL`, from the figures of a model on one split or GPU."""
    return [
        wording.fixed(got["gain_geometric_mean"], 2),
        wording.count(got["harmed"]),
        wording.count(got["kept_usual"]),
        f"{got['missed']} of {got['worthwhile']}",
    ]


def covered(share: float | None) -> str:
    """Share of intervals that hold what was measured; a dash without any."""
    return "–" if share is None else wording.percent(share, 0)


def section(studies: Sequence[StudyData]) -> Section | None:
    """Figures of every blind test, one row per study and GPU; None without any."""
    rows: list[list[str | Cell]] = []
    for study in studies:
        for gpu, got in study.blind.items():
            low, high = got["fraction_interval"] or (float("nan"), float("nan"))
            rows.append(
                [
                    study.settings.title,
                    f"{gpu}, new" if got["new_gpu"] else gpu,
                    wording.count(got["problems"]),
                    Cell(
                        wording.fixed(got["fraction_geometric_mean"]),
                        detail=wording.interval((low, high)) if got["fraction_interval"] else "",
                    ),
                    wording.fixed(got["fraction_p5"]),
                    wording.fixed(got["best_of_5"]),
                    *against_usual(got),
                    covered(got["covered"]),
                    covered(got["times_covered"]),
                    Cell(
                        f"{wording.short(got['commit'])}, {got['frozen_at'][:10]}",
                        detail=got["digest"],
                    ),
                ]
            )
    if not rows:
        return None
    columns = [
        Column("study", number=False),
        Column("GPU", number=False),
        Column("problems", "count"),
        Column("mean", "geometric, 95 %", group="fraction of the best"),
        Column("5th percentile", group="fraction of the best"),
        Column("5 measured", "geometric, single rows", group="fraction of the best"),
        *AGAINST_USUAL,
        Column("gains covered", "%", group="90 % intervals"),
        Column("times covered", "%", group="90 % intervals"),
        Column("commit and day", "digest of the answers", number=False),
    ]
    title = "Blind tests: answered first, measured afterwards"
    found: list[Block] = [Text(NOTE, "note"), table(title, columns, rows)]
    return Section("blind", "Blind tests", found)


def sentence(study: StudyData, gpu: str) -> str | None:
    """Result of a blind test as a clause; None without one."""
    got = study.blind.get(gpu)
    if got is None:
        return None
    interval = got["fraction_interval"]
    between = "" if interval is None else f" ({wording.interval(tuple(interval))})"
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
