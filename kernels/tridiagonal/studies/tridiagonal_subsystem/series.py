"""Times of sub-system sizes on one GPU, their optima, and what a rule loses.

Rows are those of the study's candidates, as the study's answers use them. Optima use rows with
repeats; rows of one launch only say that a size was tried. A loss is told where both m ran in
pairs: below 50 000 rows times of the same m lie up to 78 % apart between visits of the host, so
that two rows of a sweep tell of the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.fields import field
from launchwise.report.numbers import STOPPED_EARLY
from launchwise.report.study_tables import StudyData
from launchwise.report.theme import kinds_of
from launchwise.tables.times import PAIRS
from launchwise.workloads.spec import Spec

from ...learning.optima import corrected_optima, with_a_choice
from ..host_runs import KindOnGpu, known_well, least, levelled, repeated, slower, ties

SIZE, CHOICE = "n", "m"
FEWEST = 4  # least number of sizes for a trend
SIZES = field(SIZE, lambda size: size, wording.count, "rows")  # first column of tables by size

FIRST = 1e-7  # by which the observed one of equal m comes first: no loss shows it

ONE_LAUNCH, NOT_MEASURED, UNPAIRED = "one launch", "not measured", "not in pairs"


@dataclass(frozen=True)
class SubsystemSeries(KindOnGpu):
    """Times of one GPU and one kind of problem.

    ``rows`` are those with repeats, ``stopped`` those of one launch. A size and m of which one of
    these is the fastest has no rows.
    """

    dtype: str
    spec: Spec
    rows: pd.DataFrame
    stopped: pd.DataFrame

    @cached_property
    def best(self) -> pd.DataFrame:
        return least(self.rows, [SIZE, CHOICE])

    @cached_property
    def observed(self) -> pd.DataFrame:
        """The m of least time, as in the paper: answers name the simplest of those that tie."""
        return least(self.rows, [SIZE])[[SIZE, CHOICE, "time_ms"]]

    @cached_property
    def levelled(self) -> pd.DataFrame:
        return levelled(self.best, SIZE)

    @property
    def in_pairs(self) -> bool:
        return bool((self.rows["basis"] == PAIRS).any())

    @cached_property
    def told(self) -> pd.DataFrame:
        """Rows of :attr:`levelled` whose loss is told."""
        known = self.losses(self.best)
        return self.levelled.merge(known.loc[known["state"] == "", [SIZE, CHOICE]])

    @cached_property
    def corrected(self) -> pd.DataFrame:
        """Optima that follow the trend; an m that ties with the fastest costs nothing, and of those
        the observed one is preferred."""
        named = self.levelled[SIZE].map(self.observed.set_index(SIZE)[CHOICE])
        first = self.levelled["time_ms"] * (1 - FIRST * (self.levelled[CHOICE] == named))
        found = corrected_optima(self.levelled.assign(time_ms=first), SIZE, CHOICE)
        found = found[[SIZE, CHOICE, "rank"]]
        losses = self.losses(found)
        times = self.best[[SIZE, CHOICE, "time_ms"]]
        return losses.merge(found, on=[SIZE, CHOICE]).merge(times, on=[SIZE, CHOICE])

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
        Returns a DataFrame: ``n``, ``m`` (the rule's), ``best_m``, ``best_ms``, ``state`` (why
        there is no loss, or empty), ``tied`` (bool: the rule's m is as fast within the errors of
        both times) and ``loss_percent`` against the best m as measured, NaN with a ``state``.
        """
        keys, names = [SIZE, CHOICE], {CHOICE: "best_m", "time_ms": "best_ms", "basis": "_best"}
        columns = [*keys, "time_ms", "basis"]
        best = self.best[columns].assign(tied=~slower(self.best, SIZE))
        here = self.optimum_rows[columns].rename(columns=names)
        found = rule[keys].merge(here, on=SIZE).merge(best, on=keys, how="left")
        found["tied"] = found["tied"].eq(True)
        asked, once = (pd.MultiIndex.from_frame(own[keys]) for own in (found, self.stopped))
        paired = (found["basis"] == PAIRS) & (found["_best"] == PAIRS)
        told = [one.to_numpy() for one in (paired, found["time_ms"].notna())] + [asked.isin(once)]
        found["state"] = np.select(told, ["", UNPAIRED, ONE_LAUNCH], NOT_MEASURED)
        loss = 100 * (found["time_ms"] / found["best_ms"] - 1)
        found["loss_percent"] = loss.where(found["state"] == "")
        return found[[SIZE, CHOICE, "best_m", "best_ms", "state", "loss_percent", "tied"]]


def cases(study: StudyData) -> list[SubsystemSeries]:
    """Whole cards and kinds of problems that were measured for enough sizes."""
    found = []
    for gpu in study.whole:
        for kind, part in kinds_of(study, study.measured[study.measured["gpu"] == gpu]):
            stopped = part[part["status"] == STOPPED_EARLY]
            rows = with_a_choice(repeated(part), SIZE, CHOICE)
            rows = with_a_choice(known_well(rows, stopped, [SIZE, CHOICE]), SIZE, CHOICE)
            if rows[SIZE].nunique() < FEWEST:
                continue
            stopped = stopped[stopped[SIZE].isin(rows[SIZE])]
            dtype = str(rows["dtype"].iloc[0])
            found.append(SubsystemSeries(gpu, kind, dtype, study.spec, rows, stopped))
    return found
