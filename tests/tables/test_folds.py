"""Folds that learn from a row, in one column."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.tables.learning import FOLDS, folds_of_rows, of_split, rows_of_fold

NAMES = ["sizes/all", "gpus/h200.sm72", "gpus/h100", "gpu/h100"]


def table(masks):
    texts = folds_of_rows(masks)
    return pd.DataFrame({FOLDS: texts, "row": np.arange(len(texts))})


@given(st.lists(st.tuples(*[st.booleans()] * len(NAMES)), max_size=30))
def test_folds_and_splits_get_their_own_rows_back(inside):
    matrix = np.array(inside, dtype=bool).reshape(-1, len(NAMES))
    masks = dict(zip(NAMES, matrix.T, strict=True))
    rows = table(masks)
    for name, mask in masks.items():
        split, fold = name.split("/")
        assert rows_of_fold(rows, split, fold)["row"].tolist() == np.flatnonzero(mask).tolist()
    for split in ("sizes", "gpus", "gpu"):
        own = [[name for name in NAMES if name.startswith(f"{split}/") and masks[name][row]]
               for row in range(len(rows))]  # fmt: skip
        found = of_split(rows, split)
        assert found["row"].tolist() == [row for row, names in enumerate(own) if names]
        assert found[FOLDS].tolist() == [" ".join(names) for names in own if names]


@pytest.mark.parametrize(
    ("split", "fold"), [("gpus", "h200"), ("sizes", "h100"), ("gpu", "s/h100")]
)
def test_a_fold_of_another_name_has_no_rows(split, fold):
    rows = table(dict.fromkeys(NAMES, np.array([True])))
    assert rows_of_fold(rows, split, fold).empty
