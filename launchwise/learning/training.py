"""Fit models of a study: search and fit for every split and fold, a folder for each model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base import provenance
from launchwise.base.errors import UserError
from launchwise.base.parallel import in_parallel
from launchwise.base.storage import read_json, write_json
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.fits import ROW, Fits
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.search import held_out_regret, search
from launchwise.learning.splits import ALL, case_numbers
from launchwise.learning.training_rows import TrainingFold, read_training

SUMMARY_FILE = "summary.json"
CROSS_VALIDATION_FOLDS = 10


@dataclass(frozen=True)
class Asked:
    """A model that is to be trained.

    Parameters
    ----------
    entry
        Of the settings.
    folder
        Where ``<split>/<fold>/`` and ``summary.json`` go; whatever was there is removed.
    made_from
        Digest of all that decides what is fitted; kept in the summary.
    journal
        File that keeps the trials of its search.
    """

    entry: ModelEntry
    folder: Path
    made_from: str = ""
    journal: Path | None = None


def train_models(
    asked: Mapping[str, Asked],
    domain: Domain,
    training: str | Path,
    options: Search,
    seed: int,
    processes: int = 1,
) -> dict[str, dict[str, Any]]:
    """Fit models on every fold of every split and write all of it.

    What several models need of a fold is fitted once (see :class:`Fits`).

    Parameters
    ----------
    asked
        Name of a model in the settings to what is asked of it.
    training
        File of training rows.
    processes
        Folds are fitted in so many processes at once.

    Returns
    -------
    dict
        The summary of each model: hyper-parameters, objective, seconds, features dropped, and the
        model's own record, fold by fold.

    Raises
    ------
    UserError
        When the kind of model or a parameter is unknown or out of range, or there are no rows.
    """
    folder = domain.spec.folder
    kinds = {
        name: recommender_class(one.entry.kind, f"models.{name}", folder)
        for name, one in asked.items()
    }
    for one in asked.values():
        shutil.rmtree(one.folder, ignore_errors=True)
    known = read_training(training, domain.spec)
    if known.rows.empty:
        raise UserError(training, "", "holds no training rows")

    def fit(fold: TrainingFold) -> dict[str, dict[str, Any]]:
        rows = domain.keeping_features(known.of_fold(fold.split, fold.fold))
        rows[ROW] = np.arange(len(rows))
        fits = Fits()
        found = {}
        for name, one in asked.items():
            with _blaming(name, one.entry):
                found[name] = _fit_fold(kinds[name], one, domain, rows, options, seed, fold, fits)
        return found

    folds = in_parallel(fit, list(known.folds), processes)
    summaries = {}
    for name, one in asked.items():
        own = [
            {"split": fold.split, "fold": fold.fold, **facts[name]}
            for fold, facts in zip(known.folds, folds, strict=True)
        ]
        summaries[name] = {
            "model": name,
            "kind": one.entry.kind,
            "seed": seed,
            "folds": own,
            "seconds_to_train": sum(each["seconds_search"] + each["seconds_fit"] for each in own),
            "features_dropped": sorted({one for each in own for one in each["features_dropped"]}),
            "versions": provenance.versions(),
            "made_from": one.made_from,
        }
        write_json(one.folder / SUMMARY_FILE, summaries[name])
    return summaries


def stale(asked: Mapping[str, Asked]) -> dict[str, Asked]:
    """The models that are missing or were made from something else; all if there are none.

    Where nothing is missing or old, somebody asked for all of them anew.
    """
    found = {
        name: one
        for name, one in asked.items()
        if not (one.folder / SUMMARY_FILE).is_file()
        or read_json(one.folder / SUMMARY_FILE).get("made_from") != one.made_from
    }
    return found or dict(asked)


class _blaming:
    """Turn a library's error about a fixed hyper-parameter into a UserError."""

    def __init__(self, name: str, entry: ModelEntry) -> None:
        self._key = f"models.{name}.parameters"
        self._entry = entry

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, UserError) and error.key.startswith("models.parameters"):
            key = error.key.replace("models.parameters", self._key, 1)
            raise UserError(error.where, key, error.message) from error
        wrong = isinstance(error, ValueError | TypeError) or type(error).__name__.endswith("Error")
        if error is not None and wrong and self._entry.parameters:
            if isinstance(error, UserError | OSError):
                return
            first = str(error).strip().splitlines()
            raise UserError("config.yaml", self._key, first[0] if first else repr(error)) from error


def _fit_fold(
    kind: type[Recommender],
    one: Asked,
    domain: Domain,
    rows: pd.DataFrame,
    options: Search,
    seed: int,
    fold: TrainingFold,
    fits: Fits,
) -> dict[str, Any]:
    entry = one.entry
    found = search(
        kind,
        domain,
        rows,
        fixed=dict(entry.parameters),
        trials=options.trials if entry.trials is None else entry.trials,
        folds=options.folds,
        max_rows=options.max_rows,
        seed=seed,
        journal=one.journal,
        name=f"{fold.split}/{fold.fold}",
        objective=options.objective,
    )
    parameters = {"seed": seed, **found.parameters, **entry.parameters}
    recommender = kind(domain, **parameters)
    recommender.expect(fold.test)
    recommender.share(fits)
    fitted, seconds = fits.fit(recommender, rows)
    fits.save(fitted, one.folder / fold.split / fold.fold)
    cases = int(case_numbers(rows, domain.spec).max()) + 1
    # For the published comparison, which has no transfer: ten more fits of every fold would cost.
    scored = kind.cross_validated and fold.fold == ALL and cases > 1
    return {
        "rows": len(rows),
        "cases": cases,
        "parameters": fitted.get_params(),
        "trials": found.trials,
        "objective": found.value,
        "seconds_search": found.seconds,
        "seconds_fit": seconds,
        **fitted.summary(),
        **(_cross_validation(fitted, rows, seed) if scored else {}),
    }


def _cross_validation(recommender: Recommender, rows: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Ten-fold score: share of held-out cases whose recommendation is the best or near it."""
    fresh = type(recommender)(recommender.domain, **recommender.get_params())
    regret = held_out_regret(fresh, rows, CROSS_VALIDATION_FOLDS, seed, judged=1)
    near = np.log1p(recommender.domain.near_best_percent / 100)
    return {
        "cross_validation": {
            "folds": min(CROSS_VALIDATION_FOLDS, len(regret)),
            "accuracy": float((regret <= 1e-12).mean()),
            "accuracy_near_best": float((regret <= near + 1e-12).mean()),
            "fraction": float(np.exp(-regret.mean())),
        }
    }
