"""The optimum of the nearest sizes, observed or corrected to a monotone trend.

Source: see :mod:`kernels.tridiagonal.learning.optima`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender, tried
from launchwise.learning.splits import Case
from launchwise.tables.rows import fastest_rows

from ..learning.optima import corrected_optima, observed_optima, with_a_choice
from ..learning.series import (
    BySize,
    Series,
    by_nearness,
    choices_in,
    integer_choice,
    nearest_series,
    places_in,
    rows_of_cases,
    size_parameter,
    split_series,
)


class NearestOptimumRecommender(Recommender):
    """Recommends the best choice of the training sizes nearest in log(size).

    ``size`` is an integer parameter of the problem, ``choice`` an integer tunable (each the first
    of the spec where it is None) or a name derived from tunables, such as a depth. The optimum of a
    size is its best ``choice``, observed, or (``corrected``) the one of a trend that never falls as
    the size grows; all other tunables are those of the fastest row of that size and choice.
    ``neighbours`` sizes vote on the choice, of equal votes the smallest wins; the configuration is
    that of the nearest size with the choice, or the one with the choice that differs from it in the
    fewest tunables. Where no configuration with the choice is feasible, the choices of the nearest
    sizes follow, then the baseline. A GPU or a combination of other parameters that was not in
    training is answered from the nearest (see
    :func:`kernels.tridiagonal.learning.series.nearest_series`).
    """

    class Parameters(Hyperparameters):
        size: str | None = None
        choice: str | None = None
        corrected: bool = tried(True)
        neighbours: int = tried(1, 1, 5, ge=1)

    cross_validated = True

    def __init__(self, domain: Domain, **parameters: Any) -> None:
        super().__init__(domain, **parameters)
        self._size = size_parameter(domain.spec, self.parameters["size"])
        self._choice = integer_choice(domain.spec, self.parameters["choice"])

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Find the optimum of each size of each series (see :meth:`Recommender.fit`). Raises
        UserError when there are no rows, none of a candidate, or no trend to correct to."""
        if measurements.empty:
            raise UserError("training rows", "", "there are none")
        rows = measurements[self.domain.is_candidate(measurements)]
        if rows.empty:
            raise UserError("training rows", "", "hold no candidate of the study")
        self._corrections = 0
        self._known = [
            self._optima(series, part)
            for series, part in split_series(rows, self.domain, self._size)
        ]
        self._prepare()
        return self

    def _optima(self, series: Series, rows: pd.DataFrame) -> BySize:
        names = (self._size, self._choice)
        rows = rows.assign(**{self._choice: choices_in(rows, self._choice, self.domain.spec)})
        chosen = with_a_choice(rows, *names)
        rows = rows if chosen.empty else chosen
        try:
            if self.parameters["corrected"]:
                found = corrected_optima(rows, *names)
                observed = found[f"observed_{self._choice}"]
                self._corrections += int((found[self._choice] != observed).sum())
            else:
                found = observed_optima(rows, *names)
        except ValueError as error:
            message = f"{series}: {error}; observed optima need no trend (corrected: false)"
            raise UserError("training rows", self._choice, message) from error
        fastest = fastest_rows(rows, list(names), self.domain.spec)
        taken = found[list(names)].merge(fastest, on=list(names))
        return BySize.of(series, taken, self._size, self.domain.spec)

    def _prepare(self) -> None:
        spec = self.domain.spec
        self._choices = [choices_in(one.configurations, self._choice, spec) for one in self._known]
        # Files keep columns by name, in no order of the spec's.
        self._configurations = [
            one.configurations[self.domain.choice_columns].to_numpy(dtype=object)
            for one in self._known
        ]

    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score by rank among the preferred choices of a case, then the baseline."""
        spec = self.domain.spec
        choices = choices_in(rows, self._choice, spec)
        tunables = rows[self.domain.choice_columns].to_numpy(dtype=object)
        places = np.zeros(len(rows))
        differing = np.zeros(len(rows))
        for case, mine in rows_of_cases(rows, spec):
            wanted, configurations = self._preferred(case)
            place = places_in(wanted, choices[mine])
            meant = np.append(configurations, configurations[:1], axis=0)[place]
            places[mine] = place
            # Of other choices nothing is known, so none of them is nearer than another.
            differing[mine] = (tunables[mine] != meant).sum(axis=1) * (place < len(wanted))
        return Judgement.without_times(places, differing, self.domain.last_of_ties(rows))

    def _preferred(self, case: Case) -> tuple[list[int], np.ndarray]:
        """Distinct choices in order: by votes of the neighbours, then by distance. With them the
        configurations that had them: shape (choices, tunables), of objects."""
        number = nearest_series([one.series for one in self._known], case, self.domain)
        known = self._known[number]
        order = by_nearness(known.sizes, case.problem[self._size])
        choices = self._choices[number][order]
        values, votes = np.unique(choices[: self.parameters["neighbours"]], return_counts=True)
        voted = order[(choices == values[votes.argmax()]).argmax()]
        first: dict[int, int] = {}
        for place in (voted, *order):
            first.setdefault(int(self._choices[number][place]), int(place))
        return list(first), self._configurations[number][list(first.values())]

    def summary(self) -> dict[str, Any]:
        return {
            "features": ["gpu", *self.domain.spec.problem_columns],
            "features_dropped": [],
            "size": self._size,
            "choice": self._choice,
            "series": len(self._known),
            "optima": sum(len(one.sizes) for one in self._known),
            "optima_corrected": self._corrections,
        }

    def state(self) -> dict[str, Any]:
        return {"corrections": self._corrections, "known": [one.plain() for one in self._known]}

    def restore(self, state: dict[str, Any]) -> None:
        self._corrections = int(state["corrections"])
        self._known = [BySize.read(one) for one in state["known"]]
        self._prepare()
