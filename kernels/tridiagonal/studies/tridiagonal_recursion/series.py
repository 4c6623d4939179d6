"""Times of recursive partition methods on one GPU by number of recursions, and where they compare.

Times, speed-ups and losses use rows with repeats; a row of one launch gives none of them.

Without recursion a size needs the variants and m that are the fastest at its neighbours: else the
time without recursion is not the best one, and recursion gains what another variant or m would.
The copy of the system to the device is the same with any number of recursions. Where it took longer
in runs with recursion than in runs without, so may have everything else: something else kept the
host busy during one of the two sweeps. The ratio of their times then tells of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import field, grouped, significant, table_of
from launchwise.report.numbers import records
from launchwise.report.study_tables import StudyData
from launchwise.report.theme import kinds_of
from launchwise.tables.visits import whole_errors
from launchwise.workloads.spec import Spec

from ...learning.series import choices_in
from ..host_runs import (
    APART,
    LEVELS,
    SOLVERS,
    THREADS,
    KindOnGpu,
    alike,
    fastest,
    fixed_losses,
    host_runs,
    known_well,
    least,
    levelled,
    repeated,
    ties,
)

COPY = "t1_h2d_ms"  # time of the copy of the system to the device
UNLIKE = 0.05  # relative difference of the copies from which conditions are called different
MISSED = 0.05  # loss at a neighbour from which a size lacks choices of that neighbour


def lacking_sizes(flat: pd.DataFrame) -> list[int]:
    """Sizes whose best time without recursion is not known.

    The nearest smaller and the nearest larger size that tried something else tell: one is enough
    where the choices of the size lose more than :data:`MISSED`.

    ``flat``: rows without recursion: ``variant``, ``m``, ``time_ms`` and the column ``size``.
    """
    best = flat.groupby([SIZE, "variant", "m"])["time_ms"].min().unstack(["variant", "m"])
    times = best.to_numpy()
    return [int(n) for row, n in enumerate(best.index) if _missed(row, times) > MISSED]


def _missed(row: int, times: np.ndarray) -> float:
    """Largest relative loss of the choices of one size at either neighbour that has others.

    ``row``: row of the size in ``times``.
    ``times``: ms, float64, shape (sizes, choices): sizes ascending, NaN where a choice was not
    tried.
    """
    tried = ~np.isnan(times[row])
    others = np.flatnonzero((~np.isnan(times) & ~tried).any(axis=1))
    near = times[[*others[others < row][-1:], *others[others > row][:1]]]
    losses = np.fmin.reduce(near[:, tried], axis=1) / np.fmin.reduce(near, axis=1) - 1
    # A neighbour without any choice in common says that nothing is known.
    return float(np.where(np.isnan(losses), np.inf, losses).max(initial=0))


def conditions(every: Sequence[RecursionSeries], names: Mapping[str, str]) -> Iterator[str]:
    """At how many sizes times with and without recursion are compared, and why not at others."""
    for case in every:
        if not case.unlike:
            continue
        ratios = case.copy_ratios.loc[case.busy]
        ends = dict.fromkeys(wording.fixed(end, 2) for end in (ratios.min(), ratios.max()))
        reasons = {
            "the copy of the system to the device, which recursion does not change, took "
            f"{' to '.join(ends)} times as long with it": case.busy,
            "the best time without it is not known, as their m and variants lose more than "
            f"{100 * MISSED:g} % at a neighbour": case.lacking,
            f"one of both ran {APART}, and not in pairs": case.apart,
        }
        said = "; ".join(f"at {len(own)} {why}" for why, own in reasons.items() if own)
        sizes = case.rows[SIZE].nunique()
        yield (
            f"{names[case.title]}: times with recursion are compared with those without at "
            f"{sizes - len(case.unlike)} of {sizes} sizes. Elsewhere: {said}."
        )


SIZE, CHOICE = "n", "depth"
FEWEST = 4  # least number of sizes for a trend


@dataclass(frozen=True)
class RecursionSeries(KindOnGpu):
    """Everything measured of one GPU and one kind of problem, with a column ``depth``. ``rows`` are
    those with repeats; ``timed`` has all others besides. ``flat`` are rows with repeats and without
    recursion, at every size that the sweep has, for rules by size; ``others`` those of any number
    of streams and of Thomas as well."""

    spec: Spec
    rows: pd.DataFrame
    timed: pd.DataFrame
    flat: pd.DataFrame
    others: pd.DataFrame

    @cached_property
    def best(self) -> pd.DataFrame:
        return fastest(self.rows, [SIZE, CHOICE], self.spec)

    @cached_property
    def overall(self) -> pd.DataFrame:
        return fastest(self.rows, [SIZE], self.spec)

    @cached_property
    def least(self) -> pd.Series:
        """Depth of the least time by size (index), whether or not others tie with it."""
        return least(self.rows, [SIZE]).set_index(SIZE)[CHOICE]

    @cached_property
    def ties(self) -> dict[int, list[int]]:
        """Depths per size that are as fast as the fastest within the errors of their times."""
        return ties(self.best, SIZE, CHOICE)

    @cached_property
    def copy_ratios(self) -> pd.Series:
        """Median copy of rows with recursion over that of rows without, by size (index). float64;
        NaN where the copies of either were not timed."""
        if COPY not in self.rows:
            return pd.Series(np.nan, index=np.sort(self.rows[SIZE].unique()))
        deep = self.rows[CHOICE] > 0
        medians = self.rows.groupby([SIZE, deep])[COPY].median().unstack()
        return (medians[True] / medians[False]).rename(None)

    @cached_property
    def busy(self) -> list[int]:
        """Sizes whose copies with and without recursion differ by more than :data:`UNLIKE`."""
        ratios = self.copy_ratios
        return [int(size) for size in ratios.index[np.abs(np.log(ratios)) > np.log1p(UNLIKE)]]

    @cached_property
    def lacking(self) -> list[int]:
        """Sizes whose time without recursion lacks a variant."""
        return lacking_sizes(self.rows[self.rows[CHOICE] == 0])

    @cached_property
    def apart(self) -> list[int]:
        """Sizes whose least times with and without recursion are not of one card, nor in pairs."""
        deep = self.rows[CHOICE] > 0
        flat, best = (least(own, [SIZE]) for own in (self.rows[~deep], self.rows[deep]))
        return [int(size) for size in flat.loc[~alike(flat, best), SIZE]]

    @cached_property
    def unlike(self) -> list[int]:
        """Sizes at which no time with recursion is compared with one without."""
        return sorted({*self.busy, *self.lacking, *self.apart})

    @cached_property
    def comparable(self) -> RecursionSeries:
        """The same at the other sizes alone."""

        def of(table: pd.DataFrame) -> pd.DataFrame:
            return table[~table[SIZE].isin(self.unlike)]

        return replace(self, rows=of(self.rows), timed=of(self.timed)) if self.unlike else self

    def speed_up(self) -> pd.DataFrame:
        """Time without recursion / least time at each depth: comparable sizes by depths."""
        best = least(self.comparable.rows, [SIZE, CHOICE])
        times = best.pivot(index=SIZE, columns=CHOICE, values="time_ms")
        return times.rdiv(times[0], axis=0)


def cases(study: StudyData) -> list[RecursionSeries]:
    """The cases that were measured with and without recursion for enough sizes."""
    found = []
    everything = host_runs(study, threads=THREADS, every_size=True)
    measured = host_runs(study, threads=THREADS)
    free = [
        host_runs(study, threads=THREADS, solver=one, published_streams=False) for one in SOLVERS
    ]
    others = repeated(with_depth(pd.concat(free, ignore_index=True), study.spec))
    for gpu in study.gpus:
        flat = everything[(everything["gpu"] == gpu) & (everything["m1"] == 0)]
        by_kind = {kind: known_flat(part) for kind, part in kinds_of(study, flat)}
        of_others = dict(kinds_of(study, others[others["gpu"] == gpu]))
        for kind, part in kinds_of(study, measured[measured["gpu"] == gpu]):
            timed = with_depth(part, study.spec)
            rows = repeated(timed)
            rows = known_well(rows, timed.drop(rows.index), [SIZE, CHOICE])
            depths = rows.groupby(SIZE)[CHOICE]
            both = (depths.min() == 0) & (depths.max() > 0)
            if both.sum() < FEWEST:
                continue
            sizes = both.index[both]
            rows, timed = rows[rows[SIZE].isin(sizes)], timed[timed[SIZE].isin(sizes)]
            more = of_others[kind]
            more = more[more[SIZE].isin(sizes)]
            found.append(RecursionSeries(gpu, kind, study.spec, rows, timed, by_kind[kind], more))
    return found


def with_depth(rows: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    return rows.assign(**{CHOICE: choices_in(rows, CHOICE, spec)})


def known_flat(timed: pd.DataFrame) -> pd.DataFrame:
    """Rows with repeats of sizes and m whose best row is one."""
    return known_well(repeated(timed), timed[timed["status"] != "ok"], [SIZE, "m"])


def fixed_size_losses(case: RecursionSeries, level: str) -> pd.DataFrame:
    """Cost of one m of a level at every size, relative to the fastest choice with that level: none
    where they tie. See :func:`fixed_losses`: the value is m, problems are sizes. A column
    ``best_at`` counts sizes where that m is the fastest, or ties with the fastest."""
    with_level = case.rows[(case.rows[CHOICE] > 0) & (case.rows[level] > 0)]
    best = least(with_level, [SIZE, level])
    near = [m for choices in ties(best, SIZE, level).values() for m in choices]
    best = levelled(best, SIZE)
    times = best.set_index([SIZE, level])["time_ms"]
    losses = fixed_losses(times.groupby(level=SIZE).transform("min") / times)
    return losses.assign(best_at=[near.count(int(value)) for value in losses["value"]])


def said_levels(levels: Mapping[str, Any] | Sequence[int]) -> str:
    """``64, 10, 10``, of a row or of its levels: those that are not there are left out."""
    each = [levels[name] for name in LEVELS] if isinstance(levels, Mapping) else levels
    return ", ".join(wording.count(m) for m in each if m)


SAVED = {
    "t2_h": "stage 2 on the host",
    "t1_d2h": "the interface system to the host",
    "t3_h2d": "its solution to the device",
}
"""Stages that the paper expects to shrink with each recursion."""

ADDED = {"t2_d": "the inner levels on the device"}  # stages that hold what each recursion adds


def stage_changes(case: RecursionSeries) -> pd.DataFrame:
    """Stage times (ms) by number of recursions that differ in nothing else, at the smallest and the
    largest size: m of the outermost level is the same, and one m is that of all others. Of several
    such series that with most numbers of recursions, then that of the least time.

    Returns a DataFrame: ``n``, ``depth``, ``time_ms`` and its ``error`` in another visit, m per
    level and a column per stage, ``<stage>_ms``. Stages are timed one after the other, without
    overlap; their sum is not the time.
    """
    columns = case.spec.stage_columns
    rows = case.rows.dropna(subset=columns, how="all")
    rows = rows[rows["variant"] == PUBLISHED_VARIANT].assign(error=whole_errors)
    inner = rows[list(LEVELS[1:])]
    used = inner > 0
    alike = (inner.eq(inner["m1"], axis=0) | ~used).all(axis=1)
    rows = rows[alike].sort_values("time_ms").drop_duplicates([SIZE, *LEVELS])
    found = []
    for size in sorted({rows[SIZE].min(), rows[SIZE].max()} if len(rows) else ()):
        own = rows[rows[SIZE] == size]
        deep = own[own[CHOICE] > 0]
        series = [
            pd.concat([own[(own[CHOICE] == 0) & (own["m"] == m)], part]).sort_values(CHOICE)
            for (m, _), part in deep.groupby(["m", "m1"])
        ]
        if series:
            found.append(max(series, key=lambda one: (len(one), -one["time_ms"].min())))
    named = [SIZE, CHOICE, "time_ms", "error", *LEVELS, *columns]
    return pd.concat(found)[named] if found else rows[named]


PUBLISHED_VARIANT = "strided"


def stages(every: Sequence[RecursionSeries]) -> list[Block]:
    """One table; none where no stages were timed."""
    rows = [{"on": case.title, **row} for case in every for row in records(stage_changes(case))]
    if not rows:
        return []
    spec = every[0].spec
    names = [name.removesuffix("_ms") for name in spec.stage_columns]
    times = (
        field(*one, significant(3), "ms") for one in zip(names, spec.stage_columns, strict=True)
    )
    fields = [
        field("GPU and problems", "on"),
        field(SIZE, SIZE, wording.count, "rows"),
        field("recursions", CHOICE, wording.count),
        field("m per level", said_levels, unit="rows"),
        field("time", "time_ms", significant(4), "ms"),
        *grouped("stages", *times),
    ]
    meaning = "; ".join(f"{name}: {spec.stages[name]}" for name in names)
    note = (
        "Rows of one size differ in the number of recursions alone. Stages are timed one after the "
        "other, without overlap of streams: their sum exceeds the time where streams overlap."
    )
    table = table_of(f"Stage times ({meaning})", fields, rows)
    return [Fold("Smallest and largest size, at the same m per level", [Text(note, "note"), table])]
