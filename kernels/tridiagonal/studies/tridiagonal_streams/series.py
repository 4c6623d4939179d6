"""Runs of one GPU and one kind of problem that differ in streams, and their laws."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.method import Selection
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.report.study_tables import StudyData
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
from .gains import CHOICE, SIZE, gain_table, of_one_kind

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
    alike = repeated(of_one_kind(runs))
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
