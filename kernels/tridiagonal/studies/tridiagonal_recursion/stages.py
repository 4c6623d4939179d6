"""Time of each stage by number of recursions."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import field, grouped, significant, table_of

from ..host_runs import LEVELS
from .series import CHOICE, SIZE, RecursionSeries, said_levels

SAVED = {
    "t2_h": "stage 2 on the host",
    "t1_d2h": "the interface system to the host",
    "t3_h2d": "its solution to the device",
}
"""Stages that the paper expects to shrink with each recursion."""

ADDED = {"t2_d": "the inner levels on the device"}
"""Stages that hold what each recursion adds."""


def stage_changes(case: RecursionSeries) -> pd.DataFrame:
    """Stage times (ms) of the fastest row of every size and depth.

    Returns
    -------
    pandas.DataFrame
        ``n``, ``depth``, ``time_ms``, m per level and a column per stage, ``<stage>_ms``. Stages
        are timed one after the other, without overlap; their sum is not the time.
    """
    columns = [SIZE, CHOICE, "time_ms", *LEVELS, *case.spec.stage_columns]
    return case.best[columns].dropna(subset=case.spec.stage_columns, how="all")


def stages(every: Sequence[RecursionSeries]) -> list[Block]:
    """A table per case; none where no stages were timed."""
    timed = [(case, found) for case in every if len(found := stage_changes(case))]
    if not timed:
        return []
    note = (
        "Stages are timed one after the other, without overlap of streams, in the fastest row "
        "of each size and number of recursions. Their sum exceeds the time where streams overlap."
    )
    folds = (Fold(f"{case.title}: every size", [_table(case, found)]) for case, found in timed)
    return [Text(note, "note"), *folds]


def _table(case: RecursionSeries, found: pd.DataFrame) -> Block:
    columns = case.spec.stage_columns
    names = [name.removesuffix("_ms") for name in columns]
    times = (field(*one, significant(3), "ms") for one in zip(names, columns, strict=True))
    fields = [
        field(SIZE, SIZE, wording.count, "rows"),
        field("recursions", CHOICE, wording.count),
        field("m per level", said_levels, unit="rows"),
        field("time", "time_ms", significant(4), "ms"),
        *grouped("stages", *times),
    ]
    meaning = "; ".join(f"{name}: {case.spec.stages[name]}" for name in names)
    return table_of(f"Stage times, {case.title} ({meaning})", fields, found)
