"""Hyper-parameter search with Optuna; the objective is the regret of the recommendations.

The objective is the mean log(time / best) of the first :data:`JUDGED_RECOMMENDATIONS`
recommendations for held-out problems. Folds keep the rows of a (GPU, problem) together: otherwise a
model could memorise the problem.

A few dozen problems make a noisy objective, and the best of many noisy figures is a lucky one. So
the defaults, which are the first trial, stay unless the best trial beats them clearly: by more than
one standard error of the difference, problem by problem (the one-standard-error rule of Breiman et
al., 1984, on paired differences).

Published searches minimise the error of predicted times instead and take the best trial: the
objective ``time_error``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import digest, read_json_object, write_json
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.row_arrays import regrets
from launchwise.learning.splits import case_numbers

Objective = Literal["regret", "time_error"]  # Objectives of a search

JUDGED_RECOMMENDATIONS = 3
"""Recommendations judged per problem: the first alone makes a noisy objective."""


@dataclass(frozen=True)
class Found:
    """Outcome of a search. ``parameters`` is empty where the defaults stay; ``value`` is the
    objective (0 is perfect, .03 is 3 % slower than the best, or times that are 3 % off), None when
    nothing was searched."""

    parameters: dict[str, Any]
    value: float | None
    trials: int
    seconds: float


def grouped_folds(
    groups: np.ndarray, folds: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers of training and held-out rows per fold; each group is on one side only.

    ``groups``: number of each row's group from 0, none left out: int64, shape (rows,); ``folds``:
    at most as many as there are groups. Raises ValueError when there are fewer than 2 groups.
    """
    count = int(groups.max()) + 1 if len(groups) else 0
    if count < 2:
        raise ValueError("grouped folds need at least 2 groups")
    folds = min(folds, count)
    # Dealt like cards, so that folds hold as many groups as each other, give or take one.
    dealt = np.empty(count, dtype=np.int64)
    dealt[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    for fold in range(folds):
        held = dealt[groups] == fold
        yield np.flatnonzero(~held), np.flatnonzero(held)


def thinned(rows: pd.DataFrame, domain: Domain, most: int, seed: int) -> pd.DataFrame:
    """Whole cases of ``rows``, drawn at random until the next would exceed ``most`` rows."""
    codes = case_numbers(rows, domain.spec)
    sizes = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(len(sizes))
    # Two cases are the fewest that folds can part, however large they are.
    taken = order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), most, side="right")))]
    return rows[np.isin(codes, taken)].reset_index(drop=True)


def held_out_regret(
    recommender: Recommender,
    rows: pd.DataFrame,
    folds: int,
    seed: int,
    judged: int = JUDGED_RECOMMENDATIONS,
) -> np.ndarray:
    """Mean regret of the first recommendations for each case, from folds that left it out. Returns
    log(time / best), float64, shape (cases,), cases fold by fold."""
    regret = regrets(rows, recommender.domain.spec)
    found = []
    for held, asked, codes in _held_out_rows(recommender, rows, folds, seed):
        first = recommender.ranking(asked).first(judged)
        totals = np.bincount(codes[first], weights=regret[held][first])
        found.append(totals / np.bincount(codes[first]))
    return np.concatenate(found)


def held_out_time_error(
    recommender: Recommender, rows: pd.DataFrame, folds: int, seed: int
) -> np.ndarray:
    """Mean |predicted / measured - 1| over the rows of each case, from folds that left it out.
    Returns float64, shape (cases,), cases fold by fold; NaN where no time is predicted."""
    found = []
    for _, asked, codes in _held_out_rows(recommender, rows, folds, seed):
        predicted_ms = recommender.judge(asked).predicted_ms
        errors = np.abs(predicted_ms / asked["time_ms"].to_numpy(dtype=float) - 1)
        found.append(np.bincount(codes, weights=errors) / np.bincount(codes))
    return np.concatenate(found)


def _held_out_rows(
    recommender: Recommender, rows: pd.DataFrame, folds: int, seed: int
) -> Iterator[tuple[np.ndarray, pd.DataFrame, np.ndarray]]:
    """Fit to all folds but one, in turn; places of its rows, these, and numbers of their cases."""
    groups = case_numbers(rows, recommender.domain.spec)
    rows = recommender.domain.keeping_features(rows)
    for train, held in grouped_folds(groups, folds, seed):
        recommender.fit(rows.iloc[train].reset_index(drop=True))
        asked = rows.iloc[held].reset_index(drop=True)
        yield held, asked, pd.factorize(groups[held])[0]


def search(
    kind: type[Recommender],
    domain: Domain,
    rows: pd.DataFrame,
    *,
    fixed: dict[str, Any],
    trials: int,
    folds: int,
    max_rows: int,
    seed: int,
    journal: Path | None = None,
    name: str = "search",
    objective: Objective = "regret",
) -> Found:
    """Search hyper-parameters; trials of an earlier search of the same data and space cost nothing.

    A search that was stopped and goes on finds what it would have found in one go.

    ``kind``: class of the recommender; its ``Parameters`` say what is tried, their defaults first.
    ``rows``: training rows of one fold.
    ``fixed``: hyper-parameters that are not searched.
    ``trials``: trials in all, earlier ones counted.
    ``folds``, ``max_rows``: grouped folds, and rows that a trial may learn from.
    ``journal``: folder that keeps the values of trials, a file per search; in memory when None.
    ``name``: what is searched (split and fold): part of a search's key.
    ``objective``: ``regret``; or ``time_error`` (:func:`held_out_time_error`), by which the best
        trial wins. A kind that predicts no time is judged by regret.
    """
    started = time.perf_counter()
    few = thinned(rows, domain, max_rows, seed)
    space = kind.Parameters.model_fields
    is_searched = any(field.json_schema_extra for field in space.values())
    if not trials or not is_searched or case_numbers(few, domain.spec).max(initial=0) < 1:
        return Found({}, None, 0, time.perf_counter() - started)
    import optuna

    content = pd.util.hash_pandas_object(few, index=False).to_numpy()
    # An edit of the search space starts a new search.
    key = [name, kind.__name__, fixed, folds, seed, objective, repr(space), content.tolist()]
    path = None if journal is None else journal / f"{digest(key)}.json"
    known: dict[str, list[float]] = {}
    if path is not None:
        with contextlib.suppress(UserError):
            known = read_json_object(path)
    values: list[np.ndarray] = []

    def judged(trial: optuna.Trial) -> float:
        given = {**kind.Parameters.suggested(trial), **fixed, "seed": seed}
        if (mark := digest(given)) not in known:
            known[mark] = _held_out(kind(domain, **given), few, folds, seed, objective).tolist()
            if path is not None:
                write_json(path, known)
        values.append(np.array(known[mark]))
        return float(values[-1].mean())

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study()
    study.enqueue_trial(kind.Parameters().model_dump(exclude={*fixed, "seed"}))
    for number in range(trials):
        # A sampler of its own for every trial: what it draws depends on the trials before it alone.
        study.sampler = optuna.samplers.TPESampler(seed=seed + number)
        study.optimize(judged, n_trials=1)
    chosen = choose(values) if objective == "regret" else best_of(values)
    # The first has the defaults.
    parameters = study.trials[chosen].params if chosen else {}
    searched = {name: value for name, value in parameters.items() if name not in fixed}
    seconds = time.perf_counter() - started
    return Found(searched, float(values[chosen].mean()), trials, seconds)


def _held_out(
    recommender: Recommender, rows: pd.DataFrame, folds: int, seed: int, objective: Objective
) -> np.ndarray:
    """Values of the objective per group held out; regrets of a kind that predicts no time."""
    values = np.array([np.nan])
    if objective == "time_error":
        values = held_out_time_error(recommender, rows, folds, seed)
    if np.isnan(values).any():
        values = held_out_regret(recommender, rows, folds, seed)
    return values


def choose(trials: list[np.ndarray]) -> int:
    """Choose the best trial if it is clearly better than the first, else the first.

    ``trials``: regret of each held-out problem, shape (problems,), the same problems in every
    trial; the first trial is the defaults.
    """
    best = best_of(trials)
    gain = trials[0] - trials[best]
    if len(gain) < 2:
        return 0
    standard_error = gain.std(ddof=1) / np.sqrt(len(gain))
    return best if gain.mean() > standard_error else 0


def best_of(trials: list[np.ndarray]) -> int:
    """Number of the trial with the smallest mean, the first of equal ones."""
    return min(range(len(trials)), key=lambda number: (trials[number].mean(), number))
