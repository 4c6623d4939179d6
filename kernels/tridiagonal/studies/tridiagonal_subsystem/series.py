"""Times of sub-system sizes on one GPU, and their optima.

Rows are those of the study's candidates. Optima, losses and gains use rows with repeats;
rows of one launch only say that a size was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from launchwise.report import wording
from launchwise.report.fields import field
from launchwise.report.figures import KindOnGpu, kinds_of
from launchwise.report.study import StudyData
from launchwise.workloads.spec import Spec

from ...learning.optima import corrected_optima, observed_optima, with_a_choice
from ..host_runs import fastest, one_launch, repeated, ties

SIZE, CHOICE = "n", "m"
FEWEST = 4
"""Least number of sizes for a trend."""

SIZES = field(SIZE, lambda size: size, wording.count, "rows")
"""First column of tables by size."""

ONE_LAUNCH, NOT_MEASURED = "one launch", "not measured"


@dataclass(frozen=True)
class SubsystemSeries(KindOnGpu):
    """Times of one GPU and one kind of problem.

    ``rows`` are those with repeats: problems, m, streams, ``time_ms``, ``relative_error``,
    ``occupancy``; ``stopped`` the same columns of rows stopped after one launch.
    """

    dtype: str
    spec: Spec
    rows: pd.DataFrame
    stopped: pd.DataFrame

    @cached_property
    def best(self) -> pd.DataFrame:
        """The fastest row of each size and m, by both."""
        return fastest(self.rows, [SIZE, CHOICE], self.spec)

    @cached_property
    def observed(self) -> pd.DataFrame:
        """See :func:`kernels.tridiagonal.learning.optima.observed_optima`."""
        return observed_optima(self.rows, SIZE, CHOICE)

    @cached_property
    def corrected(self) -> pd.DataFrame:
        """See :func:`kernels.tridiagonal.learning.optima.corrected_optima`."""
        return corrected_optima(self.rows, SIZE, CHOICE)

    @cached_property
    def ties(self) -> dict[int, list[int]]:
        """m per size that are as fast as the fastest within the errors of their times."""
        return ties(self.best, SIZE, CHOICE)

    @cached_property
    def optimum_rows(self) -> pd.DataFrame:
        """The row of the observed optimum of each size."""
        return self.best.merge(self.observed[[SIZE, CHOICE]], on=[SIZE, CHOICE])

    def losses(self, rule: pd.DataFrame) -> pd.DataFrame:
        """Loss of another rule's m at the sizes that both have.

        Parameters
        ----------
        rule
            ``n`` and ``m``, one row per size.

        Returns
        -------
        pandas.DataFrame
            ``n``, ``m`` (the rule's), ``best_m``, ``state`` (empty, "one launch" or "not
            measured"), ``loss_percent`` against the fastest m (>= 0; NaN unless ``state`` is
            empty) and ``tied`` (bool: the rule's m is as fast within the errors of both times).
        """
        here = self.observed.rename(columns={CHOICE: "best_m", "time_ms": "best_ms"})
        found = rule[[SIZE, CHOICE]].merge(here, on=SIZE)
        found = found.merge(self.best[[SIZE, CHOICE, "time_ms"]], on=[SIZE, CHOICE], how="left")
        stopped = set(zip(self.stopped[SIZE], self.stopped[CHOICE], strict=True))
        keys = list(zip(found[SIZE], found[CHOICE], strict=True))
        found["state"] = [
            "" if timed else (ONE_LAUNCH if key in stopped else NOT_MEASURED)
            for key, timed in zip(keys, found["time_ms"].notna(), strict=True)
        ]
        found["loss_percent"] = 100 * (found["time_ms"] / found["best_ms"] - 1)
        found["tied"] = [m in self.ties[n] for n, m in keys]
        return found[[SIZE, CHOICE, "best_m", "state", "loss_percent", "tied"]]


def cases(study: StudyData) -> list[SubsystemSeries]:
    """The cases of a study that were measured for enough sizes, whole cards first."""
    found = []
    for gpu in study.gpus:
        measured = study.measured[study.measured["gpu"] == gpu]
        for kind, part in kinds_of(study, measured):
            rows = with_a_choice(repeated(part), SIZE, CHOICE)
            if rows[SIZE].nunique() < FEWEST:
                continue
            stopped = one_launch(part)
            stopped = stopped[stopped[SIZE].isin(rows[SIZE])]
            dtype = str(rows["dtype"].iloc[0])
            found.append(SubsystemSeries(gpu, kind, dtype, study.spec, rows, stopped))
    return sorted(found, key=lambda case: study.profiles[case.gpu].is_slice)
