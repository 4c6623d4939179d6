"""The GPUs of a study beside each other: ratios, rates, best times."""

from __future__ import annotations

from typing import Any

import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Panel, Section
from launchwise.report.fields import (
    Field,
    field,
    file_of,
    grouped,
    significant,
    table_of,
)
from launchwise.report.gpus import card_ratios
from launchwise.report.numbers import winners
from launchwise.report.study import StudyData
from launchwise.report.theme import has_sizes, kinds_of, row_of, size_layout


def compared(study: StudyData) -> Section:
    """The GPUs beside each other, rates of most kinds of problems, and a file of all times."""
    best = winners(study)
    found: list[Block] = []
    first, *others = study.whole
    known = card_ratios.of_study(study)
    if ratios := [known[first, other] for other in others if (first, other) in known]:
        found.append(card_ratios.of_pairs(ratios))
    if has_sizes(study, best):
        found.append(rates(study, best))
    placed = best.assign(_place=best["gpu"].map(study.gpus.index))
    rows = placed.sort_values([*study.problem_columns, "_place"])
    every = table_of("Best time of every problem", _fields(study), rows)
    found.append(file_of(f"data/{study.name}.best.csv", every))
    return Section(f"{study.name}-gpus", "GPUs", found)


def _fields(study: StudyData) -> list[Field]:
    return [
        *(field(name, name) for name in study.problem_columns),
        field("GPU", "gpu"),
        field("best configuration", "configuration"),
        field("alike", "alike", wording.count, "configurations"),
        field("time", "best_ms", significant(4), "ms"),
        field("time from", "basis"),
        field("baseline", "baseline_ms", significant(4), "ms"),
        *grouped(
            "physical limit",
            field("bytes", "bytes_ms", wording.number, "ms"),
            field(
                "FLOP",
                "flop_ms",
                wording.number,
                "ms",
                detail=lambda row: "passed" * (row["flop_ms"] > row["best_ms"]),
            ),
        ),
    ]


MOST_KINDS = 3  # Kinds of problems that are drawn


def rates(study: StudyData, best: pd.DataFrame) -> Figure:
    """Best rate of every GPU against size."""
    item = study.spec.work.item
    panels = []
    kinds = sorted(kinds_of(study, best), key=lambda kind: -kind[1][study.size].nunique())
    for kind, rows in kinds[:MOST_KINDS]:
        traces = []
        for place, gpu in enumerate(study.whole):
            own = rows[rows["gpu"] == gpu].sort_values(study.size)
            if len(own):
                template = f"{study.size}=%{{x}}: %{{y:.4~g}} · 1e9/s<br>%{{text}}"
                more: dict[str, Any] = {
                    "hover": own["configuration"].tolist(),
                    "template": template,
                }
                trace = theme.line(own[study.size], own["rate"], name=gpu, place=place, **more)
                traces.append({**trace, "meta": row_of(study, own, gpu)})
        # Rates of kinds of problems differ by far: on one scale most of them would be flat.
        end = float(f"{1.06 * rows['rate'].max():.4g}")
        y = theme.axis(f"1e9 {item} / s", range=[0, end])
        panels.append(Panel(kind, traces, theme.layout(size_layout(study, rows), y)))
    return Figure(
        id=f"{study.name}-rate",
        caption=(f"Best rate of each GPU: higher is faster; {item} of the problem in one launch."),
        alt=f"Lines: the rate of the best configuration against {study.size}, one line per GPU.",
        panels=panels,
        keys=theme.keys(study.whole),
    )
