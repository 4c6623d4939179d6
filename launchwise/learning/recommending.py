"""Recommendations of fitted models and baselines for every test case of a study."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.parallel import in_parallel
from launchwise.base.storage import read_sealed_json
from launchwise.learning.baselines import BASELINES
from launchwise.learning.curves import LONGEST
from launchwise.learning.features import Domain, without_features
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Fold
from launchwise.learning.training import SUMMARY_FILE
from launchwise.learning.training_rows import read_training
from launchwise.tables.learning import GAINS, predicted_column


@dataclass(frozen=True)
class Recommended:
    """Outcome of :func:`recommend`.

    Parameters
    ----------
    recommendations
        As :func:`launchwise.tables.learning.recommendation_schema` declares it.
    times
        Predicted times of every candidate, as
        :func:`launchwise.tables.learning.predicted_times_schema` declares it.
    facts
        Model or baseline to ``seconds_to_train``, ``seconds_to_recommend`` and
        ``cases``, as far as it has them.
    """

    recommendations: pd.DataFrame
    times: pd.DataFrame
    facts: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class _OfFold:
    """Recommendations for the test cases of one fold.

    ``models`` and ``baselines`` hold a table per name, ``seconds`` their durations.
    """

    models: dict[str, pd.DataFrame]
    baselines: dict[str, pd.DataFrame]
    times: pd.DataFrame
    seconds: dict[str, float]


def recommend(
    study: str,
    models: Mapping[str, Path],
    training: str | Path,
    folds: list[Fold],
    domain: Domain,
    processes: int = 1,
) -> Recommended:
    """Recommendations of every model and baseline of a study for every test case.

    Parameters
    ----------
    models
        Model to the folder that holds it fitted.
    training
        File of training rows, which baselines are made from.
    processes
        Folds are handled in so many processes at once.

    Raises
    ------
    UserError
        When a folder holds no model of a fold, or a fold has no training rows.
    """
    known = read_training(training, domain.spec)
    summaries = {name: read_sealed_json(folder / SUMMARY_FILE) for name, folder in models.items()}

    def of_fold(fold: Fold) -> _OfFold:
        rows = known.of_fold(fold.split, fold.fold)
        if rows.empty:
            raise UserError(training, f"{fold.split}/{fold.fold}", "has no training rows")
        # A committee has members that are models of the study, too.
        loaded: dict[str, Recommender] = {}
        fitted = {
            name: recommender_class(summaries[name]["kind"], workload=domain.spec.folder).load(
                folder / fold.split / fold.fold, domain, loaded
            )
            for name, folder in models.items()
        }
        return _recommend_fold(fold, fitted, rows, domain)

    parts = in_parallel(of_fold, folds, processes)
    tables = [part.models[name] for name in models for part in parts]
    tables += [table for part in parts for table in part.baselines.values()]
    both = pd.concat(tables, ignore_index=True).assign(study=study)
    seconds = {
        name: {"seconds_to_recommend": sum(part.seconds[name] for part in parts)}
        for name in (*models, *BASELINES)
    }
    cases = sum(len(fold.test) for fold in folds)
    facts = {
        name: {
            "seconds_to_train": summary["seconds_to_train"],
            **seconds[name],
            "cases": cases,
        }
        for name, summary in summaries.items()
    }
    times = pd.concat([part.times for part in parts], ignore_index=True)
    return Recommended(both, times, {**seconds, **facts})


def _recommend_fold(
    fold: Fold, fitted: Mapping[str, Recommender], rows: pd.DataFrame, domain: Domain
) -> _OfFold:
    """Recommendations of fitted models, and of baselines fitted to training rows."""
    named = {"split": fold.split, "fold": fold.fold}
    started = time.perf_counter()
    choices = domain.keeping_features(domain.choices(fold.test))
    # Every model needs them: each is charged for them, as if it were alone.
    shared_s = time.perf_counter() - started
    candidates = without_features(choices)
    found = _OfFold({}, {}, candidates.assign(**named), {})
    for name, recommender in fitted.items():
        started = time.perf_counter()
        first, predicted_ms = _first(recommender, choices, LONGEST)
        found.seconds[name] = time.perf_counter() - started + shared_s
        found.models[name] = first.assign(**named, model=name)
        if np.isfinite(predicted_ms).any():
            found.times[predicted_column(name)] = predicted_ms
    for name, kind in BASELINES.items():
        recommender = kind(domain).fit(rows)
        started = time.perf_counter()
        first, _ = _first(recommender, candidates, LONGEST)
        found.seconds[name] = time.perf_counter() - started
        found.baselines[name] = first.assign(**named, model=name)
    return found


def _first(
    recommender: Recommender, choices: pd.DataFrame, count: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """The first ``count`` candidates of every case, and the predicted time of all (ms)."""
    ranking = recommender.ranking(choices)
    rows = ranking.first(count)
    first = without_features(choices).iloc[rows].reset_index(drop=True)
    first["rank"] = ranking.rank[rows]
    first["predicted_ms"] = ranking.predicted_ms[rows]
    gains = np.full((len(choices), len(GAINS)), np.nan) if ranking.gains is None else ranking.gains
    first[list(GAINS)] = gains[rows]
    return first, ranking.predicted_ms
