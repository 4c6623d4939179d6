"""Intervals of what an answer is expected to gain and to take, from errors on held-out cases.

An error of a gain is divided by how far the members of the answering method are apart; the
quantiles of such errors on other cases, asked in the same situation, give the interval (conformal
prediction: Vovk et al., 2005; Lei et al., 2018, locally weighted). The cases are the test cases of
a study's folds, whose models have not seen them. Where one of these cases itself gets an interval,
all cases of its problem are left out. A situation is where a problem lies relative to what its GPU
measured (:class:`MeasuredProblems`): answers, tables and files ask the same function.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.gpus.profile import GpuProfile
from launchwise.learning.answers import SITUATIONS, Calibration, Offsets, Situation
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case, Fold
from launchwise.tables.rows import row_numbers
from launchwise.workloads.near_problems import distances
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

SHARE = 0.9  # Nominal coverage of an interval
SPREAD_FLOOR = 0.01  # Spread of members that agree exactly: their common error is no smaller


def texts_of(values: Iterable[Value]) -> tuple[str, ...]:
    """The texts among the values of a problem."""
    return tuple(value for value in values if isinstance(value, str))


USUAL_SHARE = 19, 20
"""Share of the measured problems whose distance to the nearest other one is usual."""


@dataclass(frozen=True)
class MeasuredProblems:
    """What one GPU measured, by the texts of the problems."""

    by_texts: dict[tuple[str, ...], list[tuple[Value, ...]]]
    # Usual distance to the nearest other one; None where too few problems say what is usual.
    reach: float | None

    @classmethod
    def of(cls, problems: Iterable[tuple[Value, ...]]) -> MeasuredProblems:
        """From the problems, each once."""
        groups: dict[tuple[str, ...], list[tuple[Value, ...]]] = {}
        nearest: list[float] = []
        for one in problems:
            groups.setdefault(texts_of(one), []).append(one)
        for own in groups.values():
            apart = distances(own, own)
            np.fill_diagonal(apart, math.inf)
            nearest += apart.min(axis=1).tolist()
        known = sorted(one for one in nearest if one < math.inf)
        share, whole = USUAL_SHARE
        few = len(known) < whole
        return cls(groups, None if few else known[-(-share * len(known) // whole) - 1])

    def outside(self, asked: tuple[Value, ...]) -> float:
        """How far a problem lies outside: its distance (:func:`distances`) to the ranges of what
        was measured with the same texts. Where the nearest of these is farther than is usual, how
        many times as far, if that is more. 1: within; 0: nothing with these texts was measured."""
        own = self.by_texts.get(texts_of(asked))
        if not own:
            return 0.0
        ends = [
            value if isinstance(value, str) else min(max(value, min(sizes)), max(sizes))
            for value, *sizes in zip(asked, *own, strict=True)
        ]
        far = float(distances([asked], [ends])[0, 0])
        nearest = float(distances([asked], own).min())
        return far if self.reach is None else max(far, nearest / self.reach)


@dataclass(frozen=True)
class Known:
    """Problems of the training rows."""

    gpus: Mapping[str, MeasuredProblems]  # by names of GPUs
    columns: tuple[str, ...]  # names of the problem's parameters

    @classmethod
    def of(cls, rows: pd.DataFrame, spec: Spec) -> Known:
        """From training rows."""
        columns = spec.problem_columns
        cases = rows[["gpu", *columns]].drop_duplicates().astype({"gpu": str}).groupby("gpu")
        problems = {gpu: own[columns].itertuples(index=False, name=None) for gpu, own in cases}
        return cls(
            {str(gpu): MeasuredProblems.of(own) for gpu, own in problems.items()}, (*columns,)
        )

    def reach(self, gpu: str) -> float | None:
        """:attr:`MeasuredProblems.reach` of a GPU; None for another one."""
        return self.gpus[gpu].reach if gpu in self.gpus else None

    def situations(self, rows: pd.DataFrame) -> np.ndarray:
        """Situation of each row that holds a GPU and a problem: objects, shape (rows,)."""
        columns = ["gpu", *self.columns]
        of_case = row_numbers(rows, columns)
        cases = rows[columns].iloc[np.unique(of_case, return_index=True)[1]]
        found = [
            ("within" if self.gpus[gpu].outside((*problem,)) == 1 else "beyond")
            if gpu in self.gpus
            else "new_gpu"
            for gpu, *problem in cases.itertuples(index=False, name=None)
        ]
        return np.array(found, dtype=object)[of_case]


@dataclass(frozen=True)
class Errors:
    """Errors of answers to test cases; each attribute has shape (cases,)."""

    situations: np.ndarray  # situation in which each was asked
    problems: np.ndarray  # number of each one's problem, whatever its GPU: int64
    # (log gain - expected) / (spread + `SPREAD_FLOOR`): float64, NaN where the usual choice
    # was the answer, or nothing was expected.
    gains: np.ndarray
    times: np.ndarray  # log(time / predicted time): float64, NaN without

    @classmethod
    def of(cls, answers: pd.DataFrame, folds: Iterable[Fold], domain: Domain) -> Errors:
        """From the evaluation of an answering method, a row per test case, with ``spread``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gain, expected = (np.log(_real(answers, name)) for name in ("gain", "expected_gain"))
            gains = (gain - expected) / (_real(answers, "spread") + SPREAD_FLOOR)
            times = np.log(_real(answers, "time_ms") / _real(answers, "predicted_ms"))
        gains[answers["is_usual"].to_numpy(dtype=bool) | ~np.isfinite(gains)] = np.nan
        problems = row_numbers(answers, domain.spec.problem_columns)
        return cls(asked_situations(answers, folds, domain), problems, gains, times)

    def offsets(self, situation: str, without: int | None = None) -> Offsets:
        """Interval in a situation, from the cases that were asked in it; from all where they
        are too few.

        ``without``: problem that is left out.
        """
        others = self.problems != (-1 if without is None else without)
        mine = others & (self.situations == situation)
        gain, time = (
            quantiles(each[mine]) or quantiles(each[others]) for each in (self.gains, self.times)
        )
        return Offsets(int(mine.sum()), gain, time)

    def by_situation(self) -> dict[Situation, Offsets]:
        """Interval in each situation that some case was asked in."""
        return {each: self.offsets(each) for each in SITUATIONS if each in self.situations}


def _real(table: pd.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(dtype=float)


def asked_situations(rows: pd.DataFrame, folds: Iterable[Fold], domain: Domain) -> np.ndarray:
    """Situation of each test case in its fold: objects, shape (rows,). ``unlike`` where all
    training cases are of one card and the case is of another: leaving out slices of a card measures
    the error on a slice, not on another card."""
    found = np.full(len(rows), "", dtype=object)
    for fold in folds:
        mine = ((rows["split"] == fold.split) & (rows["fold"] == fold.fold)).to_numpy()
        asked = rows[mine]
        known = Known.of(table_of(fold.train), domain.spec)
        found[mine] = known.situations(asked)
        found[np.flatnonzero(mine)[unlike_all(known.gpus, asked, domain.profiles)]] = "unlike"
    return found


def table_of(cases: Sequence[Case]) -> pd.DataFrame:
    """A row per case: its GPU and its problem."""
    return pd.DataFrame([{"gpu": case.gpu, **case.problem} for case in cases])


def unlike_all(
    known: Iterable[str], rows: pd.DataFrame, profiles: Mapping[str, GpuProfile]
) -> np.ndarray:
    """Rows of another card than the one that all known GPUs are of: booleans, shape (rows,)."""
    cards = {profiles[gpu].card_model for gpu in known}
    if len(cards) > 1:
        return np.zeros(len(rows), dtype=bool)
    strange = [gpu for gpu, one in profiles.items() if one.card_model not in cards]
    return rows["gpu"].isin(strange).to_numpy()


def quantiles(errors: np.ndarray) -> tuple[float, float] | None:
    """Quantiles that hold :data:`SHARE` of the next errors, if they are like these. Of n finite
    errors, the k-th smallest and the k-th largest with k = (n + 1) (1 - SHARE) / 2, between two
    errors in proportion; None where k is below 1."""
    errors, tail = errors[np.isfinite(errors)], (1 - SHARE) / 2
    if (len(errors) + 1) * tail < 1 - 1e-9:
        return None
    low, high = np.quantile(errors, [tail, 1 - tail], method="weibull")
    return float(low), float(high)


def limits_around(
    values: np.ndarray,
    asked: np.ndarray,
    offsets: Mapping[Any, Offsets],
    spread: np.ndarray | None = None,
) -> np.ndarray:
    """Limits of predicted times or, with a ``spread``, of expected gains: float64, shape (rows, 2);
    NaN without.

    ``values``, ``spread``: times or gains, and the deviation of the logarithm of a gain: float64,
    shape (rows,); ``asked``, ``offsets``: key of each row's interval, shape (rows,), and the
    intervals.
    """
    width = np.ones(len(values)) if spread is None else spread + SPREAD_FLOOR
    logs = np.full((len(values), 2), np.nan)
    for key, each in offsets.items():
        if (limit := each.time if spread is None else each.gain) is not None:
            logs[asked == key] = limit
    return np.asarray(values[:, None] * np.exp(logs * width[:, None]))


FEWEST = 20  # Fewest blind problems that say how far intervals reach


def calibration(limits: np.ndarray, measured: np.ndarray) -> Calibration | None:
    """Compare intervals with what blind tests measured; None for fewer than :data:`FEWEST`.

    ``limits``: float64, shape (problems, 2); ``measured``: float64, shape (problems,). What is NaN
    in either has no part.
    """
    known = np.isfinite(limits).all(axis=1) & np.isfinite(measured)
    if known.sum() < FEWEST:
        return None
    centre, half = _centre_and_half(limits[known])
    away = np.abs(np.log(measured[known]) - centre) / half
    stretch = float(np.quantile(away, SHARE, method="weibull"))
    return Calibration(int(known.sum()), float((away <= 1).mean()), stretch)


def stretched(limits: np.ndarray, stretch: float | np.ndarray) -> np.ndarray:
    """Limits around the same geometric mean, as wide in logarithms times ``stretch``. float64,
    shape (rows, 2); ``stretch`` is a number or has shape (rows,)."""
    centre, half = _centre_and_half(limits)
    wide = half * stretch
    return np.exp(np.column_stack([centre - wide, centre + wide]))


def _centre_and_half(limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logs = np.log(limits)
    return logs.mean(axis=1), (logs[:, 1] - logs[:, 0]) / 2


def with_limits(answers: pd.DataFrame, errors: Errors) -> pd.DataFrame:
    """Answers to test cases with ``least_gain`` and ``most_gain``, from the other problems."""
    keys = list(zip(errors.situations.tolist(), errors.problems.tolist(), strict=True))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    offsets = {number: errors.offsets(*key) for key, number in numbers.items()}
    asked = np.array([numbers[key] for key in keys], dtype=np.int64)
    gains, spread = _real(answers, "expected_gain"), _real(answers, "spread")
    limits = limits_around(gains, asked, offsets, spread)
    limits[answers["is_usual"].to_numpy(dtype=bool)] = 1.0
    # Held-out cases do not measure the error at another distance, or on another card.
    limits[np.isin(errors.situations, ["beyond", "unlike"])] = np.nan
    return answers.assign(least_gain=limits[:, 0], most_gain=limits[:, 1])
