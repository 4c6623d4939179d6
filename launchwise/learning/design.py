"""Cases to measure next: one after the other, each with the largest expected gain per cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from launchwise.learning.kriging import NUGGET, Kriging
from launchwise.learning.splits import Case

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
    by_cost, by_gain = (
        _greedy(model, measured, candidates, targets, costs, budget, by) for by in (costs, None)
    )
    # The same cases in another order tell as much, but for rounding.
    tells_more = by_gain.gain > by_cost.gain * (1 + SAME)
    return by_gain if tells_more else by_cost


def _greedy(
    model: Kriging,
    measured: Sequence[Case],
    candidates: Sequence[Case],
    targets: Sequence[Case],
    costs: np.ndarray,
    budget: float,
    per: np.ndarray | None,
) -> Design:
    """Steps by gain, or by gain per ``per``."""
    covariance = model.posterior(measured, [*targets, *candidates])
    wanted, count = slice(0, len(targets)), len(targets)
    remaining, left = np.ones(len(candidates), dtype=bool), budget
    first = regret = model.slope * float(_deviations(covariance)[wanted].mean())
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
        regret = model.slope * float(_deviations(covariance)[wanted].mean())
        remaining[place], left = False, left - float(costs[place])
        steps.append(Step(candidates[place], float(costs[place]), regret))
    return Design(first, tuple(steps), why)


def _deviations(covariance: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(np.diag(covariance), 0))


def _gains(covariance: np.ndarray, targets: int) -> np.ndarray:
    """Fall of the targets' mean deviation by measuring each candidate: shape (candidates,)."""
    variances = np.maximum(np.diag(covariance), 0)
    cross = covariance[:targets, targets:]
    rest = variances[:targets, None] - cross**2 / (variances[targets:] + NUGGET)
    before = np.sqrt(variances[:targets])[:, None]
    return np.asarray((before - np.sqrt(np.maximum(rest, 0))).mean(axis=0))
