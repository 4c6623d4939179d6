"""Nearest neighbours as the paper fits them: scikit-learn's shuffled split and its grid search."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

SPLITS = 10
"""Shuffled splits: a single one of a dozen test sizes says little."""

TEST_SHARE, FOLDS = 0.25, 3
MOST_TRIES = 200
"""Seeds that are tried for splits whose training sizes have every choice."""


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

    Parameters
    ----------
    optima
        One row per size, observed or corrected.
    seed
        Of the first split; the next ones count on.
    """
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.neighbors import KNeighborsClassifier

    places = optima[[size]].to_numpy(dtype=float)
    choices = optima[choice].to_numpy()
    classes = len(np.unique(choices))
    found = []
    for number in range(MOST_TRIES):
        train, test = split(len(places), seed + number)
        known, wanted = choices[train], choices[test]
        if len(np.unique(known)) < classes or len(known) < 2 * FOLDS:
            continue
        most = min(classes, len(known) * (FOLDS - 1) // FOLDS)
        search = GridSearchCV(
            KNeighborsClassifier(),
            {"n_neighbors": range(1, most + 1)},
            cv=KFold(FOLDS, shuffle=True, random_state=seed + number),
        )
        with warnings.catch_warnings():
            # A class of one size is missing from the folds without it.
            warnings.simplefilter("ignore", UserWarning)
            search.fit(places[train], known)
        values, counts = np.unique(known, return_counts=True)
        found.append(
            (
                float((search.predict(places[test]) == wanted).mean()),
                float((values[counts.argmax()] == wanted).mean()),
                int(search.best_params_["n_neighbors"]),
            )
        )
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
