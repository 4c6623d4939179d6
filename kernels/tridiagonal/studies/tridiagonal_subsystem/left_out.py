"""Rows on which no statement of the page rests, and the settings that measure them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import field, significant, table_of
from launchwise.report.measure_again import anew_settings

from ..disturbed import APART, DISAGREE, LEAST_ERROR, LEAST_EXCESS, OUTER
from .series import CHOICE, SIZE, SubsystemSeries

NOTE = (
    "No optimum, loss or gain of this page rests on these rows. Repeats disagree: the relative "
    f"error of the time is above {100 * LEAST_ERROR:g} % and beyond Tukey's outer fence "
    f"({OUTER:g} interquartile ranges) over the rows of the GPU and problems. Longer than its "
    f"neighbours: the time exceeds by more than {100 * np.expm1(LEAST_EXCESS):.3g} %, and beyond "
    "that fence of the excess, what two of three kinds of neighbours let expect (other m, other "
    "sizes, the other variant). One launch: stopped early. If the fastest row of a size and m is "
    "one of these, the m has no time at that size."
)


def left_out(every: Sequence[SubsystemSeries]) -> Iterator[Block]:
    """How many rows were left out of every case, and the disturbed ones by name."""
    yield table_of("Rows that are left out", COUNTS, [_counts(case) for case in every])
    yield Text(NOTE, "note")
    for case in every:
        if len(case.disturbed):
            rows = case.disturbed.sort_values([SIZE, CHOICE, "variant"])
            count = wording.plural(len(rows), "disturbed row")
            yield Fold(
                f"{case.title}: {count}",
                [
                    table_of(f"Disturbed rows of {case.title}", ROWS, rows),
                    Text("Settings that measure them again:", "label"),
                    Text(settings_of(case, rows), "code"),
                ],
            )


def settings_of(case: SubsystemSeries, rows: pd.DataFrame) -> str:
    """Settings that measure rows of a case again, as YAML."""
    columns = [*case.spec.problem_columns, *case.spec.tunable_columns]
    keys = rows[columns].itertuples(index=False, name=None)
    return anew_settings(case.gpu, case.spec.workload, list(keys), columns)


def _counts(case: SubsystemSeries) -> dict[str, Any]:
    doubtful = pd.concat([case.disturbed, case.stopped])
    known = pd.MultiIndex.from_frame(case.rows[[SIZE, CHOICE]])
    tried = pd.MultiIndex.from_frame(doubtful[[SIZE, CHOICE]]).unique()
    return {
        "case": case.title,
        "rows": len(case.rows),
        "disagree": (case.disturbed["why"] == DISAGREE).sum(),
        "apart": (case.disturbed["why"] == APART).sum(),
        "stopped": len(case.stopped),
        "unknown": int((~tried.isin(known)).sum()),
    }


COUNTS = [
    field("GPU and problems", "case"),
    field("used", "rows", wording.count, "rows"),
    field(DISAGREE, "disagree", wording.count, "rows"),
    field(APART, "apart", wording.count, "rows"),
    field("one launch", "stopped", wording.count, "rows"),
    field(f"{CHOICE} without a time", "unknown", wording.count, "sizes and m"),
]

ROWS = [
    field(SIZE, SIZE, wording.count, "rows"),
    field(CHOICE, CHOICE, wording.count, "rows"),
    field("variant", "variant"),
    field("time", "time_ms", significant(4), "ms"),
    field("± error", "relative_error", wording.percent, "%"),
    field("why", "why"),
]
