"""Search of a space on a GPU that is new, guided by what other GPUs measured.

A Gaussian process over the candidates of one problem. Its mean is the mean loss (log time / best)
on the other GPUs. Its covariance has three parts: a constant, since nobody knows how fast the new
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
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr

LARGEST_LOSS = float(np.log(2.0))
"""Losses above this are equally hopeless: twice the best time."""

LEVEL = 1.0
"""Deviation of the log time that the best of a new GPU is expected to be off."""

NOISE = 0.05
"""Deviation of a log time from what the covariance explains: noise, and single outstanding rows."""

SHARED = (0.3, 1.0)
OWN = (0.1, 0.3, 0.6)
SCALES = (1.0, 2.0, 4.0)
"""Deviations of what other GPUs share and of what is the new one's own, and length scales of that
(in deviations of a tunable), that are compared by their likelihood."""

CHOSEN_AT = (5, 10, 20)
CHOSEN_EVERY = 25
"""Numbers of measurements at which these are chosen anew, and every so many after them."""


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

    def __init__(self, points: np.ndarray, losses: np.ndarray) -> None:
        if not len(points) or len(points) != len(losses):
            raise ValueError(f"{len(points)} candidates have losses of {len(losses)}")
        self._points = _scaled(np.asarray(points, dtype=float))
        known = _bounded(np.asarray(losses, dtype=float))
        self._mean = known.mean(axis=1) if known.shape[1] else np.zeros(len(points))
        self._deviations = known - self._mean[:, None]
        self._tried: list[int] = []
        self._logs: list[float] = []
        self._open = np.ones(len(points), dtype=bool)
        self._scales = Scales()
        self._rebuild()

    @property
    def tried(self) -> list[int]:
        """Candidates in the order in which they were told."""
        return list(self._tried)

    def propose(self) -> int:
        """Number of the candidate to measure next.

        Raises
        ------
        StopIteration
            When all were measured.
        """
        if not self._open.any():
            raise StopIteration
        if not np.isfinite(self._logs).any():
            return int(np.argmin(np.where(self._open, self._mean, np.inf)))
        best = self._best() - self._origin
        shift = self._weights[0] - best * self._weights[1]
        mean = self._mean + best + self._columns.T @ shift
        # Relative to the best: a constant in the targets is a constant in their mean.
        deviation = np.sqrt(np.maximum(self._prior - (self._columns**2).sum(axis=0), 1e-12))
        ahead = (best - mean) / deviation
        density = np.exp(-0.5 * ahead**2) / np.sqrt(2 * np.pi)
        gain = deviation * (ahead * ndtr(ahead) + density)
        return int(np.argmax(np.where(self._open, gain, -np.inf)))

    def tell(self, candidate: int, time_ms: float | None) -> None:
        """Take in a measurement: ms, or None where the candidate failed."""
        failed = time_ms is None or not np.isfinite(time_ms) or time_ms <= 0
        self._tried.append(candidate)
        self._logs.append(np.inf if failed else float(np.log(time_ms or 1.0)))
        self._open[candidate] = False
        if not np.isfinite(self._logs).any():
            return
        count = len(self._tried)
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
        """Log times relative to the origin, hopeless ones and failures bounded: (tried,)."""
        logs = np.minimum(np.array(self._logs), self._best() + LARGEST_LOSS)
        return logs - self._origin

    @property
    def _origin(self) -> float:
        """Log time that the targets are relative to: that of the first success."""
        return next((log for log in self._logs if np.isfinite(log)), 0.0)

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
        shared = (self._deviations**2).sum(axis=1)
        self._prior = LEVEL**2 + self._scales.shared**2 * shared + self._scales.own**2
        if not np.isfinite(self._logs).any():
            return
        for candidate, target in zip(self._tried, self._targets(), strict=True):
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
        self._columns = np.vstack([self._columns, row])
        self._weights = np.column_stack([self._weights, added])

    def _likeliest(self) -> Scales:
        """Hyper-parameters of the largest marginal likelihood."""
        rows = np.array(self._tried)
        right = self._targets() - self._mean[rows]
        found = [Scales(*each) for each in itertools.product(SHARED, OWN, SCALES)]
        return max(found, key=lambda scales: self._likelihood(rows, right, scales))

    def _likelihood(self, rows: np.ndarray, right: np.ndarray, scales: Scales) -> float:
        covariance = self._covariance(rows, rows, scales) + NOISE**2 * np.eye(len(rows))
        factor = cho_factor(covariance, lower=True)
        return float(-0.5 * right @ cho_solve(factor, right) - np.log(np.diag(factor[0])).sum())


def _bounded(losses: np.ndarray) -> np.ndarray:
    """Losses up to :data:`LARGEST_LOSS`; what was not measured has the GPU's median."""
    found = np.minimum(losses, LARGEST_LOSS)
    medians = [
        np.median(each[~np.isnan(each)]) if (~np.isnan(each)).any() else 0 for each in found.T
    ]
    return np.where(np.isnan(found), np.array(medians).reshape(1, -1), found)


def _scaled(points: np.ndarray) -> np.ndarray:
    """log2(|x| + 1), then mean 0 and deviation 1; tunables that never vary are left out."""
    logs = np.log2(np.abs(points) + 1)
    varied = logs[:, logs.std(axis=0) > 0]
    return (varied - varied.mean(axis=0)) / varied.std(axis=0) if varied.size else varied
