"""Regression trees as arrays: stored without code, asked without scikit-learn.

scikit-learn takes a second to import, longer than an answer takes. Few rows are sent down the trees
with NumPy; many, or where scikit-learn is loaded anyway, with its own trees, made of the same
arrays. Both compare and add up alike, so predictions are equal to the last bit.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base import work
from launchwise.base.arrays import read_arrays
from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file

LEVEL = 1
"""Level of compression: more takes longer and gains little."""

MANY_ROWS = 50_000
"""Rows for which it pays to import scikit-learn."""

PIECE = 8192
"""Rows that NumPy sends down all trees at once."""

LEAF = -1
"""Feature of a leaf."""


@dataclass(frozen=True)
class Trees:
    """A fitted forest. Nodes are numbered through, tree by tree; the left child is the next node.

    Parameters
    ----------
    features
        Number of features.
    starts
        First node of each tree: int64, shape (trees,).
    feature
        Feature that a node compares, :data:`LEAF` for a leaf: int32, shape (nodes,).
    threshold
        Values up to it go left: float64, shape (nodes,).
    right
        Right child: int64, shape (nodes,).
    value
        Prediction of a leaf: float64, shape (nodes,).
    """

    features: int
    starts: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    right: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, estimators: Sequence[Any]) -> Trees:
        """Those of fitted ``DecisionTreeRegressor`` of one output, grown depth first."""
        trees = [estimator.tree_ for estimator in estimators]
        sizes = [tree.node_count for tree in trees]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        leaf = np.concatenate([tree.children_left < 0 for tree in trees])
        ahead = np.repeat(starts, sizes)
        left = np.concatenate([tree.children_left for tree in trees]) + ahead
        right = np.concatenate([tree.children_right for tree in trees]) + ahead
        if not (leaf | (left == np.arange(len(left)) + 1)).all():
            raise ValueError("the trees were not grown depth first")
        feature = np.concatenate([tree.feature for tree in trees])
        threshold = np.concatenate([tree.threshold for tree in trees])
        value = np.concatenate([tree.value[:, 0, 0] for tree in trees])
        return cls(
            int(estimators[0].n_features_in_),
            starts,
            np.where(leaf, LEAF, feature).astype(np.int32),
            np.where(leaf, 0.0, threshold),
            np.where(leaf, 0, right).astype(np.int64),
            np.where(leaf, value, 0.0),
        )

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Mean prediction of the trees: float64, shape (rows,).

        Parameters
        ----------
        features
            float32, shape (rows, features), without NaN.

        Raises
        ------
        ValueError
            When a feature is NaN.
        """
        if np.isnan(features).any():
            raise ValueError("a feature is NaN")
        work.count(work.ASKED, len(features) * len(self.starts))
        if len(features) >= MANY_ROWS or "sklearn.tree" in sys.modules:
            found = np.zeros(len(features))
            for tree in self._native:
                found += tree.predict(features)[:, 0]
            return found / len(self.starts)
        pieces = np.split(features, range(PIECE, len(features), PIECE))
        return np.concatenate([self._mean(piece) for piece in pieces])

    def _mean(self, features: np.ndarray) -> np.ndarray:
        trees = len(self.starts)
        at = np.tile(self.starts, len(features))
        asked = np.repeat(np.arange(len(features)), trees)
        inner = np.flatnonzero(self.feature[at] != LEAF)
        while len(inner):
            node = at[inner]
            goes_left = features[asked[inner], self.feature[node]] <= self.threshold[node]
            at[inner] = np.where(goes_left, node + 1, self.right[node])
            inner = inner[self.feature[at[inner]] != LEAF]
        found = np.zeros(len(features))
        # One after the other, as scikit-learn adds them up.
        for values in self.value[at].reshape(-1, trees).T:
            found += values
        return found / trees

    @property
    def leaves(self) -> int:
        """Number of leaves of all trees."""
        return int((self.feature == LEAF).sum())

    @cached_property
    def _native(self) -> list[Any]:
        """The trees as scikit-learn has them."""
        from sklearn.tree._tree import NODE_DTYPE, Tree

        found = []
        for start, end in self._ends():
            nodes = np.zeros(end - start, dtype=NODE_DTYPE)
            leaf = self.feature[start:end] == LEAF
            numbers = np.arange(end - start)
            nodes["left_child"] = np.where(leaf, -1, numbers + 1)
            nodes["right_child"] = np.where(leaf, -1, self.right[start:end] - start)
            nodes["feature"] = np.where(leaf, -2, self.feature[start:end])
            nodes["threshold"] = self.threshold[start:end]
            tree = Tree(self.features, np.ones(1, dtype=np.intp), 1)
            values = self.value[start:end].reshape(-1, 1, 1)
            state = {"max_depth": 0, "node_count": len(nodes), "nodes": nodes, "values": values}
            tree.__setstate__(state)
            found.append(tree)
        return found

    def _ends(self) -> Iterator[tuple[int, int]]:
        ends = [*self.starts[1:].tolist(), len(self.feature)]
        return zip(self.starts.tolist(), ends, strict=True)


_ARRAYS = ("starts", "feature", "threshold", "right", "value")


def save_trees(path: Path, trees: Trees) -> None:
    """Write a forest as a compressed ``.npz``, whole or not at all."""
    arrays = {"features": np.array(trees.features), **{n: getattr(trees, n) for n in _ARRAYS}}
    with (
        whole_file(path) as scratch,
        zipfile.ZipFile(scratch, "w") as archive,
    ):
        for name, values in arrays.items():
            content = BytesIO()
            np.lib.format.write_array(content, values, allow_pickle=False)
            # Without the time of writing: the same trees are the same bytes.
            member = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, LEVEL)


def load_trees(path: Path) -> Trees:
    """Read a forest.

    Raises
    ------
    UserError
        When the file is missing or broken.
    """
    stored = read_arrays(path, "a model")
    try:
        trees = Trees(int(stored["features"]), *(stored[name] for name in _ARRAYS))
        _insist_on_trees(trees)
        return trees
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(path, "", f"cannot be read as a model: {error}") from error


def _insist_on_trees(trees: Trees) -> None:
    """Insist that every way from a root ends in a leaf: a cycle would never end.

    Raises
    ------
    ValueError
        When an array has another length, or names a node or feature that is not there or not below.
    """
    nodes = len(trees.feature)
    places = np.arange(nodes)
    inner = trees.feature != LEAF
    below, asked = trees.right[inner], trees.feature[inner]
    if not (
        {len(trees.threshold), len(trees.right), len(trees.value)} == {nodes}
        and ((trees.starts >= 0) & (trees.starts < nodes)).all()
        and ((below > places[inner] + 1) & (below < nodes)).all()
        and ((asked >= 0) & (asked < trees.features)).all()
    ):
        raise ValueError("its nodes make no trees")
