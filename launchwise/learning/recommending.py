"""Recommendations of fitted models and baselines for every test case of a study."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Fold
from launchwise.learning.training import read_training


def recommend_model(
    study: str, folder: Path, folds: list[Fold], domain: Domain
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Recommendations of a fitted model.

    Parameters
    ----------
    folder
        What :func:`launchwise.learning.training.train_model` wrote.

    Returns
    -------
    tuple
        A table as :func:`recommendation_schema` declares it, and facts: seconds
        to train and to recommend.

    Raises
    ------
    UserError
        When the folder holds no model of a fold.
    """
    summary = read_json(folder / "summary.json")
    kind = recommender_class(summary["kind"], workload=domain.spec.folder)
    tables, seconds = [], []
    for fold in folds:
        recommender = kind.load(folder / fold.split / fold.fold, domain)
        started = time.perf_counter()
        table = recommender.rank(domain.choices(fold.test))
        seconds.append(time.perf_counter() - started)
        tables.append(table.assign(split=fold.split, fold=fold.fold))
    table = pd.concat(tables, ignore_index=True)
    facts = {
        "title": summary["title"],
        "seconds_to_train": summary["seconds_to_train"],
        "seconds_to_recommend": sum(seconds),
        "cases": int((table["rank"] == 1).sum()),
    }
    return table.assign(study=study, model=summary["model"]), facts


def recommend_baselines(
    study: str, training: str | Path, folds: list[Fold], domain: Domain
) -> tuple[pd.DataFrame, dict[str, float]]:
    """First recommendation of every baseline for every test case, and the seconds it took.

    Parameters
    ----------
    training
        File of training rows.

    Raises
    ------
    UserError
        When a fold has no training rows.
    """
    known = dict(list(read_training(training, domain).groupby(["split", "fold"])))
    tables = []
    seconds = dict.fromkeys(BASELINES, 0.0)
    for fold in folds:
        rows = known.get((fold.split, fold.fold))
        if rows is None:
            raise UserError(training, f"{fold.split}/{fold.fold}", "has no training rows")
        rows = rows.reset_index(drop=True)
        choices = domain.choices(fold.test)
        for name, kind in BASELINES.items():
            recommender = kind(domain).fit(rows)
            started = time.perf_counter()
            table = recommender.rank(choices)
            seconds[name] += time.perf_counter() - started
            first = table[table["rank"] == 1]
            tables.append(first.assign(split=fold.split, fold=fold.fold, model=name))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(study=study), seconds
