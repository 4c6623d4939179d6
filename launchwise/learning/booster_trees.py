"""Boosted trees of LightGBM and XGBoost as arrays, for answers about few rows.

Either library imports scikit-learn, which takes as long as the rest of an answer. Both add up their
trees one after the other, LightGBM in float64 and XGBoost in float32: predictions are theirs to the
last bit.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from launchwise.learning.ubjson import read_ubjson

FEW = 1_000_000
"""Rows times trees that NumPy asks faster than a library is imported."""

_NUMERIC = {"0", "2"}
"""Decisions of LightGBM by ``<=`` alone: no category, and nothing that stands for a missing one."""


@dataclass(frozen=True)
class BoosterTrees:
    """Trees whose nodes are numbered through, tree by tree; every child comes after its parent.

    Parameters
    ----------
    features
        Number of features.
    starts
        First node of each tree: int64, shape (trees,).
    feature
        Feature that a node compares, -1 for a leaf: int32, shape (nodes,).
    threshold
        What it is compared with: float32 or float64, as all sums are; shape (nodes,).
    children
        Left and right child: int64, shape (nodes, 2).
    value
        What a leaf adds: shape (nodes,).
    base
        What the sum begins with.
    equal_goes_left
        Whether a value that equals the threshold goes left.
    """

    features: int
    starts: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    children: np.ndarray
    value: np.ndarray
    base: float
    equal_goes_left: bool

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        inner = np.flatnonzero(self.feature >= 0)
        below = self.children[inner]
        if not (
            len(self.starts)
            and (below > inner[:, None]).all()
            and (below < nodes).all()
            and (self.feature[inner] < self.features).all()
        ):
            raise ValueError("its nodes make no trees")

    def sum(self, features: np.ndarray) -> np.ndarray:
        """Prediction: float64, shape (rows,); ``features`` (rows, features) has no NaN."""
        trees = len(self.starts)
        at = np.tile(self.starts, len(features))
        asked = np.repeat(np.arange(len(features)), trees)
        inner = np.flatnonzero(self.feature[at] >= 0)
        values = features.astype(self.threshold.dtype)
        while len(inner):
            node = at[inner]
            given, limit = values[asked[inner], self.feature[node]], self.threshold[node]
            left = given <= limit if self.equal_goes_left else given < limit
            at[inner] = self.children[node, np.where(left, 0, 1)]
            inner = inner[self.feature[at[inner]] >= 0]
        found = np.full(len(features), self.base, dtype=self.value.dtype)
        for each in self.value[at].reshape(-1, trees).T:
            found += each
        return found.astype(float)


class StoredBooster:
    """A booster that was read: its library is loaded where it is asked about many rows.

    Parameters
    ----------
    content
        As its library wrote it.
    trees
        The same; None where they are left to the library.
    library
        Name of its module.
    load
        Makes the library's booster from the content.
    """

    def __init__(
        self,
        content: Any,
        trees: BoosterTrees | None,
        library: str,
        load: Callable[[Any], Any],
    ) -> None:
        self.content = content
        self._trees, self._library, self._load = trees, library, load
        self._loaded = load(content) if trees is None else None
        self._asked = 0

    @property
    def loaded(self) -> Any:
        """The library's booster."""
        if self._loaded is None:
            self._loaded = self._load(self.content)
        return self._loaded

    def num_feature(self) -> int:
        """Number of features, by LightGBM's name."""
        return int(self.loaded.num_feature() if self._trees is None else self._trees.features)

    def num_features(self) -> int:
        """Number of features, by XGBoost's name."""
        return int(self.loaded.num_features() if self._trees is None else self._trees.features)

    def trees_for(self, features: np.ndarray) -> BoosterTrees | None:
        """The trees, if they are to be asked about these rows; else the library is."""
        if self._trees is None or self._library in sys.modules or np.isnan(features).any():
            return None
        self._asked += len(features) * len(self._trees.starts)
        return self._trees if self._asked <= FEW else None


def _joined(trees: list[tuple[np.ndarray, ...]]) -> dict[str, np.ndarray]:
    """Arrays of all trees, their children numbered through, behind the first node of each."""
    sizes = [len(tree[0]) for tree in trees]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    feature, threshold, children, value = (
        np.concatenate(part) for part in zip(*trees, strict=True)
    )
    children = children + np.repeat(starts, sizes)[:, None]
    names = ("starts", "feature", "threshold", "children", "value")
    return dict(zip(names, (starts, feature, threshold, children, value), strict=True))


def lightgbm_trees(text: str) -> BoosterTrees | None:
    """Trees of a model in LightGBM's own text; None where this is left to LightGBM.

    Raises
    ------
    ValueError
        When it is no such text.
    """
    head, *parts = text.partition("\nend of trees")[0].split("\nTree=")
    width = re.search(r"^max_feature_idx=(\d+)$", head, re.MULTILINE)
    if width is None or not parts:
        raise ValueError("it has no trees")
    trees = []
    for part in parts:
        lines = dict(line.partition("=")[::2] for line in part.splitlines())
        decisions = set(lines.get("decision_type", "").split())
        if lines.get("num_cat") != "0" or lines.get("is_linear") != "0" or decisions - _NUMERIC:
            return None
        trees.append(_lightgbm_tree(lines))
    return BoosterTrees(
        features=int(width[1]) + 1, base=0.0, equal_goes_left=True, **_joined(trees)
    )


def _lightgbm_tree(lines: dict[str, str]) -> tuple[np.ndarray, ...]:
    """Its inner nodes, then its leaves, which LightGBM numbers from -1 down."""

    def numbers(name: str, kind: type) -> np.ndarray:
        return np.array(lines.get(name, "").split(), dtype=kind)

    value = numbers("leaf_value", float)
    split = numbers("split_feature", np.int32)
    inner, leaves = len(split), len(value)
    threshold = numbers("threshold", float)
    children = np.column_stack([numbers("left_child", np.int64), numbers("right_child", np.int64)])
    if {len(threshold), len(children)} != {inner} or leaves != inner + 1:
        raise ValueError("the arrays of a tree have other lengths")
    children = np.where(children < 0, inner - 1 - children, children)
    return (
        np.concatenate([split, np.full(leaves, -1, np.int32)]),
        np.concatenate([threshold, np.zeros(leaves)]),
        np.concatenate([children, np.zeros((leaves, 2), np.int64)]),
        np.concatenate([np.zeros(inner), value]),
    )


def xgboost_trees(content: bytes) -> BoosterTrees | None:
    """Trees of a model in XGBoost's UBJSON; None where this is left to XGBoost.

    Raises
    ------
    ValueError
        When it is no such model.
    """
    try:
        learner = read_ubjson(content)["learner"]
        booster, parameters = learner["gradient_booster"], learner["learner_model_param"]
        if booster["name"] != "gbtree" or learner["objective"]["name"] != "reg:squarederror":
            return None
        base = np.float32(str(parameters["base_score"]).strip("[]"))
        trees = [_xgboost_tree(tree) for tree in booster["model"]["trees"]]
        return BoosterTrees(
            features=int(parameters["num_feature"]),
            base=float(base),
            equal_goes_left=False,
            **_joined(trees),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"it has no trees: {error!r}") from error


def _xgboost_tree(tree: dict[str, Any]) -> tuple[np.ndarray, ...]:
    children = np.column_stack([tree["left_children"], tree["right_children"]]).astype(np.int64)
    leaf = children[:, 0] < 0
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    feature = np.where(leaf, -1, tree["split_indices"]).astype(np.int32)
    if np.any(tree["split_type"]):
        raise ValueError("it compares categories")
    return feature, condition, np.where(leaf[:, None], 0, children), np.where(leaf, condition, 0)
