"""Boosted trees as arrays: the predictions of their libraries, without them."""

import numpy as np
import pytest
import xgboost

from launchwise.base.errors import UserError
from launchwise.learning.boosters import boosted, grown_by_xgboost

ROUNDS = 20
PARAMETERS = {
    **{"rounds": ROUNDS, "learning_rate": 0.2, "num_leaves": 15, "min_data_in_leaf": 3},
    **{"bagging_fraction": 0.8, "feature_fraction": 0.8, "seed": 3},
}


@pytest.fixture(scope="module")
def data():
    """Features, float32 (rows, features), one of them constant; target, float64 (rows,)."""
    dice = np.random.default_rng(5)
    features = np.column_stack([dice.random((400, 4)), dice.integers(0, 3, 400), np.ones(400)])
    target = features[:, 0] ** 2 + np.sin(5 * features[:, 1]) + features[:, 4]
    return features.astype(np.float32), target


def of_xgboost(data, **more):
    rows = xgboost.DMatrix(data[0], data[1])
    options = {"tree_method": "hist", "nthread": 1, **more}
    return grown_by_xgboost(xgboost.train(options, rows, ROUNDS))


def on_thresholds(trees, features):
    """The features, of each row one as large as a threshold of its own."""
    found, inner = features.copy(), np.flatnonzero(trees.feature >= 0)
    for row, node in enumerate(np.resize(inner, len(found))):
        found[row, trees.feature[node]] = trees.threshold[node]
    return found


@pytest.mark.parametrize("objective", ["lightgbm", "reg:squarederror", "reg:pseudohubererror"])
def test_predictions_are_those_of_the_library(data, objective):
    of_lightgbm = objective == "lightgbm"
    grown = boosted(PARAMETERS, *data) if of_lightgbm else of_xgboost(data, objective=objective)
    trees = grown.arrays()
    assert len(trees.starts) == ROUNDS
    for rows in (data[0], 3 * data[0] - 1, on_thresholds(trees, data[0])):
        np.testing.assert_array_equal(trees.predict(rows), grown.predict(rows))


@pytest.mark.parametrize("learnt", [True, False])
def test_nan_goes_where_lightgbm_sends_it(data, learnt):
    missing = np.where(data[0] > 0.9, np.nan, data[0] - 0.5).astype(np.float32)
    grown = boosted(PARAMETERS, missing if learnt else data[0] - 0.5, data[1])
    np.testing.assert_array_equal(grown.arrays().predict(missing), grown.predict(missing))


def test_an_objective_whose_sum_is_no_prediction_is_refused(data):
    grown = of_xgboost((data[0], (data[1] > 1).astype(float)), objective="binary:logistic")
    with pytest.raises(UserError, match="objective: 'binary:logistic' cannot be stored"):
        grown.arrays()


def test_a_constant_target_gives_trees_of_one_leaf(data):
    grown = boosted(PARAMETERS, data[0], np.full(len(data[0]), 2.5))
    np.testing.assert_array_equal(grown.arrays().predict(data[0]), grown.predict(data[0]))
