"""Search of a space on a new GPU, guided by rows of other GPUs.

A Gaussian process over the candidates of one problem. Its mean is the mean loss (log time / best)
on the other GPUs. Its covariance has three parts: a constant, since it is unknown how fast the new
GPU is; the losses on each other GPU, less their mean, since the new one resembles some more than
others; and a Matern kernel over the tunables, for what no other GPU has shown. After each
measurement the candidate of the largest expected improvement is next. Without other GPUs it is a
search like others; with them it starts where they were fast.

Sources: the linear model of coregionalisation (Journel and Huijbregts, 1978), expected improvement
(Jones, Schonlau and Welch, 1998), Gaussian processes (Rasmussen and Williams, 2006).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import ndtr

LARGEST_LOSS = float(np.log(2.0))
"""Losses above this count the same: twice the best time."""

LEVEL = 1.0
"""Deviation of the log time that the best of a new GPU is expected to be off."""

NOISE = 0.05
"""Deviation of a log time from what the covariance explains: noise, and single outstanding rows."""

SHARED = (0.3, 1.0)
OWN = (0.1, 0.3, 0.6)
SCALES = (1.0, 2.0, 4.0)
"""Deviations of the part shared with other GPUs and of the new GPU's own part, and length scales of
that (in deviations of a tunable), that are compared by their likelihood."""

CHOSEN_AT = (5, 10, 20)
CHOSEN_EVERY = 25
"""Numbers of measurements at which these are chosen anew, and every so many after them."""

MOST_LEARNT = 600
"""Measurements that the covariance is conditioned on; of later ones only those that are faster than
all before. Time and memory grow with their number."""


@dataclass(frozen=True)
class Scales:
    """Hyper-parameters of the covariance (see the names above)."""

    shared: float = 0.3
    own: float = 0.3
    length: float = 2.0


class TransferSearch:
    """Proposes which candidate to measure next.

    Parameters
    ----------
    points
        Tunables of each candidate, texts as one column per value: float64, shape (candidates,
        tunables).
    losses
        log(time / best time) of each candidate on each other GPU: float64, shape (candidates,
        GPUs); inf where it failed, NaN where it was not measured. No column without other GPUs.

    Raises
    ------
    ValueError
        When there is no candidate, or the shapes do not fit.
    """

    _columns: np.ndarray
    _gains: np.ndarray | None = None
    _weights: np.ndarray
    _pivots: list[float]
    _prior: np.ndarray

    def __init__(self, points: np.ndarray, losses: np.ndarray) -> None:
        if not len(points) or len(points) != len(losses):
            raise ValueError(f"{len(points)} candidates have losses of {len(losses)}")
        points, losses = np.asarray(points, dtype=float), np.asarray(losses, dtype=float)
        self._axes = Axes.of(points)
        self._points = self._axes.scaled(points)
        self._medians = _medians(losses)
        self._mean, self._deviations = self._shared(losses)
        self._tried: list[int] = []
        self._learnt: list[int] = []
        self._logs: list[float] = []
        self._open = np.ones(len(points), dtype=bool)
        self._scales = Scales()
        self._rebuild()

    @property
    def tried(self) -> list[int]:
        """Candidates in the order of their outcomes."""
        return list(self._tried)

    def extend(self, points: np.ndarray, losses: np.ndarray) -> None:
        """Add candidates; their numbers follow those of the others.

        Parameters
        ----------
        points, losses
            As at the beginning, of the new candidates: (new, tunables) and (new, GPUs).
        """
        self._gains = None
        new = np.arange(len(points)) + len(self._points)
        mean, deviations = self._shared(np.asarray(losses, dtype=float))
        scaled = self._axes.scaled(np.asarray(points, dtype=float))
        self._points = np.vstack([self._points, scaled])
        self._mean = np.append(self._mean, mean)
        self._deviations = np.vstack([self._deviations, deviations])
        self._open = np.append(self._open, np.ones(len(new), dtype=bool))
        self._prior = np.append(self._prior, self._variances(new))
        rows = np.array(self._learnt[: len(self._pivots)], dtype=int)
        columns = np.empty((0, len(new)))
        if len(rows):
            factor = np.tril(self._columns[:, rows].T, -1) + np.diag(self._pivots)
            cross = self._covariance(rows, new, self._scales)
            columns = solve_triangular(factor, cross, lower=True)
        self._columns = np.hstack([self._columns, columns])

    def learns(self, time_ms: float | None) -> bool:
        """Whether a measurement (ms, None if it failed) would still change the process."""
        if len(self._learnt) < MOST_LEARNT:
            return True
        return _log(time_ms) < self._best()

    def propose(self) -> int:
        """Number of the candidate to measure next.

        Raises
        ------
        StopIteration
            When all were measured.
        """
        if not self._open.any():
            raise StopIteration
        return int(np.argmax(np.where(self._open, self._improvements(), -np.inf)))

    def expected_gain(self) -> float:
        """Largest expected improvement of the log time by one more measurement.

        inf before the first success, 0 when all were measured.
        """
        if not self._open.any():
            return 0.0
        if not np.isfinite(self._logs).any():
            return float("inf")
        return float(self._improvements()[self._open].max())

    def _improvements(self) -> np.ndarray:
        """Expected improvement of each candidate: (candidates,).

        Before the first success only their order has a meaning.
        """
        if not np.isfinite(self._logs).any():
            return -self._mean
        if self._gains is None:
            best = self._best() - self._origin
            shift = self._weights[0] - best * self._weights[1]
            mean = self._mean + best + self._columns.T @ shift
            # Relative to the best: a constant in the targets is a constant in their mean.
            variances = np.maximum(self._prior - (self._columns**2).sum(axis=0), 1e-12)
            deviation = np.sqrt(variances)
            ahead = (best - mean) / deviation
            density = np.exp(-0.5 * ahead**2) / np.sqrt(2 * np.pi)
            self._gains = np.asarray(deviation * (ahead * ndtr(ahead) + density))
        return self._gains

    def tell(self, candidate: int, time_ms: float | None) -> None:
        """Take in a measurement: ms, or None where the candidate failed."""
        self._tried.append(candidate)
        self._open[candidate] = False
        if not self.learns(time_ms):
            return
        self._gains = None
        self._learnt.append(candidate)
        self._logs.append(_log(time_ms))
        if not np.isfinite(self._logs).any():
            return
        count = len(self._learnt)
        first = np.isfinite(self._logs).sum() == 1
        if count in CHOSEN_AT or count % CHOSEN_EVERY == 0:
            self._scales = self._likeliest()
            self._rebuild()
        elif first:
            self._rebuild()
        else:
            self._append(candidate, self._targets()[-1])

    def _best(self) -> float:
        return float(np.min(self._logs))

    def _targets(self) -> np.ndarray:
        """Log times relative to the origin, large losses and failures bounded: (learnt,)."""
        logs = np.minimum(np.array(self._logs), self._best() + LARGEST_LOSS)
        return logs - self._origin

    @property
    def _origin(self) -> float:
        """Log time that the targets are relative to: that of the first success."""
        return next((log for log in self._logs if np.isfinite(log)), 0.0)

    def _shared(self, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean of bounded losses per candidate, and each GPU's deviations from it."""
        known = _bounded(losses, self._medians)
        mean = known.mean(axis=1) if known.shape[1] else np.zeros(len(known))
        return mean, known - mean[:, None]

    def _variances(self, rows: np.ndarray) -> np.ndarray:
        """Variance of candidates before any measurement: (rows,)."""
        shared = (self._deviations[rows] ** 2).sum(axis=1)
        return np.asarray(LEVEL**2 + self._scales.shared**2 * shared + self._scales.own**2)

    def _covariance(self, rows: np.ndarray, columns: np.ndarray, scales: Scales) -> np.ndarray:
        shared = self._deviations[rows] @ self._deviations[columns].T
        distances = np.linalg.norm(
            self._points[rows][:, None, :] - self._points[columns][None, :, :], axis=2
        )
        steps = np.sqrt(3) * distances / scales.length
        own = (1 + steps) * np.exp(-steps)
        return LEVEL**2 + scales.shared**2 * shared + scales.own**2 * own

    def _rebuild(self) -> None:
        """Posterior of all candidates from all measurements."""
        count = len(self._points)
        self._columns = np.empty((0, count))
        self._weights = np.empty((2, 0))
        self._pivots = []
        self._prior = self._variances(np.arange(count))
        if not np.isfinite(self._logs).any():
            return
        for candidate, target in zip(self._learnt, self._targets(), strict=True):
            self._append(candidate, float(target))

    def _append(self, candidate: int, target: float) -> None:
        """Add a row to the Cholesky factor, as columns over all candidates."""
        here = np.array([candidate])
        cross = self._covariance(here, np.arange(len(self._points)), self._scales)[0]
        before = self._columns[:, candidate]
        pivot = np.sqrt(max(cross[candidate] + NOISE**2 - before @ before, 1e-12))
        row = (cross - before @ self._columns) / pivot
        right = np.array([target - self._mean[candidate], 1.0])
        added = (right - self._weights @ before) / pivot
        self._pivots.append(float(pivot))
        self._columns = np.vstack([self._columns, row])
        self._weights = np.column_stack([self._weights, added])

    def _likeliest(self) -> Scales:
        """Hyper-parameters of the largest marginal likelihood."""
        rows = np.array(self._learnt)
        right = self._targets() - self._mean[rows]
        found = [Scales(*each) for each in itertools.product(SHARED, OWN, SCALES)]
        return max(found, key=lambda scales: self._likelihood(rows, right, scales))

    def _likelihood(self, rows: np.ndarray, right: np.ndarray, scales: Scales) -> float:
        covariance = self._covariance(rows, rows, scales) + NOISE**2 * np.eye(len(rows))
        factor = cho_factor(covariance, lower=True)
        return float(-0.5 * right @ cho_solve(factor, right) - np.log(np.diag(factor[0])).sum())


@dataclass(frozen=True)
class Axes:
    """Scale of the tunables: log2(|x| + 1), mean 0 and deviation 1 over the first candidates.

    Tunables that do not vary among those are left out.
    """

    varied: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray) -> Axes:
        """Scale of candidates: float64, shape (candidates, tunables)."""
        logs = np.log2(np.abs(points) + 1)
        varied = logs.std(axis=0) > 0
        return cls(varied, logs[:, varied].mean(axis=0), logs[:, varied].std(axis=0))

    def scaled(self, points: np.ndarray) -> np.ndarray:
        """Candidates on this scale: (candidates, tunables that vary)."""
        logs = np.log2(np.abs(points) + 1)[:, self.varied]
        return np.asarray((logs - self.means) / self.deviations)


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


def _bounded(losses: np.ndarray, medians: np.ndarray) -> np.ndarray:
    """Losses up to :data:`LARGEST_LOSS`; what was not measured has the GPU's median."""
    found = np.minimum(losses, LARGEST_LOSS)
    return np.where(np.isnan(found), medians.reshape(1, -1), found)
