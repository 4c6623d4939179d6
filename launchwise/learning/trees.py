"""Regression trees as arrays: stored without code, asked without the library that grew them.

scikit-learn takes a second to import, longer than an answer takes, and LightGBM and XGBoost import
it, too. NumPy compares as they do and adds up in their order: predictions are theirs to the last
bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from launchwise.base import work
from launchwise.base.arrays import read_arrays, write_arrays
from launchwise.base.errors import UserError

PIECE = 1024  # Rows that are sent down all trees at once: they stay in the cache
LEAF = -1  # Feature of a leaf

_ARRAYS = ("starts", "feature", "threshold", "children", "value")


@dataclass(frozen=True)
class Trees:
    """Trees whose nodes are numbered through, tree by tree; every child comes after its parent.
    Raises ValueError when an array has another length, or a way from a root may not end in a
    leaf."""

    FILE: ClassVar[str] = "model.npz"

    features: int  # number of features
    starts: np.ndarray  # first node of each tree: int64, shape (trees,)
    feature: np.ndarray  # feature that a node compares, LEAF for a leaf: int32, shape (nodes,)
    # What it is compared with, in the type that its library compares in: shape (nodes,).
    threshold: np.ndarray
    children: np.ndarray  # left and right child: int64, shape (nodes, 2)
    # Prediction of a leaf, in the type that its library adds up in: shape (nodes,).
    value: np.ndarray
    base: float = 0.0  # what the sum begins with
    equal_goes_left: bool = True  # whether a value that equals the threshold goes left
    # The estimator of scikit-learn that they are of, in the process that grew it.
    grown: Any = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        inner = np.flatnonzero(self.feature != LEAF)
        below, asked = self.children[inner], self.feature[inner]
        if not (
            {len(self.threshold), len(self.children), len(self.value)} == {nodes}
            and len(self.starts)
            and ((self.starts >= 0) & (self.starts < nodes)).all()
            and ((below > inner[:, None]) & (below < nodes)).all()
            and ((asked >= 0) & (asked < self.features)).all()
        ):
            raise ValueError("its nodes make no trees")

    @classmethod
    def of(cls, estimators: Sequence[Any], grown: Any = None) -> Trees:
        """Those of fitted decision trees of scikit-learn, which predict one number.

        ``grown``: estimator that is asked instead of these arrays as long as it is there.
        """
        trees = [estimator.tree_ for estimator in estimators]
        parts = [
            (
                np.where(tree.children_left < 0, LEAF, tree.feature).astype(np.int32),
                np.where(tree.children_left < 0, 0.0, tree.threshold),
                np.column_stack([tree.children_left, tree.children_right]).astype(np.int64),
                np.where(tree.children_left < 0, tree.value[:, 0, 0], 0.0),
            )
            for tree in trees
        ]
        return cls(int(estimators[0].n_features_in_), **joined(parts), grown=grown)

    def write(self, path: Path) -> None:
        """Write as a compressed ``.npz``, whole or not at all."""
        write_arrays(path, {name: getattr(self, name) for name in ("features", *_ARRAYS)})

    @classmethod
    def read(cls, path: Path) -> Trees:
        """Read what :meth:`write` wrote; UserError when it is missing or broken."""
        stored = read_arrays(path, "a model")
        try:
            arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
            return cls(int(stored["features"]), **arrays)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Mean prediction of the trees: float64, shape (rows,).

        ``features``: float32, shape (rows, features), without NaN. Raises ValueError when a feature
        is NaN.
        """
        if np.isnan(features).any():
            raise ValueError("a feature is NaN")
        if self.grown is None:
            return self.sum(features) / len(self.starts)
        work.count(work.ASKED, len(features) * len(self.starts))
        return np.asarray(self.grown.predict(features), dtype=float)

    def sum(self, features: np.ndarray) -> np.ndarray:
        """Sum of the trees' predictions: float64, shape (rows,); ``features`` as for a mean."""
        work.count(work.ASKED, len(features) * len(self.starts))
        pieces = np.split(features, range(PIECE, len(features), PIECE))
        return np.concatenate([self._sum(piece) for piece in pieces])

    def _sum(self, features: np.ndarray) -> np.ndarray:
        trees, (rows, width) = len(self.starts), features.shape
        at = np.tile(self.starts, rows)
        first = np.repeat(np.arange(rows) * width, trees)  # place of the row's first value
        inner = np.flatnonzero(self.feature.take(at) != LEAF)
        # Taking from one dimension is twice as fast as from two.
        values, children = features.astype(self.threshold.dtype).ravel(), self.children.ravel()
        while len(inner):
            node = at.take(inner)
            given = values.take(first.take(inner) + self.feature.take(node))
            limit = self.threshold.take(node)
            left = given <= limit if self.equal_goes_left else given < limit
            at[inner] = below = children.take(2 * node + ~left)
            inner = inner[self.feature.take(below) != LEAF]
        found = np.full(len(features), self.base, dtype=self.value.dtype)
        # One after the other, as the libraries add them up.
        for each in self.value[at].reshape(-1, trees).T:
            found += each
        return found.astype(float)

    @property
    def leaves(self) -> int:
        """Number of leaves of all trees."""
        return int((self.feature == LEAF).sum())


def joined(trees: Sequence[tuple[np.ndarray, ...]]) -> dict[str, Any]:
    """Arrays of all trees: feature, threshold, children within the tree, and value of each."""
    sizes = [len(tree[0]) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    feature, threshold, children, value = (
        np.concatenate(part) for part in zip(*trees, strict=True)
    )
    children = np.where((feature == LEAF)[:, None], 0, children + np.repeat(starts, sizes)[:, None])
    return dict(zip(_ARRAYS, (starts, feature, threshold, children, value), strict=True))


class OfTrees:
    """Part of a recommender whose fitted model is one file of trees."""

    kept_as: ClassVar[Any] = Trees
    """Class with ``FILE``, ``read``, ``write``, ``predict`` and ``features``."""

    trees: Any
    """Fitted or read: one of :attr:`kept_as`."""

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Prediction of the trees: float64, shape (rows,)."""
        return np.asarray(self.trees.predict(features))

    def model_width(self) -> int:
        return int(self.trees.features)

    def save_model(self, folder: Path) -> None:
        """Write the trees."""
        self.trees.write(folder / self.kept_as.FILE)

    def load_model(self, folder: Path) -> None:
        """Read the trees."""
        self.trees = self.kept_as.read(folder / self.kept_as.FILE)
