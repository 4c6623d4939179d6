"""Boosted trees as arrays: the predictions of their libraries, without them."""

import gzip
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import xgboost

from launchwise.base.errors import UserError
from launchwise.learning import boosters
from launchwise.learning.boosters import (
    OPTIONS,
    LightgbmBooster,
    XgboostBooster,
    boosted,
    lightgbm_trees,
    xgboost_trees,
)

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
    return xgboost.train({"tree_method": "hist", "nthread": 1, **more}, rows, ROUNDS)


def on_thresholds(trees, features):
    """The features, of each row one as large as a threshold of its own."""
    found, inner = features.copy(), np.flatnonzero(trees.feature >= 0)
    for row, node in enumerate(np.resize(inner, len(found))):
        found[row, trees.feature[node]] = trees.threshold[node]
    return found


def test_sums_are_those_of_lightgbm(data):
    booster = boosted(PARAMETERS, *data)
    trees = lightgbm_trees(booster.text)
    assert len(trees.starts) == ROUNDS
    for rows in (data[0], 3 * data[0] - 1, on_thresholds(trees, data[0])):
        np.testing.assert_array_equal(trees.sum(rows), booster.predict(rows))


def test_sums_are_those_of_xgboost(data):
    booster = of_xgboost(data)
    trees = xgboost_trees(XgboostBooster(booster).text)
    assert len(trees.starts) == ROUNDS
    for rows in (data[0], 3 * data[0] - 1, on_thresholds(trees, data[0])):
        np.testing.assert_array_equal(trees.sum(rows), booster.inplace_predict(rows).astype(float))


def test_a_constant_target_gives_trees_of_one_leaf(data):
    booster = boosted(PARAMETERS, data[0], np.full(len(data[0]), 2.5))
    trees = lightgbm_trees(booster.text)
    np.testing.assert_array_equal(trees.sum(data[0]), booster.predict(data[0]))


def test_what_numpy_does_not_compare_is_left_to_the_library(data):
    features, target = data
    given = lightgbm.Dataset(features, target, categorical_feature=[4], params={"verbosity": -1})
    with_categories = lightgbm.train({**OPTIONS, "min_data_per_group": 1}, given, 3)
    assert lightgbm_trees(with_categories.model_to_string()) is None
    missing = np.where(features > 0.9, np.nan, features)
    assert lightgbm_trees(boosted(PARAMETERS, missing, target).text) is None
    other = of_xgboost((features, (target > 1).astype(float)), objective="binary:logistic")
    assert xgboost_trees(XgboostBooster(other).text) is None


def test_many_rows_are_asked_of_the_library(data, monkeypatch):
    text = boosted(PARAMETERS, *data).text
    loaded = []

    def load(text):
        loaded.append(text)
        return lightgbm.Booster(model_str=text)

    absent = replace(LightgbmBooster.library, name="no such library", load=load)
    monkeypatch.setattr(LightgbmBooster, "library", absent)
    monkeypatch.setattr(boosters, "FEW", 3 * ROUNDS * len(data[0]))
    stored, missing = LightgbmBooster(text=text), LightgbmBooster(text=text)
    wanted = stored.predict(data[0]).tolist()
    assert [(stored.predict(data[0]).tolist() == wanted, len(loaded)) for _ in range(3)] == [
        (True, 0), (True, 0), (True, 1),
    ]  # fmt: skip
    missing.predict(np.full((1, 6), np.nan, np.float32))
    assert len(loaded) == 2


def replaced(text, name, line):
    return "\n".join(line if each.startswith(f"{name}=") else each for each in text.splitlines())


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("left_child", "left_child=0"),
        ("left_child", "left_child=x"),
        ("split_feature", "split_feature=99"),
        ("max_feature_idx", ""),
    ],
)
def test_trees_that_are_none_are_refused(data, tmp_path, name, line):
    parameters = {**PARAMETERS, "num_leaves": 2}
    text = boosted(parameters, *data).text
    path = tmp_path / "model.gz"
    path.write_bytes(gzip.compress(replaced(text, name, line).encode()))
    with pytest.raises(UserError, match="cannot be read as a model"):
        LightgbmBooster.read(path)


def test_json_that_is_no_model_is_refused(data):
    content = XgboostBooster(of_xgboost(data)).text
    dice = np.random.default_rng(1)
    cut_off = (content[:-end] for end in (1, 9, 999))
    for strange in ("", "{}", "[1]", "null", "[" * 10**5, *cut_off):
        with pytest.raises(ValueError, match=r"has no trees|Expecting|Unterminated|delimiter"):
            xgboost_trees(strange)
    for place in dice.integers(0, len(content), 50):
        try:
            xgboost_trees(content[:place] + "9" + content[place + 1 :])
        except ValueError:
            continue
