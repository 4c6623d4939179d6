"""Plans: members that answer, their caution, and the interval of the expected gain.

Every member predicts the log time of a candidate relative to the usual choice. A plan takes the
mean over some members, adds :attr:`Plan.caution` times the spread over all members, and recommends
the candidate with the lowest sum. The usual choice has 0, so it is recommended if no expected
gain exceeds the disagreement of the members.

Sources: the one-standard-error rule of Breiman et al. (1984) on paired differences chooses plans;
conformal prediction (Vovk et al., 2005; Lei et al., 2018, locally weighted) gives intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field

from launchwise.learning.merit import HARM_PERCENT
from launchwise.learning.search import best_of, choose
from launchwise.learning.stored import Count, Log

HARM_WEIGHT = 3.0
"""Weight of a loss against the usual choice, relative to a missed gain."""

TOLERATED_LOSS = math.log(1 + HARM_PERCENT / 100)
"""Log ratio to the usual choice up to which there is no loss: the resolution of sweeps."""

CAUTIONS = (0.5, 0.0, 1.0)
"""Cautions that are tried; the first is taken unless another is clearly better."""

SHARE = 0.9
"""Nominal coverage of an interval."""

SPREAD_FLOOR = 0.01
"""Spread of members that agree exactly: their common error is no smaller."""

LARGEST_LOSS = 3.0
"""Predicted log time relative to the usual choice above which more makes no difference."""

FEWEST_CASES = 8
"""Held-out cases below which only two plans compete: that all members agree on, and one member."""

BEST_OF = 3
"""Members of the committee of the best."""


@dataclass(frozen=True)
class Plan:
    """Plan for answering in a situation; a committee stores it as JSON.

    Parameters
    ----------
    members
        Whose mean counts.
    caution
        Factor of the spread.
    cases
        Held-out training cases by which it was chosen; 0 where there were none.
    loss
        Mean log(time / best) of these; None without.
    harmed, abstained
        Of them, those slower than the usual choice by more than 2 %, and those answered by it.
    offsets
        Lower and upper quantile of (gain - expected gain) / spread; None where there are too few
        cases to tell.
    timer
        Member whose predicted times were nearest; None where no member predicts times.
    time_offsets
        Lower and upper quantile of log(time / predicted time); None likewise.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    members: Annotated[tuple[str, ...], Field(min_length=1)]
    caution: Log
    cases: Count = 0
    loss: Log | None = None
    harmed: Count = 0
    abstained: Count = 0
    offsets: tuple[Log, Log] | None = None
    timer: str | None = None
    time_offsets: tuple[Log, Log] | None = None

    def gains(self, centre: np.ndarray, spread: np.ndarray, usual: np.ndarray) -> np.ndarray:
        """Expected gains over what is usual, and their interval: (rows, 3). Of itself exactly 1.

        Parameters
        ----------
        centre, spread
            Log time relative to the usual choice as members expect it, and how far they are apart:
            float64, shape (rows,).
        usual
            Whether a row is the usual choice: booleans, (rows,).
        """
        low, high = self.offsets or (np.nan, np.nan)
        width = spread + SPREAD_FLOOR
        logs = np.column_stack([-centre, -centre + low * width, -centre + high * width])
        logs[usual] = 0.0
        return np.exp(logs)


@dataclass(frozen=True)
class HeldOut:
    """Held-out candidates with what members predict of them.

    Parameters
    ----------
    cases
        Number of each row's case, from 0 and none left out: int64, shape (rows,).
    losses
        Member to predicted log time relative to the usual choice: float64, shape (rows,).
    times_ms
        Measured, shape (rows,).
    usual
        Which rows are the usual choice of their case: booleans, shape (rows,); one a case.
    log_times
        Member to log of its predicted times (ms), shape (rows,); those alone that predict times.
    units
        Number of each row's unit, from 0: cases that were held out for the same size or the same
        GPU are no independent evidence. int64, shape (rows,); each case its own where left out.
    """

    cases: np.ndarray
    losses: Mapping[str, np.ndarray]
    times_ms: np.ndarray
    usual: np.ndarray
    log_times: Mapping[str, np.ndarray] = field(default_factory=dict)
    units: np.ndarray | None = None

    def by_unit(self, values: np.ndarray) -> np.ndarray:
        """Mean over the cases of each unit: from shape (cases,) to shape (units,)."""
        if self.units is None:
            return values
        of_case = np.zeros(len(values), dtype=np.int64)
        of_case[self.cases] = self.units
        _, of_case = np.unique(of_case, return_inverse=True)
        return np.bincount(of_case, values) / np.bincount(of_case)

    def by_case(self, values: np.ndarray) -> np.ndarray:
        """Least value of each case, shape (cases,)."""
        found = np.full(int(self.cases.max(initial=-1)) + 1, np.inf)
        np.minimum.at(found, self.cases, values)
        return found


def centre_and_spread(
    losses: Mapping[str, np.ndarray], members: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of some members' losses, and deviation over all: float64, shape (rows,) each."""
    bounded = {name: np.clip(each, -LARGEST_LOSS, LARGEST_LOSS) for name, each in losses.items()}
    centre = np.mean([bounded[name] for name in members], axis=0)
    return centre, np.std(list(bounded.values()), axis=0)


def first_rows(cases: np.ndarray, *criteria: np.ndarray) -> np.ndarray:
    """Row that comes first in each case, criterion by criterion the smallest, then in their order.

    int64, shape (cases,); ``cases`` and each criterion have shape (rows,).
    """
    # lexsort is stable and compares its last key first.
    order = np.lexsort((*reversed(criteria), cases))
    return order[np.flatnonzero(np.diff(cases[order], prepend=-1))]


def chosen_plan(held: HeldOut, members: Sequence[str], cautious: str | None = None) -> Plan:
    """The plan that answers held-out cases best, losses against the usual choice weighing more.

    The committee of all members at the first of :data:`CAUTIONS` is taken unless that of the best
    :data:`BEST_OF`, or another caution, is better by more than one standard error of the paired
    differences. A single member is none of the plans: the best of eight is a lucky one.

    Parameters
    ----------
    cautious
        Member that competes with the mean of all where there are fewer than :data:`FEWEST_CASES`
        cases: the one of the smaller mean cost is taken. So few cases choose between two plans
        better than between many (``benchmarks/unseen_cards.py``).
    """
    best_ms = held.by_case(held.times_ms)
    usual_ms = held.by_case(np.where(held.usual, held.times_ms, np.inf))

    def costs(plan: Plan) -> np.ndarray:
        times = held.times_ms[_answers(plan, held)]
        against = np.log(times / usual_ms)
        harm = np.maximum(0, against - TOLERATED_LOSS)
        return held.by_unit(np.log(times / best_ms) + HARM_WEIGHT * harm)

    if cautious is not None and len(best_ms) < FEWEST_CASES:
        plans = [agreed(members), agreed([cautious])]
        plan = plans[best_of([costs(each) for each in plans])]
        return _with_figures(plan, held, best_ms, usual_ms)
    alone = {name: costs(agreed([name])).mean() for name in members}
    leading = tuple(sorted(members, key=lambda name: (alone[name], name))[:BEST_OF])
    committees = dict.fromkeys([tuple(members), leading])
    plans = [Plan(each, caution) for each in committees for caution in CAUTIONS]
    plan = plans[choose([costs(each) for each in plans])]
    return _with_figures(plan, held, best_ms, usual_ms)


def agreed(members: Iterable[str]) -> Plan:
    """The mean of members, without caution."""
    return Plan(tuple(members), 0.0)


def _answers(plan: Plan, held: HeldOut) -> np.ndarray:
    centre, spread = centre_and_spread(held.losses, plan.members)
    return first_rows(held.cases, centre + plan.caution * spread)


def _with_figures(plan: Plan, held: HeldOut, best_ms: np.ndarray, usual_ms: np.ndarray) -> Plan:
    rows = _answers(plan, held)
    times = held.times_ms[rows]
    gains = np.log(usual_ms / times)
    answered = ~held.usual[rows]
    centre, spread = centre_and_spread(held.losses, plan.members)
    errors = (gains + centre[rows]) / (spread[rows] + SPREAD_FLOOR)
    timer = _nearest_timer(held)
    return Plan(
        plan.members,
        plan.caution,
        cases=len(rows),
        loss=float(np.log(times / best_ms).mean()),
        harmed=int((gains < -TOLERATED_LOSS).sum()),
        abstained=int((~answered).sum()),
        offsets=conformal_offsets(errors[answered]),
        timer=timer,
        time_offsets=None
        if timer is None
        else conformal_offsets(np.log(times) - held.log_times[timer][rows]),
    )


def _nearest_timer(held: HeldOut) -> str | None:
    """Member of the least median error of predicted times, in logarithms."""
    logs = np.log(held.times_ms)
    errors = {name: float(np.median(np.abs(logs - one))) for name, one in held.log_times.items()}
    return min(errors, key=lambda name: (errors[name], name), default=None)


def conformal_offsets(errors: np.ndarray) -> tuple[float, float] | None:
    """Quantiles that hold :data:`SHARE` of the next errors, if they are like these.

    Of n errors, the k-th smallest and the k-th largest with k = (n + 1) (1 - SHARE) / 2, between
    two errors in proportion; None where k is below 1.
    """
    tail = (1 - SHARE) / 2
    if (len(errors) + 1) * tail < 1 - 1e-9:
        return None
    low, high = np.quantile(errors, [tail, 1 - tail], method="weibull")
    return float(low), float(high)
