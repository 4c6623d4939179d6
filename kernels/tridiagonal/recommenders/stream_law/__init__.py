"""The number of CUDA streams from laws of what they save and what they cost.

Source: see :mod:`laws`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender
from launchwise.learning.row_arrays import configuration_codes
from launchwise.learning.splits import Case
from launchwise.tables.rows import fastest_rows
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

from ...learning.series import (
    BySize,
    Series,
    by_nearness,
    nearest_series,
    places_in,
    rows_of_cases,
    size_parameter,
    split_series,
)
from .choice import (
    OVERLAPPED,
    STAGES,
    TUNABLE,
    choose_law,
    overhead_rows,
    repeated,
    runs_that_differ_in_streams,
    timed_alone,
)
from .laws import (
    OVERHEAD_LAWS,
    SUM_LAWS,
    Law,
    OverheadLaw,
    SumLaw,
    predicted_gains,
    predicted_streams,
)

LAW_CLASSES = {law.__name__: law for law in (*SUM_LAWS, *OVERHEAD_LAWS)}
WHERE = "training rows"


@dataclass(frozen=True)
class StreamLaws:
    """Laws of one series, fitted to ``sizes`` sizes with all tunables but the streams ``held``."""

    series: Series
    held: dict[str, Value]
    sizes: int
    sum_law: Law
    overhead_law: Law

    def preferred(self, unknowns: float, streams: Iterable[Value]) -> list[int]:
        """``streams``, the predicted one first, then by what they gain."""
        laws = (unknowns, self.sum_law, self.overhead_law)
        counts = sorted(map(int, streams))
        order = np.argsort(-predicted_gains(*laws, counts), kind="stable")
        return [predicted_streams(*laws, counts), *(counts[place] for place in order)]

    def plain(self) -> dict[str, Any]:
        laws = [
            {"law": type(law).__name__, "coefficients": dict(vars(law))}
            for law in (self.sum_law, self.overhead_law)
        ]
        own = {"series": asdict(self.series), "held": self.held, "sizes": self.sizes}
        return {**own, "sum": laws[0], "overhead": laws[1]}

    @classmethod
    def read(cls, plain: dict[str, Any]) -> StreamLaws:
        made: list[Any] = [
            LAW_CLASSES[plain[which]["law"]](**plain[which]["coefficients"])
            for which in ("sum", "overhead")
        ]
        return cls(Series(**plain["series"]), plain["held"], plain["sizes"], *made)


class StreamLawRecommender(Recommender):
    """Predicts how many streams save most after their overhead; needs a workload with stages.

    ``law`` is ``published`` (the published forms) or ``chosen`` (those of
    :data:`~laws.SUM_LAWS` and ``OVERHEAD_LAWS`` that predict held-out
    training sizes best). No law is fitted to rows of a single launch (``slow``, see
    :func:`~choice.repeated`). ``size`` is an integer parameter of the problem, the spec's first
    where it is None; N of the laws is the problem's work items, those of a batch together. Laws are
    fitted to each series on its own, with all other tunables held at the combination that has most
    rows with several streams. What is recommended beside the streams is the fastest row of the
    nearest training size. Where that is not feasible with the predicted streams, the streams that
    gain most of those that are feasible follow, then the other sizes by nearness, then the
    baseline. A series without laws borrows those of the nearest that has them
    (:func:`kernels.tridiagonal.learning.series.nearest_series`).
    """

    class Parameters(Hyperparameters):
        size: str | None = None
        law: Literal["chosen", "published"] = "chosen"

    def __init__(self, domain: Domain, **parameters: Any) -> None:
        super().__init__(domain, **parameters)
        self._size = size_parameter(domain.spec, self.parameters["size"])

    @property
    def _others(self) -> list[str]:
        return [name for name in self.domain.spec.tunable_columns if name != TUNABLE]

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Fit the laws of each series that has several streams (see :meth:`Recommender.fit`).
        Raises UserError when there are no rows, no stage times, a single value of streams, or no
        series that determines its laws."""
        spec = self.domain.spec
        if measurements.empty:
            raise UserError(WHERE, "", "there are none")
        check_stages(measurements, spec)
        self._laws: list[StreamLaws] = []
        self._undetermined: dict[str, str] = {}
        self._known: list[BySize] = []
        for series, part in split_series(measurements, self.domain, self._size):
            candidates = part[self.domain.is_candidate(part)]
            if len(candidates):
                fastest = fastest_rows(candidates, [self._size], spec)
                self._known.append(BySize.of(series, fastest, self._size, spec))
            self._fit_series(series, part)
        if not self._known:
            raise UserError(WHERE, "", "hold no candidate of the study")
        if not self._laws:
            reasons = [f"{name}: {why}" for name, why in self._undetermined.items()]
            lonely = "hold a single value of streams where stage times are known"
            raise UserError(WHERE, TUNABLE, reasons[0] if reasons else lonely)
        self._prepare()
        return self

    def _fit_series(self, series: Series, rows: pd.DataFrame) -> None:
        """Add the laws of a series, or the reason why it has none."""
        used = runs_that_differ_in_streams(repeated(rows), self._size, self.domain.spec)
        if used.empty:
            return
        unknowns = {
            size: self._unknowns({**series.others, self._size: size})
            for size in used[self._size].unique().tolist()
        }
        runs = used[[TUNABLE, "time_ms", *STAGES]].assign(n=used[self._size].map(unknowns))
        stages = runs[runs[TUNABLE] == 1].rename(columns=dict(zip(STAGES, OVERLAPPED, strict=True)))
        observed = overhead_rows(stages, runs)
        held = {
            name: value if isinstance(value, str) else int(value)
            for name, value in zip(self._others, used[self._others].iloc[0], strict=True)
        }
        try:
            laws = self._fit_laws(observed)
        except UserError as error:
            self._undetermined[str(series)] = error.message
            return
        self._laws.append(StreamLaws(series, held, observed["n"].nunique(), *laws))

    def _unknowns(self, problem: Problem) -> float:
        """N of the laws: all that a problem holds, a batch as one."""
        return float(self.domain.spec.value(self.domain.spec.work.items, problem))

    def _fit_laws(self, rows: pd.DataFrame) -> tuple[Law, Law]:
        if self.parameters["law"] == "published":
            return SumLaw.fit(rows), OverheadLaw.fit(rows)
        seed = self.parameters["seed"]
        sums, overheads = (
            choose_law(rows, candidates, seed=seed) for candidates in (SUM_LAWS, OVERHEAD_LAWS)
        )
        return sums.law, overheads.law

    def _prepare(self) -> None:
        self._codes = [
            configuration_codes(one.configurations, self._others, self.domain.spec)
            for one in self._known
        ]

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by place of the other tunables (the baseline after them), then of the streams."""
        spec = self.domain.spec
        codes = configuration_codes(rows, self._others, spec)
        streams = rows[TUNABLE].to_numpy()
        scores = np.zeros((len(rows), 3))
        not_baseline = ~self.domain.is_baseline(rows)
        for case, mine in rows_of_cases(rows, spec):
            wanted = self._preferred(case)
            place = places_in(wanted, codes[mine])
            strange = ~np.isin(codes[mine], wanted)
            law = self._laws[nearest_series([one.series for one in self._laws], case, self.domain)]
            counts = law.preferred(self._unknowns(case.problem), spec.values_of(TUNABLE))
            scores[mine, 0] = place
            scores[mine, 1] = strange & not_baseline[mine]
            scores[mine, 2] = places_in(counts, streams[mine])
        return Judgement.without_times(scores)

    def _preferred(self, case: Case) -> list[int]:
        """Codes of the other tunables' values, of the nearest size first."""
        number = nearest_series([one.series for one in self._known], case, self.domain)
        order = by_nearness(self._known[number].sizes, case.problem[self._size])
        found: list[int] = self._codes[number][order].tolist()
        return found

    def summary(self) -> dict[str, Any]:
        return {
            "features": ["gpu", *self.domain.spec.problem_columns],
            "features_dropped": [],
            "size": self._size,
            "laws": [one.plain() for one in self._laws],
            "undetermined": self._undetermined,
        }

    def state(self) -> dict[str, Any]:
        return {
            "laws": [one.plain() for one in self._laws],
            "undetermined": self._undetermined,
            "known": [one.plain() for one in self._known],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._laws = [StreamLaws.read(one) for one in state["laws"]]
        self._undetermined = dict(state["undetermined"])
        self._known = [BySize.read(one) for one in state["known"]]
        self._prepare()


def check_stages(rows: pd.DataFrame, spec: Spec) -> None:
    """Refuse rows of which no law of streams can be learnt. Raises UserError when the workload has
    no streams or lacks a stage, or no run with 1 stream has its times."""
    if TUNABLE not in spec.tunables:
        raise UserError(WHERE, TUNABLE, f"{spec.workload} has no tunable of this name")
    if missing := [name for name in STAGES if name not in spec.stage_columns or name not in rows]:
        raise UserError(WHERE, missing[0], f"{spec.workload} has no stage times of this name")
    if not timed_alone(rows).any():
        raise UserError(WHERE, STAGES[0], "no run with 1 stream has stage times")
