"""Learning curves: quality after measuring the first k recommendations, by a search, at random.

The search of ``recommend --measure`` is simulated on what was measured of test problems. It
measures the answer of the study's model first. Then it starts from what the model expects of all
candidates, as much as from what the training problems of the fold say: other GPUs' rows of the
problem, or of the nearest that they measured, and this GPU's rows of its nearest problems.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning import merit
from launchwise.learning.row_arrays import keys_of
from launchwise.learning.splits import Case, Fold
from launchwise.learning.truth import LONGEST, Learnt, Truth
from launchwise.search.candidates import Key, described, losses_of, texts_of
from launchwise.workloads.near_problems import nearest, nearest_others, with_expected
from launchwise.workloads.spec import Spec

SEARCHED = 20  # Measurements after which a simulated search ends
MOST_CASES = 6  # Test cases of each GPU of a fold on which a search is simulated
Losses = Mapping[Key, float]  # Configuration to log(time / best time); inf where it failed


def searched(
    fold: Fold, truth: Truth, spec: Spec, learnt: Learnt, model: str
) -> Iterator[tuple[Case, int, list[float]]]:
    """Test cases with their numbers, and the best time over the best after 1 to 20 rows. 0 as long
    as nothing had a time. Their number is :data:`SEARCHED`. Of each GPU at most :data:`MOST_CASES`
    are searched, evenly apart in their order. ``learnt``, ``model``: what was said of the
    candidates, and by which method the search begins."""
    known, of_fold = Known(fold, truth, spec), _Said(fold, learnt, model, spec)
    cases = _spread(fold.test)
    numbers = truth.numbers(case.key for case in cases)
    for case, number in zip(cases, numbers.tolist(), strict=True):
        keys, times = truth.sweep_of(number)
        losses = with_expected(known.losses(case), of_fold.losses(case))
        yield case, number, _shares(keys, times, losses, of_fold.first(case), spec)


def _spread(cases: Sequence[Case]) -> list[Case]:
    """At most :data:`MOST_CASES` cases of each GPU, evenly apart in their order."""
    by_gpu: dict[str, list[int]] = {}
    for place, case in enumerate(cases):
        by_gpu.setdefault(case.gpu, []).append(place)
    kept = [
        places[step]
        for places in by_gpu.values()
        for step in np.linspace(0, len(places) - 1, min(MOST_CASES, len(places))).astype(int)
    ]
    return [cases[place] for place in sorted(kept)]


class Known:
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

    def __init__(self, fold: Fold, learnt: Learnt, model: str, spec: Spec) -> None:
        table, own = learnt.candidates, learnt.said[model]
        mine = ((table["split"] == fold.split) & (table["fold"] == fold.fold)).to_numpy()
        rows = table[mine]
        self._losses, self._rank = learnt.losses(model)[mine], own["rank"].to_numpy()[mine]
        self._keys = keys_of(rows, spec.tunable_columns)
        columns = ["gpu", *sorted(spec.problem_columns)]
        self._places = (
            rows.reset_index(drop=True).groupby(columns, sort=False, observed=True).indices
        )

    def first(self, case: Case) -> Key:
        places = self._places[case.key]
        return self._keys[places[int(np.argmax(self._rank[places] == 1))]]

    def losses(self, case: Case) -> Losses:
        """What it expects of the candidates."""
        places = self._places[case.key]
        times = np.exp(self._losses[places]).tolist()
        return losses_of(dict(zip([self._keys[place] for place in places], times, strict=True)))


def _shares(
    keys: Sequence[Key], times: np.ndarray, known: Sequence[Losses], first: Key, spec: Spec
) -> list[float]:
    """Best time over the best so far of a search; it ends at the best, beyond which is nothing."""
    from launchwise.search.transfer_search import TransferSearch

    search = TransferSearch(*described(keys, texts_of(spec), known))
    places = {key: place for place, key in enumerate(keys)}
    fastest, best = float(times.min()), np.inf
    shares: list[float] = []
    while len(shares) < min(SEARCHED, len(keys)) and best > fastest:
        # What the model takes and no sweep measured costs a row, too, and tells nothing.
        place = search.propose() if shares else places.get(first)
        if place is not None:
            time_ms = float(times[place])
            search.tell(place, time_ms if np.isfinite(time_ms) else None)
            best = min(best, time_ms)
        shares.append(fastest / best)
    return shares + (shares[-1:] or [0.0]) * (SEARCHED - len(shares))


RANDOM = "random"  # Model of a curve that measures in random order: an expectation

SEARCH = "search"
"""Model of a curve that measures what a search proposes (:mod:`launchwise.learning.curves`)."""

ALL_GPUS = "all"  # Name of all GPUs together in the evaluation

KEYS = ["model", "split", "fold", "gpu", "case"]


def reached(learnt: Learnt, truth: Truth) -> pd.DataFrame:
    """Best time over the best of the first k recommendations of each method, for k = 1 to 50.
    Returns one row per (model, split, fold, gpu, case) and a column per k: 0 where none of the
    first k has a time. Where fewer than k were recommended, what all of them reach."""
    parts = [_reached(learnt.recommended(method), truth) for method in learnt.said]
    return pd.concat(parts, ignore_index=True)


def _reached(recommended: pd.DataFrame, truth: Truth) -> pd.DataFrame:
    table = truth.beside(recommended.drop(columns="predicted_ms"))
    table["share"] = (table["best_ms"] / table["time_ms"]).fillna(0.0)
    found = table.pivot(index=KEYS, columns="rank", values="share")
    found = found.reindex(columns=range(1, LONGEST + 1)).fillna(0.0).cummax(axis=1)
    return found.reset_index()


def learning_curves(
    shares: pd.DataFrame,
    learnt: Learnt,
    folds: Sequence[Fold],
    truth: Truth,
    spec: Spec,
    answering: str | None = None,
) -> pd.DataFrame:
    """Quality of each method against the number of measurements.

    Returns a table as :func:`launchwise.tables.learning.curves_schema` declares it, without
    ``study``: per split, GPU (and ``all``), model and number of measurements the geometric mean of
    best time over best time so far, and its 5th percentile over the test problems. :data:`RANDOM`
    is the mean over all orders of the measured configurations; :data:`SEARCH`, up to
    :data:`SEARCHED` measurements, knows the training problems of its fold alone. ``shares``,
    ``learnt``: rows of :func:`reached`, and what models and simple rules say of the test
    candidates. ``answering``: model that a search begins with; no search when left out, or where it
    predicts no times.
    """
    methods = [shares, _random(folds, truth)]
    if answering in learnt.predicting:
        methods.append(_search(folds, truth, spec, learnt, answering))
    shares = pd.concat(methods, ignore_index=True)
    counts = list(range(1, LONGEST + 1))
    pieces = []
    for (split, model), rows in shares.groupby(["split", "model"], sort=False):
        parts = {ALL_GPUS: rows, **dict(iter(rows.groupby("gpu", sort=False)))}
        for gpu, part in parts.items():
            values = part[counts].dropna(axis=1, how="all").to_numpy(dtype=float)
            pieces.append(
                pd.DataFrame(
                    {
                        "split": split,
                        "gpu": gpu,
                        "model": model,
                        "measured": counts[: values.shape[1]],
                        "problems": len(part),
                        "fraction": [merit.geometric_mean(column) for column in values.T],
                        "fraction_p5": np.quantile(values, 0.05, axis=0),
                    }
                )
            )
    return pd.concat(pieces, ignore_index=True)


def _random(folds: Sequence[Fold], truth: Truth) -> pd.DataFrame:
    """Rows as of :func:`reached`: the expected share of measurements in random order."""
    rows = [
        (RANDOM, fold.split, fold.fold, case.gpu, number, *truth.random_shares(number, LONGEST))
        for fold in folds
        for case, number in zip(
            fold.test, truth.numbers(case.key for case in fold.test).tolist(), strict=True
        )
    ]
    return pd.DataFrame(rows, columns=[*KEYS, *range(1, LONGEST + 1)])


def _search(
    folds: Sequence[Fold], truth: Truth, spec: Spec, learnt: Learnt, answering: str
) -> pd.DataFrame:
    """Rows as of :func:`reached`, of a search per test problem; with fewer columns."""
    rows = [
        (SEARCH, fold.split, fold.fold, case.gpu, number, *shares)
        for fold in folds
        for case, number, shares in searched(fold, truth, spec, learnt, answering)
    ]
    return pd.DataFrame(rows, columns=[*KEYS, *range(1, SEARCHED + 1)])
