"""Measured times as a table of cases by configurations, and how alike two cases are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import configuration_codes, regrets
from launchwise.learning.splits import Case, case_codes, cases_in
from launchwise.workloads.parts import Value

NEAR = float(np.log(2))
"""Log ratio to the best up to which a configuration counts: what is slower is no answer."""

FEWEST_COMMON = 8
"""Fewest common configurations that a correlation is computed of."""

GPU = "gpu"
"""Dimension of the distance between cases on different GPUs, beside the problem's parameters."""


@dataclass(frozen=True)
class Landscapes:
    """Times of every case relative to its best."""

    # Measured (GPU, problem) pairs.
    cases: tuple[Case, ...]
    # log(time / best) of each configuration: float64, shape (cases, configurations); NaN where
    # it has no time.
    regret: np.ndarray

    @classmethod
    def of(cls, rows: pd.DataFrame, domain: Domain) -> Self:
        """From measured rows with a time, of candidates."""
        spec = domain.spec
        codes, _ = case_codes(rows, spec)
        choices = configuration_codes(rows, domain.choice_columns, spec)
        _, places = np.unique(choices, return_inverse=True)
        shape = (int(codes.max(initial=-1)) + 1, int(places.max(initial=-1)) + 1)
        table = np.full(shape, np.nan)
        table[codes, places] = regrets(rows, spec)
        return cls(tuple(cases_in(rows, spec)), table)

    def only(self, places: Sequence[int]) -> Landscapes:
        """Those of some cases, in the order of their places."""
        return Landscapes(tuple(self.cases[place] for place in places), self.regret[list(places)])

    def correlation(self, one: int, other: int) -> float:
        """Correlation of two cases over configurations near the best of either.

        Times the share of these that have a time in both: what a case cannot run, or did not
        measure, it tells nothing of. NaN of fewer than :data:`FEWEST_COMMON`, or where one case has
        the same time for all.
        """
        left, right = self.regret[one], self.regret[other]
        near = np.fmin(left, right) < NEAR
        common = near & np.isfinite(left) & np.isfinite(right)
        share = common.sum() / max(1, near.sum())
        left, right = left[common], right[common]
        if len(left) < FEWEST_COMMON or not left.std() or not right.std():
            return float("nan")
        return float(share * np.corrcoef(left, right)[0, 1])


@dataclass(frozen=True)
class Distances:
    """Distance of cases in each parameter of the problem, and between GPUs."""

    # Parameter to its smallest and largest number: a distance in it is that of logarithms
    # divided by that of these two, so it is 1 from one end of the range to the other.
    ranges: Mapping[str, tuple[float, float]]
    # Parameters whose values are texts: 0 if they are equal, else 1.
    texts: tuple[str, ...]

    @classmethod
    def over(cls, cases: Sequence[Case]) -> Self:
        """Over all values of some cases; a parameter with one value is left out."""
        ranges, texts = {}, []
        for name in cases[0].problem:
            values = list(dict.fromkeys(case.problem[name] for case in cases))
            if len(values) < 2:
                continue
            if any(isinstance(value, str) for value in values):
                texts.append(name)
            else:
                numbers = [max(float(value), 1.0) for value in values]
                ranges[name] = (min(numbers), max(numbers))
        return cls({name: both for name, both in ranges.items() if both[0] < both[1]}, (*texts,))

    @property
    def names(self) -> list[str]:
        """Dimensions, the GPU last."""
        return [*self.ranges, *self.texts, GPU]

    def between(self, left: Sequence[Case], right: Sequence[Case]) -> np.ndarray:
        """Distances: float64, shape (dimensions, left, right)."""
        parts = [
            np.abs(np.subtract.outer(self._scaled(name, left), self._scaled(name, right)))
            for name in self.ranges
        ]
        parts += [_different(_values(name, left), _values(name, right)) for name in self.texts]
        parts.append(_different([each.gpu for each in left], [each.gpu for each in right]))
        return np.array(parts)

    def _scaled(self, name: str, cases: Sequence[Case]) -> np.ndarray:
        low, high = np.log(self.ranges[name])
        numbers = np.array([float(value) for value in _values(name, cases)])
        return np.asarray((np.log(np.maximum(numbers, 1.0)) - low) / (high - low))


def _values(name: str, cases: Sequence[Case]) -> list[Value]:
    return [case.problem[name] for case in cases]


def _different(left: Sequence[Value], right: Sequence[Value]) -> np.ndarray:
    columns = np.array(right, dtype=object)
    return (np.array(left, dtype=object)[:, None] != columns[None]).astype(float)
