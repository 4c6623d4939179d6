"""Nearest neighbours as the paper fits them: scikit-learn's shuffled split and its grid search."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .optima import voted

SPLITS = 10  # shuffled splits: a single one of a dozen test sizes says little

TEST_SHARE, FOLDS = 0.25, 3
MOST_TRIES = 200  # seeds that are tried for splits whose training sizes have every choice


@dataclass(frozen=True)
class PublishedSplit:
    """Accuracies (0..1) over several splits; ``null`` is that of the most frequent choice.

    ``neighbours`` are the numbers that the grid search found, ascending, each once.
    """

    splits: int
    mean: float
    least: float
    largest: float
    null: float
    neighbours: tuple[int, ...]


def split(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the training and of the test part, as ``train_test_split`` of scikit-learn draws.

    Hundreds of seeds may be tried, and its checks of arrays take a hundred times as long.
    """
    tested = math.ceil(TEST_SHARE * count)
    drawn = np.random.RandomState(seed).permutation(count)
    return drawn[tested:], drawn[:tested]


def as_published(
    optima: pd.DataFrame, seed: int, size: str = "n", choice: str = "m"
) -> PublishedSplit | None:
    """Split sizes 3 : 1 at random, search the number of neighbours by cross-validation, and test.

    Sizes are taken as they are, not by their logarithm, and every choice is in the training
    part, as in the paper; where no split has that, there is none.

    ``optima``: one row per size, observed or corrected.
    ``seed``: of the first split; the next ones count on.
    """
    places = optima[size].to_numpy(dtype=float)
    _, choices = np.unique(optima[choice].to_numpy(), return_inverse=True)
    classes = choices.max() + 1
    found = []
    for number in range(MOST_TRIES):
        train, test = split(len(places), seed + number)
        known, wanted = choices[train], choices[test]
        counts = np.bincount(known, minlength=classes)
        if not counts.all() or len(known) < 2 * FOLDS:
            continue
        most = min(classes, len(known) * (FOLDS - 1) // FOLDS)
        best = _searched(places[train], known, most, seed + number)
        answers = voted(places[train], known, places[test])[:, best - 1]
        null = float((counts.argmax() == wanted).mean())
        found.append((float((answers == wanted).mean()), null, best))
        if len(found) == SPLITS:
            break
    if not found:
        return None
    accuracies, nulls, neighbours = zip(*found, strict=True)
    return PublishedSplit(
        splits=len(found),
        mean=float(np.mean(accuracies)),
        least=min(accuracies),
        largest=max(accuracies),
        null=float(np.mean(nulls)),
        neighbours=tuple(sorted(set(neighbours))),
    )


def _searched(places: np.ndarray, classes: np.ndarray, most: int, seed: int) -> int:
    """Number of neighbours, 1 to ``most``, of the best mean accuracy over shuffled folds.

    The least of equally good ones, as ``GridSearchCV`` with ``KFold`` of scikit-learn finds it.
    ``places`` (float64) and ``classes`` (int64 from 0) have shape (known,).
    """
    rows = np.arange(len(places))
    accuracies = []
    for part in np.array_split(np.random.RandomState(seed).permutation(len(places)), FOLDS):
        held = np.isin(rows, part)
        answers = voted(places[~held], classes[~held], places[held])[:, :most]
        accuracies.append((answers == classes[held, None]).mean(axis=0))
    return int(np.mean(accuracies, axis=0).argmax()) + 1
