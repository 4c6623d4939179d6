"""Speed-up of batches by streams, and pageable beside page-locked memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from launchwise.learning.features import Domain
from launchwise.report import wording
from launchwise.report.blocks import Block, Cell, Column, Table, Text, table
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.workloads.statuses import MEASURED

from .gains import ABOVE, CHOICE, NOT_WELL, SIZE, gain_table, largest_gain, remark
from .series import StreamSeries, runs_of_one_design

HOST_STAGE = "t2_h_ms"
"""Column with the time of stage 2 on the host, which no stream overlaps."""
NAMES = ("gpu", "memory", "dtype", "batch", SIZE)


def batch_table(study: StudyData) -> pd.DataFrame:
    """Gains of batches, and of single systems of the same size or of about as many rows.

    Batches are no problems of the study, so they come from the sweeps.

    Returns
    -------
    pandas.DataFrame
        Columns of :func:`~gains.gain_table` by GPU, memory, dtype, batch and n, with
        ``rows_in_all`` (n * batch), by which rows of one GPU and memory are ordered, and
        ``host_percent``, the share of stage 2 on the host in all stages with one stream. Empty
        where no batch was measured.
    """
    domain = Domain(
        study.spec, study.profiles, study.settings.candidates, study.settings.constraints
    )
    kept = []
    for rows in study.sweeps.values():
        used = rows[rows["status"].isin(MEASURED) & (rows["memory"] != "device")]
        for _, alike in used[domain.is_candidate(used)].groupby(list(NAMES[:-1]), sort=True):
            kept.append(runs_of_one_design(alike, study.spec))
    every = pd.concat(kept, ignore_index=True)
    gains = gain_table(every, NAMES)
    alone = every[every[CHOICE] == 1].set_index(list(NAMES))
    # Stages were timed in a run of their own, so they need not fit into the time of another.
    host = alone[HOST_STAGE] / alone[study.spec.stage_columns].sum(axis=1)
    keys = pd.MultiIndex.from_frame(gains[list(NAMES)])
    gains["host_percent"] = 100 * host.reindex(keys).to_numpy()
    gains["rows_in_all"] = gains[SIZE] * gains["batch"]
    same = ["gpu", "memory", "dtype"]
    chosen = set(gains.index[gains["batch"] > 1])
    for batch in records(gains[gains["batch"] > 1]):
        like = (gains[same] == [batch[name] for name in same]).all(axis=1)
        sizes = gains.loc[like & (gains["batch"] == 1), SIZE]
        if len(sizes):
            away = np.log(sizes / batch["rows_in_all"]).abs()
            chosen |= {away.idxmin(), *sizes.index[sizes == batch[SIZE]]}
    found = gains.loc[sorted(chosen)]
    return found.sort_values([*same, "rows_in_all", "batch"]).reset_index(drop=True)


def batch_blocks(study: StudyData, every: Sequence[StreamSeries]) -> Iterator[Block]:
    """Batches beside single systems, then pageable beside page-locked memory."""
    batches = batch_table(study)
    if not batches.empty:
        yield Text(_said(batches))
        yield _batches(batches)
    for pinned, pageable in _pairs(every):
        yield _beside(pinned, pageable)


def _said(batches: pd.DataFrame) -> str:
    """The largest gain of batches and of single systems, and why."""
    largest = {}
    several = batches["batch"] > 1
    for name, rows in (("batches", several), ("single systems", ~several)):
        most = largest_gain(batches[rows])
        largest[name] = wording.fixed(None if most is None else most["gain"], 2)
    share = batches.loc[several, "host_percent"]
    return (
        "A batch is solved as one system with no coupling between its parts, so stage 2 on the "
        f"host stays one step between stages 1 and 3: {wording.fixed(share.min(), 0)} to "
        f"{wording.fixed(share.max(), 0)} % of the time with one stream. Largest speed-up of "
        f"streams that overlap can explain: {largest['batches']}x for batches, "
        f"{largest['single systems']}x for the single systems beside them."
    )


def _batches(found: pd.DataFrame) -> Table:
    columns = [
        Column("GPU and memory", number=False),
        Column(SIZE, "rows"),
        Column("batch", "systems"),
        Column("in all", "rows"),
        Column("one stream", "ms"),
        Column("stage 2 on the host", "%"),
        Column("best streams"),
        Column("speed-up"),
        Column("± error", "%"),
        Column("bound"),
        Column("remark", number=False),
    ]
    rows = [
        [
            f"{record['gpu']}, {record['memory']}, {record['dtype']}",
            wording.count(record[SIZE]),
            wording.count(record["batch"]),
            wording.count(record["rows_in_all"]),
            wording.number(record["alone_ms"], 4),
            wording.fixed(record["host_percent"], 0),
            wording.count(record["best_streams"]),
            wording.fixed(record["gain"], 3),
            wording.percent(record["gain_error"]),
            wording.fixed(record["bound"], 3),
            remark(record),
        ]
        for record in records(found)
    ]
    caption = "Batches, single systems of the same size, and single systems of about as many rows"
    return table(caption, columns, rows)


def _pairs(every: Sequence[StreamSeries]) -> Iterator[tuple[StreamSeries, StreamSeries]]:
    """Series that differ in host memory alone: page-locked, pageable."""
    by_memory: dict[tuple[str, str], dict[str, StreamSeries]] = {}
    for series in every:
        memory = str(series.runs["memory"].iloc[0])
        by_memory.setdefault((series.gpu, series.kind.replace(memory, "")), {})[memory] = series
    for found in by_memory.values():
        if {"pinned", "pageable"} <= found.keys():
            yield found["pinned"], found["pageable"]


def _beside(pinned: StreamSeries, pageable: StreamSeries) -> Block:
    """Both memories for every size."""
    both = pinned.gains.merge(
        pageable.gains, on=SIZE, how="outer", suffixes=("_pinned", "_pageable")
    )
    columns = [Column(SIZE, "rows")]
    for name in ("page-locked", "pageable"):
        columns += [
            Column("one stream", "ms", group=name),
            Column("best streams", group=name),
            Column("speed-up", group=name),
            Column("bound", group=name),
        ]
    columns.append(Column("pageable / page-locked", "one stream"))
    rows = []
    for record in records(both):
        cells = [Cell(wording.count(record[SIZE]))]
        for memory in ("pinned", "pageable"):
            detail = NOT_WELL if record[f"well_measured_{memory}"] is False else ""
            mark = ABOVE if record[f"above_bound_{memory}"] is True else ""
            cells += [
                Cell(wording.number(record[f"alone_ms_{memory}"], 4), detail=detail),
                Cell(wording.count(record[f"best_streams_{memory}"])),
                Cell(wording.fixed(record[f"gain_{memory}"], 3), detail=mark),
                Cell(wording.fixed(record[f"bound_{memory}"], 3)),
            ]
        ratio = record["alone_ms_pageable"] / record["alone_ms_pinned"]
        cells.append(Cell(wording.fixed(ratio, 2)))
        rows.append(cells)
    return table(f"Page-locked and pageable host memory, {pinned.gpu}", columns, rows)
