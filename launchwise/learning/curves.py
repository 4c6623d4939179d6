"""Learning curves: quality after measuring the first k recommendations, by a search, at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from launchwise.learning import merit, searching
from launchwise.learning.evaluate import Truth
from launchwise.learning.learnt import LONGEST, Learnt
from launchwise.learning.searching import searched
from launchwise.learning.splits import Fold
from launchwise.workloads.spec import Spec

RANDOM = "random"
"""Model of a curve that measures in random order: an expectation."""

SEARCH = "search"
"""Model of a curve that measures what a search proposes (:mod:`launchwise.learning.searching`)."""

ALL_GPUS = "all"
"""Name of all GPUs together in the evaluation."""

KEYS = ["model", "split", "fold", "gpu", "case"]


def reached(learnt: Learnt, truth: Truth) -> pd.DataFrame:
    """Best time over the best of the first k recommendations of each method, for k = 1 to 50.

    Returns one row per (model, split, fold, gpu, case) and a column per k: 0 where none of the
    first k has a time. Where fewer than k were recommended, what all of them reach.
    """
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
    :data:`launchwise.learning.searching.LONGEST` measurements, knows the training problems of its
    fold alone.

    Parameters
    ----------
    shares, learnt
        Rows of :func:`reached`, and what models and simple rules say of the test candidates.
    answering
        Model that a search begins with; no search when left out, or where it predicts no times.
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
    return pd.DataFrame(rows, columns=[*KEYS, *range(1, searching.LONGEST + 1)])
