"""Times of sub-system sizes on one GPU, their optima, and rows that are left out.

Rows are those of the study's candidates, by both variants. Optima, losses and gains use rows with
repeats that nothing disturbed; other rows only say that a size was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import field, significant, table_of
from launchwise.report.study import StudyData
from launchwise.report.theme import kinds_of
from launchwise.workloads.spec import Spec

from ...learning.optima import corrected_optima, observed_optima, with_a_choice
from ..host_runs import (
    APART,
    DISAGREE,
    LEAST_ERROR,
    LEAST_EXCESS,
    OUTER,
    KindOnGpu,
    by_both_variants,
    disturbance,
    fastest,
    known_well,
    one_launch,
    repeated,
    settings_again,
    ties,
)

SIZE, CHOICE = "n", "m"
FEWEST = 4  # least number of sizes for a trend
SIZES = field(SIZE, lambda size: size, wording.count, "rows")  # first column of tables by size

ONE_LAUNCH, DISTURBED, NOT_MEASURED = "one launch", "disturbed", "not measured"


@dataclass(frozen=True)
class SubsystemSeries(KindOnGpu):
    """Times of one GPU and one kind of problem.

    ``rows`` are those with repeats: problems, m, streams, ``time_ms``, ``error``,
    ``occupancy``; ``stopped`` the same columns of rows stopped after one launch, ``disturbed`` of
    rows whose time something outside changed, with ``why``. A size and m of which one of these is
    the fastest has no rows.
    """

    dtype: str
    spec: Spec
    rows: pd.DataFrame
    stopped: pd.DataFrame
    disturbed: pd.DataFrame

    @cached_property
    def best(self) -> pd.DataFrame:
        return fastest(self.rows, [SIZE, CHOICE], self.spec)

    @cached_property
    def observed(self) -> pd.DataFrame:
        return observed_optima(self.best, SIZE, CHOICE)

    @cached_property
    def corrected(self) -> pd.DataFrame:
        """Optima that follow the trend; those that tie with the fastest lose nothing."""
        found = corrected_optima(self.best, SIZE, CHOICE)
        tied = [m in self.ties[n] for n, m in zip(found[SIZE], found[CHOICE], strict=True)]
        return found.assign(loss_percent=found["loss_percent"].mask(np.array(tied), 0.0))

    @cached_property
    def ties(self) -> dict[int, list[int]]:
        """m per size that are as fast as the fastest within the errors of their times."""
        return ties(self.best, SIZE, CHOICE)

    @cached_property
    def optimum_rows(self) -> pd.DataFrame:
        return self.best.merge(self.observed[[SIZE, CHOICE]], on=[SIZE, CHOICE])

    def losses(self, rule: pd.DataFrame) -> pd.DataFrame:
        """Loss of another rule's m at the sizes that both have.

        ``rule``: ``n`` and ``m``, one row per size.
        Returns a DataFrame: ``n``, ``m`` (the rule's), ``best_m``, ``state`` (empty, "one launch",
        "disturbed" or "not measured"), ``loss_percent`` against the fastest m (>= 0; NaN unless
        ``state`` is empty) and ``tied`` (bool: the rule's m is as fast within the errors of both
        times).
        """
        here = self.observed.rename(columns={CHOICE: "best_m", "time_ms": "best_ms"})
        found = rule[[SIZE, CHOICE]].merge(here, on=SIZE)
        found = found.merge(self.best[[SIZE, CHOICE, "time_ms"]], on=[SIZE, CHOICE], how="left")
        # Of several reasons the first one is told.
        states = {
            key: state
            for rows, state in ((self.disturbed, DISTURBED), (self.stopped, ONE_LAUNCH))
            for key in zip(rows[SIZE], rows[CHOICE], strict=True)
        }
        keys = list(zip(found[SIZE], found[CHOICE], strict=True))
        found["state"] = [
            "" if timed else states.get(key, NOT_MEASURED)
            for key, timed in zip(keys, found["time_ms"].notna(), strict=True)
        ]
        found["loss_percent"] = 100 * (found["time_ms"] / found["best_ms"] - 1)
        found["tied"] = [m in self.ties[n] for n, m in keys]
        return found[[SIZE, CHOICE, "best_m", "state", "loss_percent", "tied"]]


def cases(study: StudyData) -> list[SubsystemSeries]:
    """The cases of a study that were measured for enough sizes, whole cards first."""
    found = []
    measured = by_both_variants(study)
    for gpu in study.gpus:
        for kind, part in kinds_of(study, measured[measured["gpu"] == gpu]):
            every = with_a_choice(repeated(part), SIZE, CHOICE)
            why = disturbance(every)
            disturbed = every[why != ""].assign(why=why[why != ""])
            doubtful = pd.concat([one_launch(part), disturbed])
            rows = known_well(every[why == ""], doubtful, [SIZE, CHOICE])
            rows = with_a_choice(rows, SIZE, CHOICE)
            if rows[SIZE].nunique() < FEWEST:
                continue
            stopped = one_launch(part)
            stopped = stopped[stopped[SIZE].isin(rows[SIZE])]
            dtype = str(rows["dtype"].iloc[0])
            found.append(SubsystemSeries(gpu, kind, dtype, study.spec, rows, stopped, disturbed))
    return sorted(found, key=lambda case: study.profiles[case.gpu].is_slice)


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
                    settings_again(case.gpu, case.spec, rows),
                ],
            )


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
