"""Boosted trees as arrays: the predictions of their libraries, without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from launchwise.base.errors import UserError
from launchwise.learning import booster_trees
from launchwise.learning.booster_trees import (
    StoredBooster,
    lightgbm_trees,
    xgboost_trees,
)
from launchwise.learning.boosters import OPTIONS, boosted, read_booster, write_booster
from launchwise.learning.trees import Trees
from launchwise.learning.ubjson import read_ubjson

ROUNDS = 20
PARAMETERS = {
    **{"rounds": ROUNDS, "learning_rate": 0.2, "num_leaves": 15, "min_data_in_leaf": 3},
    **{"bagging_fraction": 0.8, "feature_fraction": 0.8, "seed": 3},
}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Features, float32 (rows, features), one of them constant; target, float64 (rows,)."""
    dice = np.random.default_rng(5)
    features = np.column_stack([dice.random((400, 4)), dice.integers(0, 3, 400), np.ones(400)])
    target = features[:, 0] ** 2 + np.sin(5 * features[:, 1]) + features[:, 4]
    return features.astype(np.float32), target


def of_xgboost(data: tuple[np.ndarray, np.ndarray], **more: Any) -> xgboost.Booster:
    rows = xgboost.DMatrix(data[0], data[1])
    return xgboost.train({"tree_method": "hist", "nthread": 1, **more}, rows, ROUNDS)


def on_thresholds(trees: Trees, features: np.ndarray) -> np.ndarray:
    """The features, of each row one as large as a threshold of its own."""
    found, inner = features.copy(), np.flatnonzero(trees.feature >= 0)
    for row, node in enumerate(np.resize(inner, len(found))):
        found[row, trees.feature[node]] = trees.threshold[node]
    return found


def test_sums_are_those_of_lightgbm(data: tuple[np.ndarray, np.ndarray]) -> None:
    booster = boosted(PARAMETERS, *data)
    trees = lightgbm_trees(booster.model_to_string())
    assert trees is not None
    assert len(trees.starts) == ROUNDS
    for rows in (data[0], 3 * data[0] - 1, on_thresholds(trees, data[0])):
        np.testing.assert_array_equal(trees.sum(rows), booster.predict(rows, num_threads=1))


def test_sums_are_those_of_xgboost(data: tuple[np.ndarray, np.ndarray]) -> None:
    booster = of_xgboost(data)
    trees = xgboost_trees(bytes(booster.save_raw(raw_format="ubj")))
    assert trees is not None
    assert len(trees.starts) == ROUNDS
    for rows in (data[0], 3 * data[0] - 1, on_thresholds(trees, data[0])):
        np.testing.assert_array_equal(trees.sum(rows), booster.inplace_predict(rows).astype(float))


def test_a_constant_target_gives_trees_of_one_leaf(data: tuple[np.ndarray, np.ndarray]) -> None:
    booster = boosted(PARAMETERS, data[0], np.full(len(data[0]), 2.5))
    trees = lightgbm_trees(booster.model_to_string())
    assert trees is not None
    np.testing.assert_array_equal(trees.sum(data[0]), booster.predict(data[0]))


def test_what_numpy_does_not_compare_is_left_to_the_library(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    features, target = data
    given = lightgbm.Dataset(features, target, categorical_feature=[4], params={"verbosity": -1})
    with_categories = lightgbm.train({**OPTIONS, "min_data_per_group": 1}, given, 3)
    assert lightgbm_trees(with_categories.model_to_string()) is None
    missing = np.where(features > 0.9, np.nan, features)
    assert lightgbm_trees(boosted(PARAMETERS, missing, target).model_to_string()) is None
    other = of_xgboost((features, (target > 1).astype(float)), objective="binary:logistic")
    assert xgboost_trees(bytes(other.save_raw(raw_format="ubj"))) is None


def test_many_rows_are_asked_of_the_library(
    data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = boosted(PARAMETERS, *data).model_to_string()
    stored = StoredBooster(text, lightgbm_trees(text), "no such library", str.upper)
    monkeypatch.setattr(booster_trees, "FEW", 3 * ROUNDS * len(data[0]))
    assert [stored.sum(data[0]) is None for _ in range(4)] == [False, False, False, True]
    assert stored.loaded == text.upper()
    assert stored.sum(np.full((1, 6), np.nan, np.float32)) is None


def test_a_file_is_what_was_written(data: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    first, second = tmp_path / "first.gz", tmp_path / "second.gz"
    write_booster(first, boosted(PARAMETERS, *data))
    write_booster(second, read_booster(first))
    assert first.read_bytes() == second.read_bytes()
    assert read_booster(second).num_feature() == 6


def replaced(text: str, name: str, line: str) -> str:
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
def test_trees_that_are_none_are_refused(
    data: tuple[np.ndarray, np.ndarray], tmp_path: Path, name: str, line: str
) -> None:
    parameters = {**PARAMETERS, "num_leaves": 2}
    text = boosted(parameters, *data).model_to_string()
    path = tmp_path / "model.gz"
    write_booster(path, StoredBooster(replaced(text, name, line), None, "", len))
    with pytest.raises(UserError, match="cannot be read as a model"):
        read_booster(path)


def test_ubjson_that_is_none_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    content = bytes(of_xgboost(data).save_raw(raw_format="ubj"))
    dice = np.random.default_rng(1)
    for end in dice.integers(0, len(content), 50):
        with pytest.raises(ValueError, match="no UBJSON"):
            read_ubjson(content[:end])
    for strange in (b"", b"[" * 1000, b"[$i#L" + b"\x7f" * 8, b"{L\0\0\0\0\0\0\0\1aZ}x"):
        with pytest.raises(ValueError, match="no UBJSON"):
            read_ubjson(strange)
    for place in dice.integers(0, len(content), 50):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        try:
            xgboost_trees(bytes(damaged))
        except ValueError:
            continue
