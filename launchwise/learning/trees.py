"""Regression trees as arrays: stored without code, asked without the library that grew them.

scikit-learn takes a second to import, longer than an answer takes, and LightGBM and XGBoost import
it, too. NumPy compares as they do and adds up in their order: predictions are theirs to the last
bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from launchwise.base import work
from launchwise.base.arrays import read_arrays, write_arrays
from launchwise.base.errors import UserError

FILE = "model.npz"
PIECE = 1024  # Rows that are sent down all trees at once: they stay in the cache
LEAF = -1  # Feature of a leaf


@dataclass(frozen=True)
class Trees:
    """Trees whose nodes are numbered through, tree by tree; every child comes after its parent.
    Raises ValueError when an array has another length, or a way from a root may not end in a
    leaf."""

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
    is_mean: bool = True  # whether they predict the mean of the trees, and not the sum
    # Whether NaN goes left: booleans, shape (nodes,); None where no feature may be NaN.
    nan_goes_left: np.ndarray | None = None

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        inner = np.flatnonzero(self.feature != LEAF)
        below, asked = self.children[inner], self.feature[inner]
        of_nodes = [self.threshold, self.children, self.value]
        if self.nan_goes_left is not None:
            of_nodes.append(self.nan_goes_left)
        if not (
            {*map(len, of_nodes)} == {nodes}
            and len(self.starts)
            and ((self.starts >= 0) & (self.starts < nodes)).all()
            and ((below > inner[:, None]) & (below < nodes)).all()
            and ((asked >= 0) & (asked < self.features)).all()
        ):
            raise ValueError("its nodes make no trees")

    @classmethod
    def of(cls, estimators: Sequence[Any]) -> Trees:
        """Those of fitted decision trees of scikit-learn, which predict one number."""
        trees = [estimator.tree_ for estimator in estimators]
        parts = [
            {
                "feature": np.where(tree.children_left < 0, LEAF, tree.feature).astype(np.int32),
                "threshold": np.where(tree.children_left < 0, 0.0, tree.threshold),
                "children": np.column_stack([tree.children_left, tree.children_right]),
                "value": np.where(tree.children_left < 0, tree.value[:, 0, 0], 0.0),
            }
            for tree in trees
        ]
        return cls(int(estimators[0].n_features_in_), **joined(parts))

    def write(self, path: Path) -> None:
        """Write as a compressed ``.npz``, whole or not at all."""
        write_arrays(path, {name: each for name, each in vars(self).items() if each is not None})

    @classmethod
    def read(cls, path: Path) -> Trees:
        """Read what :meth:`write` wrote; UserError when it is missing or broken."""
        stored = read_arrays(path, "a model")
        try:
            values: dict[str, Any] = {
                name: each if each.ndim else each.item() for name, each in stored.items()
            }
            return cls(**values)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Prediction of the trees: float64, shape (rows,).

        ``features``: float32, shape (rows, features). Raises ValueError when they are more or
        fewer than those of the trees, or one is NaN that may not be.
        """
        if features.shape[1] != self.features:
            raise ValueError(f"{features.shape[1]} features, not {self.features}")
        if self.nan_goes_left is None and np.isnan(features).any():
            raise ValueError("a feature is NaN")
        total = self.sum(features)
        return total / len(self.starts) if self.is_mean else total

    def sum(self, features: np.ndarray) -> np.ndarray:
        """Sum of the trees: float64, shape (rows,); ``features`` as of :meth:`predict`."""
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
        may_be_nan = self.nan_goes_left is not None and bool(np.isnan(values).any())
        while len(inner):
            node = at.take(inner)
            given = values.take(first.take(inner) + self.feature.take(node))
            limit = self.threshold.take(node)
            left = given <= limit if self.equal_goes_left else given < limit
            if may_be_nan:
                left |= np.isnan(given) & self.nan_goes_left.take(node)  # type: ignore[union-attr]
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


def joined(trees: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Arrays of all trees from those of each, whose children are numbered within the tree."""
    sizes = [len(tree["feature"]) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    found = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    below = found["children"].astype(np.int64) + np.repeat(starts, sizes)[:, None]
    found["children"] = np.where((found["feature"] == LEAF)[:, None], 0, below)
    return {**found, "starts": starts}


@dataclass(frozen=True)
class Grown:
    """Trees in the process that grew them: their library is faster for many rows than arrays."""

    count: int  # number of trees
    ask: Callable[[np.ndarray], Any]  # predictions, shape (rows,), of float32 (rows, features)
    arrays: Callable[[], Trees]  # the same trees as arrays

    @classmethod
    def of(cls, model: Any, estimators: Sequence[Any]) -> Self:
        """A fitted model of scikit-learn, and its decision trees."""
        arrays = lambda: Trees.of(estimators)  # noqa: E731
        return cls(len(estimators), model.predict, arrays)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """As :meth:`Trees.predict`."""
        work.count(work.ASKED, len(features) * self.count)
        return np.asarray(self.ask(features), dtype=float)


class OfTrees:
    """Part of a recommender whose fitted model is one file of trees."""

    trees: Trees | Grown
    parameters: dict[str, Any]

    def _given(self, *names: str) -> dict[str, Any]:
        """Hyper-parameters by the names that scikit-learn has for them, too, and the seed."""
        own = {name: self.parameters[name] for name in names}
        return {**own, "random_state": self.parameters["seed"]}

    def predict_rows(self, features: np.ndarray) -> np.ndarray:
        """Prediction of the trees: float64, shape (rows,)."""
        return self.trees.predict(features)

    @property
    def arrays_of_trees(self) -> Trees:
        return self.trees.arrays() if isinstance(self.trees, Grown) else self.trees

    def save_model(self, folder: Path) -> None:
        """Write the trees."""
        self.arrays_of_trees.write(folder / FILE)

    def load_model(self, folder: Path) -> None:
        """Read the trees."""
        self.trees = Trees.read(folder / FILE)
