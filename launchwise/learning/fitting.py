"""Fits one model to the training rows of one fold, with the facts that its file keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.search import held_out_regret, search
from launchwise.learning.splits import Fold, case_numbers

CROSS_VALIDATION_FOLDS = 10

Facts = dict[str, Any]


def fitted_to(
    rows: pd.DataFrame,
    fold: Fold,
    name: str,
    entry: ModelEntry,
    domain: Domain,
    options: Search,
    seed: int,
    journal: Path | None = None,
    blamed: tuple[str, ...] = (),
) -> tuple[Recommender, Facts]:
    """A model of a study that is fitted to the rows of a fold, and facts of it.

    ``rows``: with the features of the domain.
    ``name``, ``entry``: of the settings.
    ``options``, ``seed``, ``journal``: search of hyper-parameters, its seed, and the file of its
        trials.
    ``blamed``: file of the settings that holds the hyper-parameters, and their key there.
    Raises UserError when the model cannot be fitted.
    """
    kind = recommender_class(entry.kind, f"models.{name}", domain.spec.folder)
    with blaming(name, entry, *blamed):
        searched = search(
            kind,
            domain,
            rows,
            fixed=dict(entry.parameters),
            trials=options.trials if entry.trials is None else entry.trials,
            folds=options.folds,
            max_rows=options.max_rows,
            seed=seed,
            journal=journal,
            name=f"{fold.split}/{fold.fold}",
            objective=options.objective,
        )
        model = kind(domain, **{"seed": seed, **searched.parameters, **entry.parameters})
        started = time.perf_counter()
        model.fit(rows)
        seconds = time.perf_counter() - started
    return model, {
        "rows": len(rows),
        "cases": int(case_numbers(rows, domain.spec).max()) + 1,
        "parameters": model.get_params(),
        "trials": searched.trials,
        "objective": searched.value,
        "seconds_search": searched.seconds,
        "seconds_fit": seconds,
        **model.summary(),
    }


def cross_validation(recommender: Recommender, rows: pd.DataFrame, seed: int) -> Facts:
    """Ten-fold score: share of held-out cases whose recommendation is the best or near it.

    ``rows``: of several cases, with the features of the domain.
    """
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


@contextmanager
def blaming(name: str, entry: ModelEntry, where: str = "", key: str = "") -> Iterator[None]:
    """Turn a library's error about a fixed hyper-parameter into a UserError.

    ``where``, ``key``: file of the settings that holds the hyper-parameters, and their key there.
    """
    where, key = where or "the settings", key or f"models.{name}.parameters"
    try:
        yield
    except UserError as error:
        if not error.key.startswith("models.parameters"):
            raise
        below = error.key.removeprefix("models.parameters")
        raise UserError(where, f"{key}{below}", error.message) from error
    except OSError:
        raise
    except Exception as error:
        if not entry.parameters:
            raise
        first = str(error).strip().splitlines()
        raise UserError(where, key, first[0] if first else repr(error)) from error
