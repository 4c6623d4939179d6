"""What a published recipe needs: its features, its rows, its objective, every row as an example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from launchwise.learning.features import Domain
from launchwise.learning.recommenders.tree import TreeRecommender
from launchwise.learning.search import best_of, held_out_time_error, search
from launchwise.learning.splits import case_numbers

FEATURES = ["tx", "n", "gpu_sms"]


def test_models_use_the_named_features_and_no_others(domain: Domain, rows: pd.DataFrame) -> None:
    few = Domain(domain.spec, domain.profiles, only_features=FEATURES)
    assert set(few.features(rows)) == set(FEATURES)
    assert few.problem_features == ["n", "gpu_sms"]
    assert few.gpu_features == ["gpu_sms"]
    whole = domain.features(rows)
    assert few.features(rows).equals(whole[list(few.features(rows))])
    assert len(whole.columns) > 2 * len(FEATURES)
    # Beside rows that hold features of a search, too.
    assert set(few.features(few.keeping_features(rows))) == set(FEATURES)


def test_the_error_of_predicted_times_is_of_held_out_cases(
    domain: Domain, rows: pd.DataFrame
) -> None:
    class Constant(TreeRecommender):
        def fit_rows(self, features: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
            self.low = float(target.min())

        def predict_rows(self, features: np.ndarray) -> np.ndarray:
            return np.full(len(features), 2 * self.low)

    flat = rows.assign(time_ms=3.0)
    found = held_out_time_error(Constant(domain, target="time"), flat, 3, 0)
    assert found == pytest.approx(np.ones(case_numbers(rows, domain.spec).max() + 1))


def test_a_search_by_predicted_times_takes_the_best_trial(
    domain: Domain, rows: pd.DataFrame
) -> None:
    options: dict[str, Any] = {"trials": 6, "folds": 3, "max_rows": 10**6, "seed": 1}
    fixed = {"target": "time"}
    found = search(TreeRecommender, domain, rows, fixed=fixed, objective="time_error", **options)
    options["trials"] = 1
    first = search(TreeRecommender, domain, rows, fixed=fixed, objective="time_error", **options)
    options["trials"] = 6
    assert found.value is not None
    assert first.value is not None
    assert found.value <= first.value
    chosen = TreeRecommender(domain, **{**found.parameters, **fixed, "seed": 1})
    assert found.value == pytest.approx(held_out_time_error(chosen, rows, 3, 1).mean())
    # The regret of its recommendations is another figure.
    assert search(TreeRecommender, domain, rows, fixed=fixed, **options).value != found.value


def test_the_first_of_equal_trials_is_the_best() -> None:
    assert best_of([np.array([2.0, 2.0]), np.array([1.0, 2.0]), np.array([2.0, 1.0])]) == 1
