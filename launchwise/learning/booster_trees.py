"""Boosted trees of LightGBM and XGBoost as arrays, for answers about few rows.

LightGBM compares and adds up in float64, XGBoost in float32.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from launchwise.learning.trees import LEAF, Trees, joined
from launchwise.learning.ubjson import read_ubjson

FEW = 1_000_000
"""Rows times trees that NumPy asks faster than a library is imported."""

_NUMERIC = {"0", "2"}
"""Decisions of LightGBM by ``<=`` alone: no category, and nothing that stands for a missing one."""


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
        trees: Trees | None,
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

    def sum(self, features: np.ndarray) -> np.ndarray | None:
        """Sum of the trees: float64, shape (rows,); None where the library is to be asked."""
        if self._trees is None or self._library in sys.modules or np.isnan(features).any():
            return None
        self._asked += len(features) * len(self._trees.starts)
        return self._trees.sum(features) if self._asked <= FEW else None


def lightgbm_trees(text: str) -> Trees | None:
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
    return Trees(features=int(width[1]) + 1, base=0.0, equal_goes_left=True, **joined(trees))


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
        np.concatenate([split, np.full(leaves, LEAF, np.int32)]),
        np.concatenate([threshold, np.zeros(leaves)]),
        np.concatenate([children, np.zeros((leaves, 2), np.int64)]),
        np.concatenate([np.zeros(inner), value]),
    )


def xgboost_trees(content: bytes) -> Trees | None:
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
        return Trees(
            features=int(parameters["num_feature"]),
            base=float(base),
            equal_goes_left=False,
            **joined(trees),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"it has no trees: {error!r}") from error


def _xgboost_tree(tree: dict[str, Any]) -> tuple[np.ndarray, ...]:
    children = np.column_stack([tree["left_children"], tree["right_children"]]).astype(np.int64)
    leaf = children[:, 0] < 0
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    feature = np.where(leaf, LEAF, tree["split_indices"]).astype(np.int32)
    if np.any(tree["split_type"]):
        raise ValueError("it compares categories")
    return feature, condition, children, np.where(leaf, condition, 0)
