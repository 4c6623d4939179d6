"""Folds that learn from a row, in one column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.tables.learning import (
    FOLDS,
    folds_of_rows,
    of_split,
    rows_of_fold,
)

NAMES = ["sizes/all", "gpus/h200.sm72", "gpus/h100"]


def table(masks):
    texts = folds_of_rows(masks)
    return pd.DataFrame({FOLDS: texts, "row": np.arange(len(texts))})


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=30))
def test_every_fold_gets_its_rows_back(inside):
    matrix = np.array(inside, dtype=bool).reshape(-1, len(NAMES))
    masks = dict(zip(NAMES, matrix.T, strict=True))
    rows = table(masks)
    for name, mask in masks.items():
        split, fold = name.split("/")
        assert rows_of_fold(rows, split, fold)["row"].tolist() == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("split", "fold"), [("gpus", "h200"), ("sizes", "h100"), ("gpu", "s/h100")]
)
def test_a_fold_of_another_name_has_no_rows(split, fold):
    rows = table(dict.fromkeys(NAMES, np.array([True])))
    assert rows_of_fold(rows, split, fold).empty


def test_a_split_keeps_its_own_folds_alone():
    masks = dict(
        zip(NAMES, np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0]], bool), strict=True)
    )
    found = of_split(table(masks), "gpus")
    assert found["row"].tolist() == [1, 2]
    assert found[FOLDS].tolist() == ["gpus/h200.sm72 gpus/h100", "gpus/h200.sm72"]


def test_a_split_learns_of_its_own_folds_alone():
    rows = pd.DataFrame({FOLDS: ["a/1 ab/1", "ab/1", "a/2"], "x": [1, 2, 3]})
    found = of_split(rows, "a")
    assert (list(found[FOLDS]), list(found["x"])) == (["a/1", "a/2"], [1, 3])
