"""How much is known of the times of a case from others: a Gaussian process over cases.

The covariance of two cases is a product of Matern kernels of smoothness 3/2, one for each parameter
of the problem and one for different GPUs. Its rates are fitted to correlations between measured
cases, as variograms are in geostatistics (Cressie, 1993, section 2.6). The posterior variance of a
case depends on where cases were measured, not on their times, so it is known before they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize

from launchwise.learning.design.landscapes import Distances, Landscapes
from launchwise.learning.splits import Case

NUGGET = 0.02
"""Variance of what a second measurement would show otherwise, relative to that between cases."""

RATE = 1.0
"""Rate of decay that is expected before anything is measured: over a whole range, the correlation
falls to 0.48."""

RATES = (0.02, 20.0)
"""Least and largest rate."""

PRIOR_WEIGHT = 0.1
"""Weight of the expected rates, relative to that of ten pairs of cases."""

MOST_PAIRS = 1500
"""Pairs of cases whose correlation is computed; of more, some are drawn."""

UNMEASURED = 2.0
"""log(time / best) that a configuration without a time counts as."""

SLOPE = 0.15
"""Regret (logarithm) per standard deviation that is expected before cases show it."""

SLOPE_CASES = 4
"""Cases that the expected slope counts as."""


@dataclass(frozen=True)
class Kriging:
    """The Gaussian process."""

    # How cases are compared.
    distances: Distances
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
        """What each measured case shows when it is predicted from the others.

        By the closed form for leaving one out (Rasmussen and Williams, 2006, section 5.4.2).

        Returns
        -------
        deviations
            Posterior standard deviation: float64, shape (cases,).
        regrets
            log(time / best) of the configuration that is predicted to be the fastest, likewise.
        """
        inverse = np.linalg.inv(self._noisy(known.cases))
        variances = 1 / np.diag(inverse)
        values = np.where(np.isnan(known.regret), UNMEASURED, known.regret)
        values = values - values.mean(axis=0)
        predicted = values - (inverse @ values) * variances[:, None]
        predicted = np.where(np.isnan(known.regret), np.inf, predicted + known_mean(known))
        answers = predicted.argmin(axis=1)
        regrets = known.regret[np.arange(len(answers)), answers]
        return np.sqrt(np.maximum(variances - NUGGET, 0)), regrets


def known_mean(known: Landscapes) -> np.ndarray:
    """Mean log(time / best) of each configuration over the cases: shape (configurations,)."""
    return np.asarray(np.where(np.isnan(known.regret), UNMEASURED, known.regret).mean(axis=0))


def _matern(rates: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Product of the kernels of all dimensions, the first axis of ``distances``."""
    scaled = np.sqrt(3) * rates.reshape(-1, *[1] * (distances.ndim - 1)) * distances
    return np.asarray(np.prod((1 + scaled) * np.exp(-scaled), axis=0))


def _rates(known: Landscapes, distances: Distances, seed: int) -> np.ndarray:
    """Rates of least squared error of correlations, held to the expected ones."""
    count = len(distances.names)
    pairs = _pairs(len(known.cases), seed)
    found = np.array([known.correlation(*pair) for pair in pairs])
    usable = np.isfinite(found)
    if not usable.any():
        return np.full(count, RATE)
    found, pairs = found[usable], [pair for pair, use in zip(pairs, usable, strict=True) if use]
    apart = distances.between(known.cases, known.cases)[:, *np.array(pairs).T]
    weight = PRIOR_WEIGHT * 10 / len(pairs)

    def error(logs: np.ndarray) -> float:
        misfit = found - (1 - NUGGET) * _matern(np.exp(logs), apart)
        return float((misfit**2).mean() + weight * ((logs - np.log(RATE)) ** 2).mean())

    limits = [tuple(np.log(RATES))] * count
    best = minimize(error, np.full(count, np.log(RATE)), method="L-BFGS-B", bounds=limits)
    return np.asarray(np.exp(best.x))


def _pairs(count: int, seed: int) -> list[tuple[int, int]]:
    """Numbers of two cases: all pairs, or :data:`MOST_PAIRS` drawn ones."""
    left, right = np.triu_indices(count, 1)
    if len(left) > MOST_PAIRS:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(left))[:MOST_PAIRS])
        left, right = left[drawn], right[drawn]
    return list(zip(left.tolist(), right.tolist(), strict=True))


def _slope(known: Landscapes, model: Kriging) -> float:
    """Regret per standard deviation, from cases that are predicted from the others."""
    if len(known.cases) < 2:
        return SLOPE
    deviations, regrets = model.left_out(known)
    expected = SLOPE_CASES * float(deviations.mean())
    total = expected + float(deviations.sum())
    return (SLOPE * expected + float(regrets.sum())) / total if total else SLOPE
