"""Time of each stage by number of recursions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Column, Fold, Section, Text, table
from launchwise.report.numbers import records
from launchwise.report.study import StudyData

from ..host_runs import LEVELS
from .rule import said_levels
from .series import CHOICE, SIZE, RecursionSeries

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


def stages(study: StudyData, every: Sequence[RecursionSeries]) -> list[Section]:
    """The section; none where no stages were timed."""
    timed = [(case, found) for case in every if len(found := stage_changes(case))]
    if not timed:
        return []
    items = [
        (f"{case.title}, {SIZE} = {wording.count(size)}:", text)
        for case, found in timed
        for size, text in _changes(found)
    ]
    blocks: list[Block] = [
        Bullets(items),
        Text(
            "Stages are timed one after the other, without overlap of streams, in the fastest row "
            "of each size and number of recursions. Their sum exceeds the time where streams "
            "overlap.",
            "note",
        ),
        *(Fold(f"{case.title}: every size", [_table(case, found)]) for case, found in timed),
    ]
    return [Section(f"{study.name}-stages", "Stage times by number of recursions", blocks)]


def _changes(found: pd.DataFrame) -> Iterator[tuple[int, str]]:
    """Smallest and largest size: stage times without recursion and at the fastest depth."""
    for size in dict.fromkeys([found[SIZE].min(), found[SIZE].max()]):
        own = found[found[SIZE] == size].set_index(CHOICE)
        if 0 not in own.index or len(own) < 2:
            continue
        flat, deep = own.loc[0], own.loc[own.drop(index=0)["time_ms"].idxmin()]
        depth = int(str(deep.name))
        parts = [
            f"{title} {_ms(flat, name)} to {_ms(deep, name)}"
            for name, title in {**SAVED, **ADDED}.items()
        ]
        yield int(size), f"from 0 to {depth} recursions, in ms: {'; '.join(parts)}."


def _ms(row: pd.Series, stage: str) -> str:
    return wording.number(row[f"{stage}_ms"], 3)


def _table(case: RecursionSeries, found: pd.DataFrame) -> Block:
    names = [name.removesuffix("_ms") for name in case.spec.stage_columns]
    columns = [
        Column(SIZE, "rows"),
        Column("recursions"),
        Column("m per level", "rows", number=False),
        Column("time", "ms"),
        *(Column(name, "ms", group="stages") for name in names),
    ]
    rows = [
        [
            wording.count(row[SIZE]),
            wording.count(row[CHOICE]),
            said_levels([row[level] for level in LEVELS]),
            wording.number(row["time_ms"], 4),
            *(wording.number(row[f"{name}_ms"], 3) for name in names),
        ]
        for row in records(found)
    ]
    meaning = "; ".join(f"{name}: {case.spec.stages[name]}" for name in names)
    return table(f"Stage times, {case.title} ({meaning})", columns, rows)
