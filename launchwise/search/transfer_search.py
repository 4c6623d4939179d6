"""Search of a space on a new GPU, guided by rows of other GPUs.

A Gaussian process over the candidates of one problem (:mod:`launchwise.search.posterior`). Its mean
is the mean loss (log time / best) on the other GPUs, those most that are most like the new one
(:mod:`launchwise.search.candidates`). After each measurement the candidate of the largest expected
improvement is next, but where a faster one is long in coming: then every third is a neighbour of
the fastest. Without other GPUs the first candidates lie far apart, and of those that follow every
third is a neighbour of one of the fastest.

A search may end by the chance that something clearly faster was left. A process that has learnt
little is too sure of itself, so what it says is held against cards that were kept apart:
``benchmarks/stopping.py`` searches every recorded and public sweep, with and without other cards,
and fits how often something faster by more than asked was really left. Its ``coefficients``, in
``benchmarks/results/stopping.json``, are the constants below.

Sources: expected improvement (Jones, Schonlau and Welch, 1998); candidates that lie far apart
(Gonzalez, 1985).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from launchwise.search.posterior import ALONE, SEARCH, Process, lost_to

CONSTANT, BY_EXPECTED, BY_SINCE, BY_LEFT = 0.0109, 0.2973, -0.5953, 0.1782
"""Coefficients of the log odds (see :func:`terms`)."""

LEAST_EXPECTED = 1e-6

SURE = 0.1  # A search ends once the chance that something clearly faster is left is at most this
LEAST_MEASURED = 5  # Measurements before which no search is sure, however few candidates there are


def least_measured(candidates: int) -> int:
    """Measurements before which no search among so many ``candidates`` is sure. Of what is fast
    alone, unlike all that resembles it, no process can know. The more candidates there are, the
    likelier there is one; their square root is what two such cards of the public convolution
    need."""
    return max(LEAST_MEASURED, math.isqrt(candidates - 1) + 1)


@dataclass(frozen=True)
class Evidence:
    """What a process says of the candidates that were not measured."""

    expected: float  # expected number of them that are faster than the best by more than asked
    since: int  # measurements since the best one
    left: int  # how many there are


def terms(evidence: Evidence) -> tuple[float, float, float, float]:
    """What the log odds are a sum of, by the coefficients above."""
    return (
        1.0,
        math.log(evidence.expected + LEAST_EXPECTED),
        math.log1p(evidence.since),
        math.log(evidence.left),
    )


def chance_left(evidence: Evidence) -> float:
    """Chance that one of them is faster by more than asked; 0 where none is left."""
    if not evidence.left:
        return 0.0
    coefficients = CONSTANT, BY_EXPECTED, BY_SINCE, BY_LEFT
    odds = sum(a * b for a, b in zip(coefficients, terms(evidence), strict=True))
    return 1 / (1 + math.exp(-odds))


LARGEST_LOSS = 1.5  # Losses above this count the same: 4.5 times the best time

LARGEST_ALONE = 1.0
"""The same where no other GPU is known, whose losses would say what is far from the best."""

FIRST_ALONE = 8  # Candidates far apart that are measured first where no other GPU is known
FIRST_AMONG = 500  # Candidates that these are chosen among

NEAR_EVERY = 3
"""Of measurements in a row that find nothing faster, each so-many-th is followed by a neighbour of
the fastest. What is fast here alone lies off what other GPUs and the process expect."""

NEAR_FROM, NEAR_WHICH = 10, 3
"""Without other GPUs one in so many measurements is of a neighbour, found faster or not: from this
measurement on, a neighbour of one of so many fastest."""

CHOSEN_AT = frozenset(
    [4, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 60, 80, *range(100, 201, 25), *range(250, 601, 50)]
)
"""Numbers of measurements at which the scales of the process are fitted anew."""

MOST_FITTED = 100
"""Measurements that scales are fitted to: the fastest half of these, and others at random."""

MOST_LEARNT = 600
"""Measurements that the process is conditioned on; of later ones only those that are faster than
all before. Time and memory grow with their number."""


class TransferSearch:
    """Proposes which candidate to measure next.

    ``points``: tunables of each candidate, texts as one column per value: float64, shape
        (candidates, tunables).
    ``losses``: log(time / best time) of each candidate on each other GPU: float64, shape
        (candidates, GPUs); inf where it failed, NaN where it was not measured. No column without
        other GPUs.
    ``away``: of each other GPU how unlike the new one it is (:mod:`launchwise.search.candidates`):
        float64, shape (GPUs,); NaN counts like their mean. All alike when left out.
    ``winners``: of each other GPU whether its losses are those of winners alone: what is absent was
        not faster than what is there; bool, shape (GPUs,); of none when left out.
    Raises ValueError when there is no candidate, or the shapes do not fit.
    """

    def __init__(
        self,
        points: np.ndarray,
        losses: np.ndarray,
        away: Sequence[float] | None = None,
        winners: Sequence[bool] | None = None,
    ) -> None:
        if not len(points) or len(points) != len(losses):
            raise ValueError(f"{len(points)} candidates have losses of {len(losses)}")
        points, losses = np.asarray(points, dtype=float), np.asarray(losses, dtype=float)
        self._axes = Axes.of(points)
        scaled = self._axes.scaled(points)
        self._medians = _medians(losses)
        count = losses.shape[1]
        self._weights = weights_of(np.zeros(count) if away is None else np.asarray(away, float))
        self._won = [
            scaled[np.isfinite(column)] if is_won and np.isfinite(column).any() else None
            for column, is_won in zip(losses.T, winners or [False] * count, strict=True)
        ]
        self._mean, deviations = self._shared(losses, scaled)
        self._alone = not losses.shape[1]
        self._process = Process(scaled, deviations, ALONE if self._alone else SEARCH)
        self._largest_loss = LARGEST_ALONE if self._alone else LARGEST_LOSS
        self._first = _far_apart(scaled[:FIRST_AMONG]) if self._alone else []
        self._tried: list[int] = []
        self._learnt: list[int] = []
        self._logs: list[float] = []
        self._since = 0
        self._open = np.ones(len(points), dtype=bool)
        self._believed: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def tried(self) -> list[int]:
        """Candidates in the order of their outcomes."""
        return list(self._tried)

    def extend(self, points: np.ndarray, losses: np.ndarray) -> None:
        """Add candidates; their numbers follow those of the others. ``points``, ``losses``: as at
        the beginning, of the new candidates: (new, tunables) and (new, GPUs)."""
        self._believed = None
        scaled = self._axes.scaled(np.asarray(points, dtype=float))
        mean, deviations = self._shared(np.asarray(losses, dtype=float), scaled)
        self._process.extend(scaled, deviations)
        self._mean = np.append(self._mean, mean)
        self._open = np.append(self._open, np.ones(len(points), dtype=bool))

    def learns(self, time_ms: float | None) -> bool:
        """Whether a measurement (ms, None if it failed) would still change the process."""
        return len(self._learnt) < MOST_LEARNT or _log(time_ms) < self._best()

    def propose(self) -> int:
        """Number of the candidate to measure next; StopIteration when all were measured."""
        if not self._open.any():
            raise StopIteration
        return self.ranked(1)[0]

    def ranked(self, count: int) -> list[int]:
        """Numbers of the candidates that are the most promising now, at most ``count``, best first;
        none when all were measured."""
        first = [candidate for candidate in self._first if self._open[candidate]]
        if len(first) >= count:
            return first[:count]
        among = self._open.copy()
        among[first] = False
        if self._looks_near():
            near = among & self._near_the_fastest()
            among = near if near.any() else among
        worth = np.where(among, self._improvements(), -np.inf)
        best = np.argsort(-worth, kind="stable")[: count - len(first)]
        return [*first, *(int(each) for each in best if among[each])]

    def _looks_near(self) -> bool:
        """Whether a neighbour of the fastest is next."""
        if self._alone:
            return len(self._tried) >= NEAR_FROM and len(self._tried) % NEAR_EVERY == 0
        waited = self._since > 0 and self._since % NEAR_EVERY == 0
        return waited and self._best() < np.inf

    def _near_the_fastest(self) -> np.ndarray:
        """Whether a candidate differs from one of the fastest in one tunable: (candidates,)."""
        points = self._process.points
        near = np.zeros(len(points), dtype=bool)
        for place in np.argsort(self._logs, kind="stable")[: NEAR_WHICH if self._alone else 1]:
            differ = points != points[self._learnt[place]]
            near |= differ.sum(axis=1) <= 1
        return near

    def chance_left(self, within: float) -> float:
        """Chance that an open candidate is faster than the best by more than ``within``. 1 before
        the first success, 0 when all were measured. Held against cards that were kept apart.
        ``within``: part of the best time, such as 0.02."""
        if not self._open.any():
            return 0.0
        if not np.isfinite(self._logs).any():
            return 1.0
        return chance_left(self.evidence(within))

    def has_looked_around(self) -> bool:
        """Whether enough was measured to be sure of anything, or nothing is left."""
        return not self._open.any() or len(self._tried) >= least_measured(len(self._open))

    def evidence(self, within: float) -> Evidence:
        """What the process says of the candidates that are left (see :meth:`chance_left`)."""
        from scipy.special import ndtr

        mean, variance = self._beliefs()
        single = self._process.scales.single
        away = (np.log1p(-within) - mean) / np.sqrt(variance + single**2)
        left = int(self._open.sum())
        return Evidence(float(ndtr(away[self._open]).sum()), self._since, left)

    def _improvements(self) -> np.ndarray:
        """Expected improvement of each candidate: (candidates,). Before the first success only
        their order has a meaning."""
        from scipy.special import ndtr

        if not np.isfinite(self._logs).any():
            return -self._mean
        mean, variance = self._beliefs()
        deviation = np.sqrt(variance)
        ahead = -mean / deviation
        density = np.exp(-0.5 * ahead**2) / np.sqrt(2 * np.pi)
        return np.asarray(deviation * (ahead * ndtr(ahead) + density))

    def _beliefs(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean of each candidate's log time relative to the best, and its variance."""
        if self._believed is None:
            rows = np.array(self._learnt)
            mean, variance = self._process.posterior(self._targets() - self._mean[rows])
            self._believed = self._mean + mean, variance
        return self._believed

    def tell(self, candidate: int, time_ms: float | None) -> None:
        """Take in a measurement: ms, or None where the candidate failed."""
        self._tried.append(candidate)
        self._open[candidate] = False
        self._since = 0 if _log(time_ms) < self._best() else self._since + 1
        if not self.learns(time_ms):
            return
        self._believed = None
        self._learnt.append(candidate)
        self._logs.append(_log(time_ms))
        count = len(self._learnt)
        if not np.isfinite(self._logs).any():
            return
        if count in CHOSEN_AT:
            self._fit()
        if count in CHOSEN_AT or np.isfinite(self._logs).sum() == 1:
            self._process.condition(np.array(self._learnt))
        else:
            self._process.append(candidate)

    def _fit(self) -> None:
        rows, targets = np.array(self._learnt), self._targets()
        if len(rows) > MOST_FITTED:
            order = np.argsort(targets, kind="stable")
            half = MOST_FITTED // 2
            others = np.random.default_rng(len(rows)).choice(order[half:], half, replace=False)
            kept = np.concatenate([order[:half], others])
            rows, targets = rows[kept], targets[kept]
        self._process.fit(rows, targets - self._mean[rows])

    def _best(self) -> float:
        return float(np.min(self._logs, initial=np.inf))

    def _targets(self) -> np.ndarray:
        """Log times relative to the best, large losses and failures bounded: (learnt,)."""
        return np.minimum(np.array(self._logs) - self._best(), self._largest_loss)

    def _shared(self, losses: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean of bounded losses per candidate, and each GPU's deviations from it. What
        was not measured has the GPU's median loss; where winners alone are known, what it is
        expected to lose to the nearest of them."""
        known = np.minimum(losses, LARGEST_LOSS)
        for place, won in enumerate(self._won):
            unknown = np.isnan(known[:, place])
            known[unknown, place] = (
                self._medians[place] if won is None else lost_to(won, points[unknown])
            )
        mean = known @ self._weights
        return mean, known - mean[:, None]


@dataclass(frozen=True)
class Axes:
    """Scale of the tunables: log2(|x| + 1), from 0 to 1 over the first candidates. Tunables that do
    not vary among those are left out."""

    varied: np.ndarray
    least: np.ndarray
    ranges: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> Axes:
        """Scale of candidates: float64, shape (candidates, tunables)."""
        logs = np.log2(np.abs(points) + 1)
        varied = np.ptp(logs, axis=0) > 0
        return cls(varied, logs[:, varied].min(axis=0), np.ptp(logs[:, varied], axis=0))

    def scaled(self, points: np.ndarray) -> np.ndarray:
        """Candidates on this scale: (candidates, tunables that vary)."""
        logs = np.log2(np.abs(points) + 1)[:, self.varied]
        return np.asarray((logs - self.least) / self.ranges)


def _far_apart(points: np.ndarray) -> list[int]:
    """Candidates of which each is as far as can be from those before it; the first one first."""
    found = [0]
    away = ((points - points[0]) ** 2).sum(axis=1)
    while len(found) < min(FIRST_ALONE, len(points)):
        found.append(int(np.argmax(away)))
        away = np.minimum(away, ((points - points[found[-1]]) ** 2).sum(axis=1))
    return found


def _log(time_ms: float | None) -> float:
    """Log time; infinite where there is none."""
    failed = time_ms is None or not np.isfinite(time_ms) or time_ms <= 0
    return np.inf if failed else float(np.log(time_ms or 1.0))


def _medians(losses: np.ndarray) -> np.ndarray:
    """Median of the bounded losses of each GPU, 0 where there are none: (GPUs,)."""
    found = np.minimum(losses, LARGEST_LOSS)
    return np.array(
        [np.median(each[~np.isnan(each)]) if (~np.isnan(each)).any() else 0.0 for each in found.T]
    )


def weights_of(away: np.ndarray) -> np.ndarray:
    """Weights of other GPUs by how unlike the new one they are; of the mean one where that is NaN:
    float64, shape (GPUs,), of sum 1."""
    known = away[~np.isnan(away)]
    filled = np.where(np.isnan(away), known.mean() if len(known) else 0.0, away)
    found = np.exp(-(filled - filled.min(initial=0.0)))
    return np.asarray(found / found.sum()) if len(found) else found
