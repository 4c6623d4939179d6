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

import hashlib
import inspect
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from launchwise.base.storage import digest, own_place
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.row_arrays import regrets
from launchwise.learning.splits import case_numbers

REGRETS = "regrets"  # Trial attribute with the objective of each held-out problem
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
        errors = np.abs(recommender.predict(asked) / asked["time_ms"].to_numpy(dtype=float) - 1)
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
    """Search hyper-parameters; go on where an earlier search of the same data and space ended.

    A search that was stopped and goes on finds what it would have found in one go.

    ``kind``: class of the recommender; its ``suggest`` is the search space, its defaults the first
        trial.
    ``rows``: training rows of one fold.
    ``fixed``: hyper-parameters that are not searched.
    ``trials``: trials in all, earlier ones counted; of a longer earlier search the first ones are
        used, so that the outcome depends on the settings and not on history.
    ``folds``, ``max_rows``: grouped folds, and rows that a trial may learn from.
    ``journal``: file that keeps trials; in memory when None. Searches at the same time may share
        it.
    ``name``: what is searched (split and fold): part of the journal's key.
    ``objective``: ``regret``; or ``time_error`` (:func:`held_out_time_error`), by which the best
        trial wins. A kind that predicts no time is judged by regret.
    """
    started = time.perf_counter()
    few = thinned(rows, domain, max_rows, seed)
    if not trials or not _searched(kind) or case_numbers(few, domain.spec).max(initial=0) < 1:
        return Found({}, None, 0, time.perf_counter() - started)
    tag = REGRETS if objective == "regret" else objective
    key = digest([tag, name, kind.__name__, fixed, folds, seed, _space(kind), _content(few)])
    study = _study(f"{name} {key}", journal, _defaults(kind, fixed))

    def judged(trial: Any) -> float:
        recommender = kind(domain, **{**kind.suggest(trial), **fixed, "seed": seed})
        values = _held_out(recommender, few, folds, seed, objective)
        trial.set_user_attr(REGRETS, values.tolist())
        return float(values.mean())

    complete = _completed(study, judged, trials, seed)
    values = [np.array(trial.user_attrs[REGRETS]) for trial in complete]
    chosen = choose(values) if objective == "regret" else best_of(values)
    # The first has the defaults.
    parameters = complete[chosen].params if chosen else {}
    searched = {name: value for name, value in parameters.items() if name not in fixed}
    seconds = time.perf_counter() - started
    return Found(searched, float(complete[chosen].value), len(complete), seconds)


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


def _study(name: str, journal: Path | None, first: dict[str, Any]) -> Any:
    """The study of Optuna in a journal, or in memory; a new one begins with the trial ``first``."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.InMemoryStorage() if journal is None else journal_storage(journal)
    study = optuna.create_study(study_name=name, storage=storage, load_if_exists=True)
    if not _complete(study):
        study.enqueue_trial(first)
    return study


def _completed(study: Any, judged: Callable[[Any], float], trials: int, seed: int) -> list[Any]:
    """The first ``trials`` complete trials, after those that are missing ran."""
    import optuna

    for finished in range(len(_complete(study)), trials):
        # A sampler of its own for every trial: what it draws depends on the trials before it, not
        # on how often the search was stopped.
        study.sampler = optuna.samplers.TPESampler(seed=seed + finished)
        study.optimize(judged, n_trials=1)
    return _complete(study)[:trials]


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


def _complete(study: Any) -> list[Any]:
    from optuna.trial import TrialState

    return sorted(study.get_trials(states=[TrialState.COMPLETE]), key=lambda trial: trial.number)


def journal_storage(path: Path) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    own_place(path).parent.mkdir(parents=True, exist_ok=True)
    # A killed search leaves its lock behind: an append takes milliseconds, so 5 s is long enough.
    lock = JournalFileOpenLock(str(path), grace_period=5)
    lock.acquire()  # Searches of other folds may be writing to the same journal.
    try:
        mend(path)
        for line in path.read_bytes().splitlines() if path.is_file() else ():
            json.loads(line)  # Optuna minds a damaged last line only once it has written after it.
        JournalStorage(JournalFileBackend(str(path)))
    except (ValueError, KeyError):
        # Not a journal, or damaged inside: keep it for whoever wonders, and start anew.
        path.rename(path.with_suffix(".damaged"))
    finally:
        lock.release()
    return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


def mend(path: Path) -> None:
    """Cut off an unfinished last line, left by a kill or a full disk."""
    if not path.is_file():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with open(path, "rb+") as file:
            file.truncate(whole)


def _searched(kind: type[Recommender]) -> bool:
    """Whether the kind has a search space: without one every trial would be the defaults."""
    own = next(one for one in kind.__mro__ if "suggest" in vars(one)) is not Recommender
    return own or any(field.json_schema_extra for field in kind.Parameters.model_fields.values())


def _space(kind: type[Recommender]) -> str:
    """Source code of the search space: an edit starts a new search."""
    return inspect.getsource(kind.suggest) + repr(kind.Parameters.model_fields)


def _content(rows: pd.DataFrame) -> str:
    hashes = pd.util.hash_pandas_object(rows, index=False).to_numpy()
    return hashlib.sha256(hashes.tobytes()).hexdigest()


def _defaults(kind: type[Recommender], fixed: dict[str, Any]) -> dict[str, Any]:
    defaults = kind.Parameters().model_dump(exclude={*fixed, "seed"})
    return dict(defaults)
