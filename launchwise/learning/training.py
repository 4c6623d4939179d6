"""Fit one model of a study: search and fit for every split and fold, in one folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base import provenance
from launchwise.base.errors import UserError
from launchwise.base.parallel import in_parallel
from launchwise.base.storage import write_json
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.clean import check_training
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.search import held_out_regret, search
from launchwise.learning.splits import ALL, Case, case_numbers
from launchwise.tables.files import read_facts, read_table
from launchwise.tables.learning import training_schema

CROSS_VALIDATION_FOLDS = 10


def read_training(path: str | Path, domain: Domain) -> pd.DataFrame:
    """Training rows of a study, checked against the cases that the file says it was made for.

    Raises
    ------
    UserError
        When the file is broken, or holds a row of a test case or of no known fold.
    """
    rows = read_table(path, training_schema(domain.spec))
    folds = read_facts(path)["folds"]
    known = {(fold["split"], fold["fold"]) for fold in folds}
    held = rows[["split", "fold"]].drop_duplicates().itertuples(index=False, name=None)
    if strange := [pair for pair in held if pair not in known]:
        raise UserError(path, "fold", "/".join(strange[0]) + " is not among the folds of this file")
    for fold in folds:
        of_fold = rows[(rows["split"] == fold["split"]) & (rows["fold"] == fold["fold"])]
        train, test = (_cases(fold[part]) for part in ("train", "test"))
        check_training(of_fold, train, test, domain.spec, str(path))
    return rows


def _cases(plain: list[dict[str, Any]]) -> tuple[Case, ...]:
    return tuple(Case(case["gpu"], case["problem"]) for case in plain)


def train_model(
    name: str,
    entry: ModelEntry,
    domain: Domain,
    training: str | Path,
    options: Search,
    seed: int,
    folder: Path,
    journal: Path | None = None,
    processes: int = 1,
) -> dict[str, Any]:
    """Fit a model on every fold of every split and write all of it.

    Parameters
    ----------
    name
        Name of the model in the settings.
    training
        File of training rows.
    folder
        Where ``<split>/<fold>/`` and ``summary.json`` go; whatever was there is removed.
    journal
        File that keeps the trials of the searches.
    processes
        Folds are fitted in so many processes at once.

    Returns
    -------
    dict
        The summary: hyper-parameters, objective, seconds, features dropped, and the model's own
        record, fold by fold.

    Raises
    ------
    UserError
        When the kind of model or a parameter is unknown or out of range, or there are no rows.
    """
    kind = recommender_class(entry.kind, f"models.{name}", domain.spec.folder)
    shutil.rmtree(folder, ignore_errors=True)
    rows = read_training(training, domain)
    if rows.empty:
        raise UserError(training, "", "holds no training rows")
    asked = {(fold["split"], fold["fold"]): fold["test"] for fold in read_facts(training)["folds"]}

    def fit(part: tuple[tuple[Any, ...], pd.DataFrame]) -> dict[str, Any]:
        (split, fold), of_fold = part
        of_fold = of_fold.drop(columns=["split", "fold"]).reset_index(drop=True)
        with _blaming(name, entry):
            facts = _fit_fold(
                kind, entry, domain, of_fold, options, seed, folder / str(split) / str(fold),
                journal, f"{split}/{fold}", _cases(asked[split, fold]),
            )  # fmt: skip
        return {"split": str(split), "fold": str(fold), **facts}

    parts = list(rows.groupby(["split", "fold"], sort=False))
    folds = in_parallel(fit, parts, processes)
    summary = {
        "model": name,
        "kind": entry.kind,
        "title": entry.title,
        "seed": seed,
        "folds": folds,
        "seconds_to_train": sum(fold["seconds_search"] + fold["seconds_fit"] for fold in folds),
        "features_dropped": sorted({one for fold in folds for one in fold["features_dropped"]}),
        "versions": provenance.versions(),
    }
    write_json(folder / "summary.json", summary)
    return summary


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
    entry: ModelEntry,
    domain: Domain,
    rows: pd.DataFrame,
    options: Search,
    seed: int,
    folder: Path,
    journal: Path | None,
    name: str,
    asked: Sequence[Case] = (),
) -> dict[str, Any]:
    found = search(
        kind,
        domain,
        rows,
        fixed=dict(entry.parameters),
        trials=options.trials if entry.trials is None else entry.trials,
        folds=options.folds,
        max_rows=options.max_rows,
        seed=seed,
        journal=journal,
        name=name,
        objective=options.objective,
    )
    parameters = {"seed": seed, **found.parameters, **entry.parameters}
    started = time.perf_counter()
    recommender = kind(domain, **parameters)
    recommender.expect(asked)
    recommender.fit(rows)
    seconds = time.perf_counter() - started
    recommender.save(folder)
    cases = int(case_numbers(rows, domain.spec).max()) + 1
    # For the published comparison, which has no transfer: ten more fits of every fold would cost.
    scored = kind.cross_validated and folder.name == ALL and cases > 1
    return {
        "rows": len(rows),
        "cases": cases,
        "parameters": recommender.get_params(),
        "trials": found.trials,
        "objective": found.value,
        "seconds_search": found.seconds,
        "seconds_fit": seconds,
        **recommender.summary(),
        **(_cross_validation(recommender, rows, seed) if scored else {}),
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
