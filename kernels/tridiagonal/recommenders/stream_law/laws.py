"""Number of CUDA streams for a solver whose stages can overlap, from laws fitted to times.

Source of method and published coefficients: M. Veneva, T. Imamura, "ML-Based Optimum Number of CUDA
Streams for the GPU Implementation of the Tridiagonal Partition Method" (2024). Stages 1 and 3 of
the solver run on the GPU, stage 2 on the host. With s streams what can overlap shrinks to 1/s of
its ``sum``, which saves (s - 1) / s * sum, and an overhead is added. One law predicts the sum of a
system of N unknowns, another the overhead of s streams: the best s saves most after its overhead.

Laws are fitted to *rows*, one for each N and s of one GPU in one setting (memory, precision,
batch): ``n`` (unknowns), ``streams``, ``time_ms``, ``sum_ms``, ``overhead_ms``, as
:func:`choice.overhead_rows` makes them. Rows with s = 1 (overhead 0)
take part in every fit, as they seem to have done in the paper: the variance that follows from its
R^2 and MSE is that of its small law over 1 to 32 streams, not over 2 to 32.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeWarning, curve_fit

from launchwise.base.errors import UserError

STREAMS = (1, 2, 4, 8, 16, 32)  # numbers of streams that are tried; a GPU has 32 hardware queues


class Law(ABC):
    """A formula for a time in ms; its coefficients are the fields of a dataclass."""

    target: ClassVar[str]  # the column that it predicts
    start: ClassVar[tuple[float, ...]]
    """Initial values of the fitted coefficients: their usual orders of magnitude."""
    relative: ClassVar[bool] = False
    """Whether errors are weighed by 1 / sum, so that small systems count as much as large ones."""

    @abstractmethod
    def predict(self, n: ArrayLike, streams: ArrayLike = 1) -> np.ndarray:
        """Time in ms, float64, for N unknowns and s streams, broadcast against each other."""

    @classmethod
    def fit(cls, rows: pd.DataFrame) -> Self:
        """Least squares on rows (see above), by :func:`scipy.optimize.curve_fit`. Raises UserError
        when the rows do not determine the coefficients."""
        used = cls.observations(rows)
        make: Any = cls
        try:
            found = _least_squares(
                lambda asked, *coefficients: make(*coefficients).predict(*asked),
                used[["n", "streams"]].to_numpy(dtype=float).T,
                used[cls.target].to_numpy(dtype=float),
                used["sum_ms"].to_numpy(dtype=float) if cls.relative else None,
                cls.start,
            )
        # TypeError: fewer rows than coefficients.
        except (OptimizeWarning, RuntimeError, TypeError, ValueError) as error:
            message = f"{len(used)} rows do not determine {cls.__name__}: {error}"
            raise UserError("training rows", "", message) from error
        law: Self = make(*map(float, found))
        return law

    @classmethod
    def observations(cls, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows that tell of the target: the sum of an N is one observation, not one an s."""
        return rows.drop_duplicates("n") if cls.target == "sum_ms" else rows


def _least_squares(
    formula: Callable[..., np.ndarray],
    asked: np.ndarray,
    times: np.ndarray,
    deviations: np.ndarray | None,
    start: Sequence[float],
) -> np.ndarray:
    """Coefficients, shape of ``start``, with which ``formula(asked, *coefficients)`` is ``times``.
    ``asked`` has shape (2, rows), ``times`` and ``deviations`` (the errors to expect) (rows,).
    Raises OptimizeWarning, RuntimeError, TypeError, ValueError when the data does not determine
    them."""

    def slopes(asked: np.ndarray, *coefficients: float) -> np.ndarray:
        # curve_fit's own steps are a share of a coefficient, and vanish where one is 0.
        steps = 1e-3 * np.diag(start)
        ends = [[formula(asked, *(coefficients + step)) for step in (-h, h)] for h in steps]
        return np.column_stack([upper - lower for lower, upper in ends]) / (2 * steps.sum(axis=0))

    with warnings.catch_warnings():
        warnings.simplefilter("error", OptimizeWarning)
        found, covariance = curve_fit(
            formula, asked, times, start, deviations, absolute_sigma=True, jac=slopes
        )
    spread = np.sqrt(np.diag(covariance))
    # Where only the sum of two coefficients is known curve_fit does not always notice.
    if not np.linalg.cond(covariance / np.outer(spread, spread)) < 1e12:
        raise ValueError("n or streams hardly vary")
    return np.asarray(found)


@dataclass(frozen=True)
class SumLaw(Law):
    """The published law of the sum: slope * N + constant."""

    target: ClassVar[str] = "sum_ms"
    start: ClassVar[tuple[float, ...]] = (1e-6, 0.1)

    slope: float
    constant: float

    def predict(self, n: ArrayLike, streams: ArrayLike = 1) -> np.ndarray:
        """Sum in ms, of shape of ``n``; ``streams`` have no part in it."""
        return np.asarray(self.slope * np.asarray(n, dtype=float) + self.constant)


@dataclass(frozen=True)
class RelativeSumLaw(SumLaw):
    """The same form with relative errors: the published fit hardly sees N below 10^5."""

    relative: ClassVar[bool] = True


@dataclass(frozen=True)
class OverheadLaw(Law):
    """The published law of the overhead, with a jump at N = 10^6. Up to there small_slope * N +
    small_streams * log10(s) + small_constant, above it (large_slope * N + large_streams) *
    log2(s^(4/3)) + large_constant."""

    target: ClassVar[str] = "overhead_ms"
    start: ClassVar[tuple[float, ...]] = (1e-7, 0.1, 0.1, 1e-7, 0.1, 0.1)
    border: ClassVar[float] = 1e6

    small_slope: float
    small_streams: float
    small_constant: float
    large_slope: float
    large_streams: float
    large_constant: float

    def predict(self, n: ArrayLike, streams: ArrayLike = 1) -> np.ndarray:
        """Overhead in ms, not 0 with s = 1."""
        size, count = np.asarray(n, dtype=float), np.asarray(streams, dtype=float)
        small = self.small_slope * size + self.small_streams * np.log10(count) + self.small_constant
        growth = (self.large_slope * size + self.large_streams) * 4 / 3
        return np.where(size <= self.border, small, growth * np.log2(count) + self.large_constant)


@dataclass(frozen=True)
class CreationLaw(Law):
    """Overhead tau * s, tau the time for creating one stream: the baseline. Fitted with relative
    errors: in ms the largest N, whose overhead is no creation, would say all. J. Gomez-Luna et al.,
    "Performance models for CUDA streams on NVIDIA GeForce series" (2011); B. van Werkhoven et al.,
    "Performance models for CPU-GPU data transfers" (2014)."""

    target: ClassVar[str] = "overhead_ms"
    start: ClassVar[tuple[float, ...]] = (0.01,)
    relative: ClassVar[bool] = True

    tau: float

    def predict(self, n: ArrayLike, streams: ArrayLike = 1) -> np.ndarray:
        """Overhead in ms; N only gives the shape."""
        return np.asarray(self.tau * np.asarray(streams, dtype=float) + 0 * np.asarray(n))

    def optimum(self, sum_ms: float) -> float:
        """Least time by this law, sqrt(sum / tau): a real number, infinite where tau <= 0."""
        return float(np.sqrt(sum_ms / self.tau)) if self.tau > 0 else float("inf")

    def best_of(self, sum_ms: float, streams: Sequence[int] = STREAMS) -> int:
        """The allowed s with the least sum / s + tau * s; of equal ones the smallest."""
        return min(sorted(streams), key=lambda count: sum_ms / count + self.tau * count)


@dataclass(frozen=True)
class LinearOverheadLaw(Law):
    """per_stream * (s - 1) + (share * N + constant) * (s - 1) / s. Every further stream costs the
    same, and a share of what could overlap does not. 0 with s = 1."""

    target: ClassVar[str] = "overhead_ms"
    start: ClassVar[tuple[float, ...]] = (0.01, 1e-7, 0.1)
    relative: ClassVar[bool] = True

    per_stream: float
    share: float
    constant: float

    def predict(self, n: ArrayLike, streams: ArrayLike = 1) -> np.ndarray:
        """Overhead in ms."""
        more = np.asarray(streams, dtype=float) - 1
        kept = self.share * np.asarray(n, dtype=float) + self.constant
        return np.asarray(self.per_stream * more + kept * more / (more + 1))


@dataclass(frozen=True)
class SmoothOverheadLaw(Law):
    """(constant + scale * (N / 10^6)^exponent) * log2(s). What grows in the published law, without
    its jump. 0 with s = 1."""

    target: ClassVar[str] = "overhead_ms"
    start: ClassVar[tuple[float, ...]] = (0.1, 0.1, 1.0)
    relative: ClassVar[bool] = True

    constant: float
    scale: float
    exponent: float

    def predict(self, n: ArrayLike, streams: ArrayLike = 1) -> np.ndarray:
        """Overhead in ms."""
        grown = self.scale * (np.asarray(n, dtype=float) / 1e6) ** self.exponent
        return np.asarray((self.constant + grown) * np.log2(np.asarray(streams, dtype=float)))


SUM_LAWS: tuple[type[Law], ...] = (SumLaw, RelativeSumLaw)
OVERHEAD_LAWS: tuple[type[Law], ...] = (
    OverheadLaw,
    CreationLaw,
    LinearOverheadLaw,
    SmoothOverheadLaw,
)
PUBLISHED_SUM = SumLaw(slope=0.0000021890017149, constant=0.1470644998564126)
"""Of the RTX 2080 Ti in double precision with sub-systems of 10 unknowns, as the next two."""
PUBLISHED_OVERHEAD = OverheadLaw(
    small_slope=0.0000002245645331,
    small_streams=0.6009426920043296,
    small_constant=-0.0605183610625299,
    large_slope=0.0000000356594859,
    large_streams=0.0522781620855163,
    large_constant=0.3941472844770443,
)
PUBLISHED_CREATION = CreationLaw(tau=0.004448)


def predicted_gains(
    n: float, sum_law: Law, overhead_law: Law, streams: Sequence[int] = STREAMS
) -> np.ndarray:
    """(s - 1) / s * sum - overhead of each s in ms, float64, of shape (streams,)."""
    counts = np.asarray(streams)
    return np.asarray((1 - 1 / counts) * sum_law.predict(n) - overhead_law.predict(n, counts))


def predicted_streams(
    n: float, sum_law: Law, overhead_law: Law, streams: Sequence[int] = STREAMS
) -> int:
    """The s whose overhead is below (s - 1) / s * sum, by the largest difference.

    s = 1 is a candidate like the others: it saves nothing, and its overhead is what the law says.
    In the published law this is below 0 for small N, and without that N = 8e4 would get 2 streams
    where the paper prints 1.

    ``n``: unknowns, above 0.
    ``streams``: allowed s.
    Returns the smallest of the best; 1 when no s has its overhead below what it saves.
    """
    allowed = sorted(streams)
    gains = predicted_gains(n, sum_law, overhead_law, allowed)
    best = int(np.argmax(gains))
    return int(allowed[best]) if gains[best] > 0 else 1
