"""The search of ``recommend --measure`` on test problems, simulated on what was measured of them.

It measures the answer of the study's model first. Then it starts from what the model expects of all
candidates, as much as from what the training problems of the fold say: other GPUs' rows of the
problem, or of the nearest that they measured, and this GPU's rows of its nearest problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from launchwise.learning.row_arrays import keys_of
from launchwise.learning.splits import Case, Fold
from launchwise.search.candidates import Key, described, losses_of, texts_of
from launchwise.tables.learning import predicted_column
from launchwise.workloads.near_problems import nearest, nearest_others, with_expected
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    from launchwise.learning.evaluate import Truth

LONGEST = 20
"""Measurements after which a simulated search ends."""

Losses = Mapping[Key, float]
"""Configuration to log(time / best time); inf where it failed."""


@dataclass(frozen=True)
class Expectations:
    """What a model said of test problems.

    Parameters
    ----------
    first
        Its first recommendation of each case, a row each (see
        :func:`launchwise.tables.learning.recommendation_schema`).
    expected
        Candidates of the cases, with the time that it predicts as ``expected_ms``.
    """

    first: pd.DataFrame
    expected: pd.DataFrame


def expectations_of(
    model: str, recommendations: pd.DataFrame, times: pd.DataFrame
) -> Expectations | None:
    """What a model said; None of one that predicts no times.

    Parameters
    ----------
    recommendations, times
        Of all models (see :func:`launchwise.tables.learning.recommendation_schema` and
        :func:`launchwise.tables.learning.predicted_times_schema`).
    """
    if predicted_column(model) not in times:
        return None
    own = recommendations[recommendations["model"] == model]
    expected = times.rename(columns={predicted_column(model): "expected_ms"})
    return Expectations(own[own["rank"] == 1], expected[expected["expected_ms"].notna()])


def searched(
    fold: Fold, truth: Truth, spec: Spec, said: Expectations
) -> Iterator[tuple[Case, int, list[float]]]:
    """Test cases with their numbers, and the best time over the best after 1 to 20 rows.

    0 as long as nothing had a time. Their number is :data:`LONGEST`.
    """
    known, of_fold = _Known(fold, truth, spec), _Said(fold, said, spec)
    numbers = truth.numbers(case.key for case in fold.test)
    for case, number in zip(fold.test, numbers.tolist(), strict=True):
        keys, times = truth.sweep_of(number)
        losses = with_expected(known.losses(case), of_fold.losses(case))
        yield case, number, _shares(keys, times, losses, of_fold.first(case), spec)


class _Known:
    """Losses on the training cases of a fold."""

    def __init__(self, fold: Fold, truth: Truth, spec: Spec) -> None:
        self._truth = truth
        self._columns = spec.problem_columns
        self._found: dict[int, Losses] = {}
        numbers = truth.numbers(case.key for case in fold.train).tolist()
        self._by_gpu: dict[str, dict[tuple[Any, ...], int]] = {}
        for case, number in zip(fold.train, numbers, strict=True):
            if number >= 0 and self._of(number):
                self._by_gpu.setdefault(case.gpu, {})[self._values(case)] = number

    def losses(self, case: Case) -> list[Losses]:
        """Those that a search of a case starts from."""
        asked = self._values(case)
        others = {gpu: each for gpu, each in self._by_gpu.items() if gpu != case.gpu}
        near = nearest(asked, dict.fromkeys(key for each in others.values() for key in each))
        found = [each[near] for each in others.values() if near in each]
        own = self._by_gpu.get(case.gpu, {})
        found += [own[problem] for problem in nearest_others(asked, own)]
        return [self._of(number) for number in found]

    def _values(self, case: Case) -> tuple[Any, ...]:
        return tuple(case.problem[name] for name in self._columns)

    def _of(self, number: int) -> Losses:
        if number not in self._found:
            keys, times = self._truth.sweep_of(number)
            timed = (each if math.isfinite(each) else None for each in times.tolist())
            self._found[number] = losses_of(dict(zip(keys, timed, strict=True)))
        return self._found[number]


class _Said:
    """What a model said of the test cases of a fold."""

    def __init__(self, fold: Fold, said: Expectations, spec: Spec) -> None:
        self._first = _by_case(said.first, fold, spec)
        self._expected = _by_case(said.expected, fold, spec)

    def first(self, case: Case) -> Key:
        """Its first recommendation."""
        _, keys, places = self._first
        return keys[places[case.key][0]]

    def losses(self, case: Case) -> Losses:
        """What it expects of the candidates."""
        rows, keys, places = self._expected
        times = rows["expected_ms"].to_numpy(dtype=float)[places[case.key]].tolist()
        found = [keys[place] for place in places[case.key]]
        return losses_of(dict(zip(found, times, strict=True)))


def _by_case(
    table: pd.DataFrame, fold: Fold, spec: Spec
) -> tuple[pd.DataFrame, list[Key], Mapping[Any, Any]]:
    """Rows of a fold, the key of each, and case to its rows."""
    rows = table[(table["split"] == fold.split) & (table["fold"] == fold.fold)]
    columns = ["gpu", *sorted(spec.problem_columns)]
    places = rows.groupby(columns, sort=False, observed=True).indices
    return rows, keys_of(rows, spec.tunable_columns), places


def _shares(
    keys: Sequence[Key], times: np.ndarray, known: Sequence[Losses], first: Key, spec: Spec
) -> list[float]:
    """Best time over the best so far of a search; it ends at the best, beyond which is nothing."""
    from launchwise.search.transfer_search import TransferSearch

    search = TransferSearch(*described(keys, texts_of(spec), known))
    places = {key: place for place, key in enumerate(keys)}
    fastest, best = float(times.min()), np.inf
    shares: list[float] = []
    while len(shares) < min(LONGEST, len(keys)) and best > fastest:
        # What the model takes and no sweep measured costs a row, too, and tells nothing.
        place = search.propose() if shares else places.get(first)
        if place is not None:
            time_ms = float(times[place])
            search.tell(place, time_ms if np.isfinite(time_ms) else None)
            best = min(best, time_ms)
        shares.append(fastest / best)
    return shares + (shares[-1:] or [0.0]) * (LONGEST - len(shares))
