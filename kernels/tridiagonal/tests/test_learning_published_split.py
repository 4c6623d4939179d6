"""Nearest neighbours as the paper fits them, on optima whose accuracy is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier

from kernels.tridiagonal.learning.optima import (
    FOLDS,
    SPLITS,
    TEST_SHARE,
    as_published,
    split,
)

SEED = 5


def optima(choices: list[int]) -> pd.DataFrame:
    """Optima of sizes 100, 200, 300..."""
    return pd.DataFrame({"n": 100 * np.arange(1, len(choices) + 1), "m": choices})


def test_intervals_are_learnt_but_for_sizes_beside_their_limits() -> None:
    found = as_published(optima([4] * 20 + [16] * 20), SEED)
    assert found is not None
    assert found.splits == SPLITS
    assert found.mean > 0.9 > 0.6 > found.null
    assert found.least <= found.mean <= found.largest <= 1


def test_choices_without_order_are_no_better_than_the_most_frequent_one() -> None:
    drawn = np.random.default_rng(1).choice([4, 8, 16], 60)
    found = as_published(optima([int(each) for each in drawn]), SEED)
    assert found is not None
    assert abs(found.mean - found.null) < 0.15
    assert set(found.neighbours) <= {1, 2, 3}


def test_every_choice_must_be_in_the_training_part() -> None:
    # Each choice once: no split of 3 to 1 has all of them in training.
    assert as_published(optima(list(range(12))), SEED) is None
    # One size alone of a choice: only splits that train on it count.
    found = as_published(optima([4] * 15 + [8]), SEED)
    assert found is not None
    assert found.null == 1


def test_the_same_seed_gives_the_same_splits() -> None:
    table = optima([4, 8] * 12)
    assert as_published(table, SEED) == as_published(table, SEED)
    assert as_published(table, SEED) != as_published(table, SEED + 1000)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 16, 37, 40])
def test_splits_are_those_that_scikit_learn_draws(count: int) -> None:
    for seed in range(SEED, SEED + 20):
        expected = train_test_split(np.arange(count), test_size=TEST_SHARE, random_state=seed)
        for ours, theirs in zip(split(count, seed), expected, strict=True):
            assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_accuracies_and_neighbours_are_those_of_the_search_of_scikit_learn(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    # Sizes as far apart as drawn: of two that are as near, ours takes the first.
    sizes, choices = np.sort(drawn.choice(10**6, 30, replace=False)), drawn.choice([4, 8, 16], 30)
    found = as_published(pd.DataFrame({"n": sizes, "m": choices}), seed)
    hits, neighbours = [], set()
    for number in range(seed, seed + SPLITS):
        train, test = split(30, number)
        folds = KFold(FOLDS, shuffle=True, random_state=number)
        search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 2, 3]}, cv=folds)
        search.fit(sizes[train, None], choices[train])
        hits.append((search.predict(sizes[test, None]) == choices[test]).mean())
        neighbours.add(search.best_params_["n_neighbors"])
    assert found is not None
    assert (found.mean, found.least, found.largest) == (np.mean(hits), min(hits), max(hits))
    assert found.neighbours == tuple(sorted(neighbours))
