"""Folds that learn from a row, in one column: every row is stored once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

FOLDS = "folds"
"""Column of training rows with the names of folds, blanks between them."""


def fold_name(split: str, fold: str) -> str:
    """Name of a fold in :data:`FOLDS`."""
    return f"{split}/{fold}"


def folds_of_rows(masks: Mapping[str, np.ndarray]) -> np.ndarray:
    """Values of the column :data:`FOLDS`: texts, shape (rows,); empty where no fold has a row.

    Parameters
    ----------
    masks
        Fold to the rows that it learns from: booleans, shape (rows,).
    """
    names = list(masks)
    combined, codes = np.unique(np.column_stack(list(masks.values())), axis=0, return_inverse=True)
    texts = [
        " ".join(name for name, inside in zip(names, each, strict=True) if inside)
        for each in combined
    ]
    return np.array(texts, dtype=object)[codes.reshape(-1)]


def named_folds(rows: pd.DataFrame) -> list[str]:
    """Names of the folds that learn from any of the rows, sorted."""
    return sorted({name for text in rows[FOLDS].unique() for name in text.split()})


def in_fold(rows: pd.DataFrame, split: str, fold: str) -> np.ndarray:
    """Which rows a fold learns from: booleans, shape (rows,)."""
    codes, texts = pd.factorize(rows[FOLDS])
    learnt = [fold_name(split, fold) in text.split() for text in texts]
    return np.array(learnt, dtype=bool)[codes]


def rows_of_fold(rows: pd.DataFrame, split: str, fold: str) -> pd.DataFrame:
    """Rows that a fold learns from, without the column :data:`FOLDS`."""
    return rows[in_fold(rows, split, fold)].drop(columns=FOLDS).reset_index(drop=True)


def of_split(rows: pd.DataFrame, split: str) -> pd.DataFrame:
    """Rows that a fold of a split learns from, with the names of its folds alone."""
    codes, texts = pd.factorize(rows[FOLDS])
    own = [
        " ".join(name for name in text.split() if name.startswith(f"{split}/")) for text in texts
    ]
    found = rows.assign(**{FOLDS: np.array(own, dtype=object)[codes]})
    return found[found[FOLDS] != ""].reset_index(drop=True)
