"""Runs of one GPU and one kind of problem that differ in streams, their laws, and batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.method import Selection
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import decimals, field, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.report.theme import kinds_of
from launchwise.tables.times import by_sweep
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

from ...recommenders.stream_law.choice import (
    OVERLAPPED,
    SERIAL,
    Choice,
    choose_law,
    overhead_rows,
    repeated,
    runs_that_differ_in_streams,
    split_rows,
)
from ...recommenders.stream_law.laws import (
    OVERHEAD_LAWS,
    SUM_LAWS,
    CreationLaw,
    OverheadLaw,
    SumLaw,
)
from ..host_runs import KindOnGpu
from . import gains
from .gains import CHOICE, SIZE, gain_table, largest_gain, of_one_kind

FEWEST = 8
"""Sizes with several numbers of streams below which no law can be split into training and test."""


@dataclass(frozen=True)
class FittedLaws:
    """Laws fitted to three quarters of the sizes of a series. ``sum`` and ``overhead`` are those
    that cross-validation chose on ``train``; ``published`` are the published forms, None where the
    rows do not determine their coefficients."""

    train: pd.DataFrame
    test: pd.DataFrame
    sum: Choice
    overhead: Choice
    creation: CreationLaw
    published: tuple[SumLaw, OverheadLaw] | None

    @property
    def held_out(self) -> set[int]:
        return set(self.test[SIZE])


@dataclass(frozen=True)
class StreamSeries(KindOnGpu):
    """Runs of one GPU and one kind of problem that differ in size and streams alone."""

    runs: pd.DataFrame  # all measured rows, those of a single launch too
    gains: pd.DataFrame  # as `gain_table` gives them
    stages: pd.DataFrame
    """``n`` and the times of the stages with one stream, ms: repeated rows only."""
    rows: pd.DataFrame
    """Those of ``overhead_rows``: repeated rows only, by their times in the sweep."""
    compared: pd.DataFrame
    """``n``, ``streams``, ``time_ms`` and ``sum_ms``: repeated rows whose times are compared with
    one stream's, of one kind at each size (:func:`~gains.of_one_kind`)."""
    laws: FittedLaws | None  # None where there is too little to fit
    creation_ms: float | None
    """Time to create one stream, as the GPU's profile has it; None where it lacks it."""


HOST_STAGE, THOMAS = "stage2", "thomas"
"""Tunable of stage 2, and its value for the paper's algorithm on the host."""
BY_THOMAS = "Thomas"  # what tells its series from those of gtsv


def series_of(study: StudyData) -> list[StreamSeries]:
    """The series of whole cards and page-locked memory, which copies need to overlap, that were
    measured with several numbers of streams. Models choose among designs whose stage 2 is LAPACK's.
    Where the Thomas algorithm, the paper's stage 2, was measured too, it has series of its own."""
    found = []
    for every, suffix in ((study.measured, ", gtsv"), (_by_thomas(study), f", {BY_THOMAS}")):
        rows = every[every["gpu"].isin(study.whole) & (every["memory"] != "pageable")]
        for gpu, measured in rows.groupby("gpu", sort=True):
            for kind, part in kinds_of(study, measured):
                made = _series(study, str(gpu), f"{kind}{suffix}", part)
                if made is not None:
                    found.append(made)
    return sorted(found, key=lambda one: study.gpus.index(one.gpu))


def _by_thomas(study: StudyData) -> pd.DataFrame:
    settings = study.settings
    candidates: Selection = {**settings.candidates, HOST_STAGE: [THOMAS]}
    domain = Domain(study.spec, study.profiles, candidates, settings.constraints)
    # The baseline is always a candidate, whatever its stage 2.
    parts = [rows[rows[HOST_STAGE] == THOMAS] for rows in study.swept.values()]
    rows = pd.concat(parts, ignore_index=True)
    rows = rows[rows["status"].isin(MEASURED)]
    rows = rows[asked_about(settings, rows)]
    return rows[domain.is_candidate(rows)].reset_index(drop=True)


def runs_of_one_design(measured: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Measured rows, also of single launches, that differ in size and streams and in nothing else.
    The other tunables are those of ``runs_that_differ_in_streams`` for the repeated rows; empty
    where these have a single number of streams."""
    usable = runs_that_differ_in_streams(repeated(measured), SIZE, spec)
    if usable.empty:
        return measured.iloc[:0]
    others = [name for name in spec.tunable_columns if name != CHOICE]
    held = (measured[others] == usable[others].iloc[0]).all(axis=1)
    return measured[held].reset_index(drop=True)


def _series(study: StudyData, gpu: str, kind: str, measured: pd.DataFrame) -> StreamSeries | None:
    runs = runs_of_one_design(measured, study.spec)
    if runs.empty:
        return None
    usable = runs_that_differ_in_streams(repeated(by_sweep(runs)), SIZE, study.spec)
    stages = usable.loc[
        usable[CHOICE] == 1, [SIZE, *(f"{name}_ms" for name in (*OVERLAPPED, *SERIAL))]
    ]
    stages = stages.rename(columns=lambda name: name.removesuffix("_ms")).sort_values(SIZE)
    rows = overhead_rows(stages, usable)
    alike = repeated(of_one_kind(runs, [SIZE]))
    alike = alike[alike[SIZE].isin(rows[SIZE])][[SIZE, CHOICE, "time_ms"]]
    sums = rows.drop_duplicates(SIZE).set_index(SIZE)["sum_ms"]
    creation_us = study.profiles[gpu].ceilings.stream_creation_us
    return StreamSeries(
        gpu,
        kind,
        runs=runs,
        gains=gain_table(runs),
        stages=stages.reset_index(drop=True),
        rows=rows,
        compared=alike.assign(sum_ms=alike[SIZE].map(sums)),
        laws=_laws(rows),
        creation_ms=None if creation_us is None else creation_us / 1e3,
    )


def _laws(rows: pd.DataFrame) -> FittedLaws | None:
    if (rows.groupby(SIZE)[CHOICE].nunique() > 1).sum() < FEWEST:
        return None
    train, test = split_rows(rows)
    try:
        chosen = choose_law(train, SUM_LAWS), choose_law(train, OVERHEAD_LAWS)
        creation = CreationLaw.fit(train)
    except UserError:
        return None
    try:
        published = SumLaw.fit(train), OverheadLaw.fit(train)
    except UserError:
        published = None
    return FittedLaws(train, test, *chosen, creation, published)


HOST_COLUMN = "t2_h_ms"  # column with the time of stage 2 on the host, which no stream overlaps
NAMES = ("gpu", "memory", "dtype", "batch", SIZE)


def batch_table(study: StudyData) -> pd.DataFrame:
    """Gains of batches, and of single systems of the same size or of about as many rows.

    Batches are no problems of the study, so they come from the sweeps.

    Returns a DataFrame: columns of :func:`~gains.gain_table` by GPU, memory, dtype, batch and n,
    with ``rows_in_all`` (n * batch), by which rows of one GPU and memory are ordered, and
    ``host_percent``, the share of stage 2 on the host in all stages with one stream. Empty where no
    batch was measured.
    """
    domain = Domain(
        study.spec, study.profiles, study.settings.candidates, study.settings.constraints
    )
    kept = []
    for rows in study.swept.values():
        used = rows[rows["status"].isin(MEASURED) & (rows["memory"] != "device")]
        for _, alike in used[domain.is_candidate(used)].groupby(list(NAMES[:-1]), sort=True):
            kept.append(runs_of_one_design(alike, study.spec))
    every = pd.concat(kept, ignore_index=True)
    found = gain_table(every, NAMES)
    alone = every[every[CHOICE] == 1].set_index(list(NAMES))
    # Stages were timed in a run of their own, so they need not fit into the time of another.
    host = alone[HOST_COLUMN] / alone[study.spec.stage_columns].sum(axis=1)
    keys = pd.MultiIndex.from_frame(found[list(NAMES)])
    found["host_percent"] = 100 * host.reindex(keys).to_numpy()
    found["rows_in_all"] = found[SIZE] * found["batch"]
    same = ["gpu", "memory", "dtype"]
    chosen = set(found.index[found["batch"] > 1])
    for batch in records(found[found["batch"] > 1]):
        like = (found[same] == [batch[name] for name in same]).all(axis=1)
        sizes = found.loc[like & (found["batch"] == 1), SIZE]
        if len(sizes):
            away = np.log(sizes / batch["rows_in_all"]).abs()
            chosen |= {away.idxmin(), *sizes.index[sizes == batch[SIZE]]}
    found = found.loc[sorted(chosen)]
    return found.sort_values([*same, "rows_in_all", "batch"]).reset_index(drop=True)


def batch_blocks(study: StudyData) -> Iterator[Block]:
    batches = batch_table(study)
    if not batches.empty:
        yield Text(_said(batches))
        caption = "Batches, and single systems of the same size and of about as many rows"
        yield Fold("Batches beside single systems", [table_of(caption, FIELDS, batches)])


def _said(batches: pd.DataFrame) -> str:
    several = batches["batch"] > 1
    most = [largest_gain(batches[rows]) for rows in (several, ~several)]
    gains_ = [wording.fixed(None if one is None else one["gain"], 2) for one in most]
    share = batches.loc[several, "host_percent"]
    return (
        "A batch is one system with no coupling between its parts, so stage 2 stays one step: "
        f"{wording.fixed(share.min(), 0)} to {wording.fixed(share.max(), 0)} % of all stages. "
        f"Largest speed-up that overlap can explain: {gains_[0]}x for batches, {gains_[1]}x for "
        "single systems."
    )


FIELDS = [
    field("GPU and memory", lambda row: f"{row['gpu']}, {row['memory']}, {row['dtype']}"),
    gains.ROWS,
    field("batch", "batch", wording.count, "systems"),
    field("in all", "rows_in_all", wording.count, "rows"),
    gains.ONE_STREAM,
    field("stage 2 on the host", "host_percent", decimals(0), "%"),
    field("best streams", "best_streams", wording.count),
    gains.SPEED_UP,
    gains.ERROR,
    field("bound", "bound", decimals(3)),
    gains.REMARK,
]
