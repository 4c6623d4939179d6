"""How much is known of the times of a case from others: a Gaussian process over cases.

The covariance of two cases is a product of Matern kernels of smoothness 3/2, one for each parameter
of the problem and one for different GPUs. Its rates are fitted to correlations between measured
cases, as variograms are in geostatistics (Cressie, 1993, section 2.6). The posterior variance of a
case depends on where cases were measured, not on their times, so it is known before they are:
:func:`design` chooses what to measure next by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import configuration_codes, regrets
from launchwise.learning.splits import Case, case_codes, cases_in
from launchwise.search.posterior import Matern
from launchwise.workloads.parts import Value

NEAR = float(np.log(2))
"""Log ratio to the best up to which a configuration counts: what is slower is no answer."""

FEWEST_COMMON = 8  # Fewest common configurations that a correlation is computed of

GPU = "gpu"
"""Dimension of the distance between cases on different GPUs, beside the problem's parameters."""


@dataclass(frozen=True)
class Landscapes:
    """Times of every case relative to its best."""

    cases: tuple[Case, ...]  # measured (GPU, problem) pairs
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
        """Correlation of two cases over configurations near the best of either. Times the share of
        these that have a time in both: what a case cannot run, or did not measure, it tells nothing
        of. NaN of fewer than :data:`FEWEST_COMMON`, or where one case has the same time for all."""
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
    texts: tuple[str, ...]  # parameters whose values are texts: 0 if they are equal, else 1

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


NUGGET = 0.02
"""Variance of what a second measurement would show otherwise, relative to that between cases."""

RATE = 1.0
"""Rate of decay that is expected before anything is measured: over a whole range, the correlation
falls to 0.48."""

RATES = (0.02, 20.0)  # Least and largest rate
PRIOR_WEIGHT = 0.1  # Weight of the expected rates, relative to that of ten pairs of cases
MOST_PAIRS = 1500  # Pairs of cases whose correlation is computed; of more, some are drawn
UNMEASURED = 2.0  # log(time / best) that a configuration without a time counts as
SLOPE = 0.15  # Regret (logarithm) per standard deviation that is expected before cases show it
SLOPE_CASES = 4  # Cases that the expected slope counts as


@dataclass(frozen=True)
class Kriging:
    """The Gaussian process."""

    distances: Distances  # how cases are compared
    # Rate of decay in each dimension of ``distances``: float64, shape (dimensions,).
    rates: np.ndarray
    # Expected regret, the logarithm of time / best, per posterior standard deviation.
    slope: float = SLOPE

    @classmethod
    def fitted(cls, known: Landscapes, distances: Distances, seed: int = 0) -> Self:
        """Rates and slope from measured cases; the expected ones where nothing was measured."""
        rates = _rates(known, distances, seed)
        return cls(distances, rates, _slope(known, cls(distances, rates)))

    def covariance(self, left: Sequence[Case], right: Sequence[Case]) -> np.ndarray:
        """Prior covariance: float64, shape (left, right)."""
        if not left or not right:
            return np.zeros((len(left), len(right)))
        return _matern(self.rates, self.distances.between(left, right))

    def posterior(self, measured: Sequence[Case], cases: Sequence[Case]) -> np.ndarray:
        """Covariance of cases after some were measured: float64, shape (cases, cases)."""
        prior = self.covariance(cases, cases)
        if not measured:
            return prior
        cross = self.covariance(measured, cases)
        return np.asarray(prior - cross.T @ np.linalg.solve(self._noisy(measured), cross))

    def _noisy(self, measured: Sequence[Case]) -> np.ndarray:
        return self.covariance(measured, measured) + NUGGET * np.eye(len(measured))

    def left_out(self, known: Landscapes) -> tuple[np.ndarray, np.ndarray]:
        """What each measured case shows when it is predicted from the others. By the closed form
        for leaving one out (Rasmussen and Williams, 2006, section 5.4.2). Returns the posterior
        standard deviation, float64, shape (cases,), and, likewise, log(time / best) of the
        configuration that is predicted to be the fastest."""
        inverse = np.linalg.inv(self._noisy(known.cases))
        variances = 1 / np.diag(inverse)
        values = np.where(np.isnan(known.regret), UNMEASURED, known.regret)
        mean = values.mean(axis=0)
        away = values - mean
        predicted = away - (inverse @ away) * variances[:, None] + mean
        predicted = np.where(np.isnan(known.regret), np.inf, predicted)
        answers = predicted.argmin(axis=1)
        regrets = known.regret[np.arange(len(answers)), answers]
        return np.sqrt(np.maximum(variances - NUGGET, 0)), regrets


def _matern(rates: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Product of the kernels of all dimensions, the first axis of ``distances``."""
    scaled = rates.reshape(-1, *[1] * (distances.ndim - 1)) * distances
    return np.asarray(np.prod(Matern.ONCE.of(scaled), axis=0))


def _rates(known: Landscapes, distances: Distances, seed: int) -> np.ndarray:
    """Rates of least squared error of correlations, held to the expected ones."""
    count = len(distances.names)
    pairs = np.column_stack(np.triu_indices(len(known.cases), 1))
    if len(pairs) > MOST_PAIRS:
        drawn = np.random.default_rng(seed).permutation(len(pairs))[:MOST_PAIRS]
        pairs = pairs[np.sort(drawn)]
    found = np.array([known.correlation(*pair) for pair in pairs.tolist()])
    usable = np.isfinite(found)
    if not usable.any():
        return np.full(count, RATE)
    found, (left, right) = found[usable], pairs[usable].T
    apart = distances.between(known.cases, known.cases)[:, left, right]
    weight = PRIOR_WEIGHT * 10 / len(found)

    def error(logs: np.ndarray) -> float:
        misfit = found - (1 - NUGGET) * _matern(np.exp(logs), apart)
        return float((misfit**2).mean() + weight * ((logs - np.log(RATE)) ** 2).mean())

    limits = [tuple(np.log(RATES))] * count
    best = minimize(error, np.full(count, np.log(RATE)), method="L-BFGS-B", bounds=limits)
    return np.asarray(np.exp(best.x))


def _slope(known: Landscapes, model: Kriging) -> float:
    """Regret per standard deviation, from cases that are predicted from the others."""
    if len(known.cases) < 2:
        return SLOPE
    deviations, regrets = model.left_out(known)
    expected = SLOPE_CASES * float(deviations.mean())
    total = expected + float(deviations.sum())
    return (SLOPE * expected + float(regrets.sum())) / total if total else SLOPE


SAME = 1e-9  # Relative difference of two gains that rounding may make

LEAST_GAIN = 1e-4
"""Expected gain of all targets below which a case is not worth measuring: .01 % of the time."""

ENOUGH = 0.005
"""Expected mean regret below which nothing more is measured: a quarter of what sweeps resolve
(:data:`launchwise.learning.merit.HARM_PERCENT`)."""

Ending = Literal["budget", "candidates", "enough", "gain"]
"""Why no further case is measured: none fits into the budget, none is left, :data:`ENOUGH` is
reached, or none gains :data:`LEAST_GAIN`."""


@dataclass(frozen=True)
class Step:
    """A case to measure."""

    case: Case
    cost: float  # in the unit of the budget
    # Expected mean regret of answers, log(time / best), once it and those before it are measured.
    regret: float


@dataclass(frozen=True)
class Design:
    """Cases to measure."""

    regret: float  # expected mean regret before the first step
    steps: tuple[Step, ...]  # in their order
    ended: Ending  # why there are no more

    @property
    def gain(self) -> float:
        """Expected fall of the mean regret."""
        return self.regret - (self.steps[-1].regret if self.steps else self.regret)


def design(
    model: Kriging,
    measured: Sequence[Case],
    candidates: Sequence[Case],
    targets: Sequence[Case],
    costs: np.ndarray,
    budget: float,
) -> Design:
    """Cases to measure within a budget.

    The standard deviations of the targets fall the more the nearer and the less known the measured
    cases are (Cohn, 1996: active learning by the variance over targets). The greedy order by gain
    per cost may spend a budget on many cheap cases where one dear one tells more, so the order by
    gain alone competes with it (Khuller, Moss and Naor, 1999).

    ``candidates`` may be measured, for answers about ``targets``; all steps together cost at most
    the ``budget``. ``costs`` of each candidate: float64, shape (candidates,), above 0.
    """
    start = model.posterior(measured, [*targets, *candidates])
    count = len(targets)

    def greedy(per: np.ndarray | None) -> Design:
        """Steps by gain, or by gain per ``per``."""
        covariance, left = start, budget
        remaining = np.ones(len(candidates), dtype=bool)
        first = regret = model.slope * float(_deviations(covariance)[:count].mean())
        steps: list[Step] = []
        why: Ending = "enough"
        while regret > ENOUGH:
            affordable = remaining & (costs <= left)
            if not affordable.any():
                why = "budget" if remaining.any() else "candidates"
                break
            gains = model.slope * _gains(covariance, count)
            worth = np.where(affordable & (gains > LEAST_GAIN), gains, 0.0)
            place = int(np.argmax(worth if per is None else worth / per))
            if not worth[place]:
                why = "gain"
                break
            column = covariance[:, count + place]
            covariance = covariance - np.outer(column, column) / (column[count + place] + NUGGET)
            regret = model.slope * float(_deviations(covariance)[:count].mean())
            remaining[place], left = False, left - float(costs[place])
            steps.append(Step(candidates[place], float(costs[place]), regret))
        return Design(first, tuple(steps), why)

    by_cost, by_gain = greedy(costs), greedy(None)
    # The same cases in another order tell as much, but for rounding.
    tells_more = by_gain.gain > by_cost.gain * (1 + SAME)
    return by_gain if tells_more else by_cost


def _deviations(covariance: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(np.diag(covariance), 0))


def _gains(covariance: np.ndarray, targets: int) -> np.ndarray:
    """Fall of the targets' mean deviation by measuring each candidate: shape (candidates,)."""
    variances = np.maximum(np.diag(covariance), 0)
    cross = covariance[:targets, targets:]
    rest = variances[:targets, None] - cross**2 / (variances[targets:] + NUGGET)
    before = np.sqrt(variances[:targets])[:, None]
    return np.asarray((before - np.sqrt(np.maximum(rest, 0))).mean(axis=0))
