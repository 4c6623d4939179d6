"""Boosted trees of LightGBM and XGBoost, and what they are as arrays.

LightGBM compares and adds up in float64, XGBoost in float32.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import Field

from launchwise.base import work
from launchwise.base.errors import UserError
from launchwise.learning.recommender import Hyperparameters, tried
from launchwise.learning.trees import LEAF, Grown, Trees, joined

OPTIONS = MappingProxyType(
    {
        "objective": "regression",
        "bagging_freq": 1,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
)
"""Deterministic training on one thread, without log output."""


class BoostingParameters(Hyperparameters):
    """Hyper-parameters of LightGBM."""

    rounds: int = Field(100, ge=1)
    learning_rate: float = tried(0.15, 0.05, 0.3, log=True, gt=0)
    num_leaves: int = tried(47, 15, 127, log=True, ge=2, le=131072)
    min_data_in_leaf: int = tried(5, 2, 20, ge=0)
    bagging_fraction: float = tried(0.8, 0.5, 1.0, gt=0, le=1)
    feature_fraction: float = tried(0.8, 0.5, 1.0, gt=0, le=1)


def lightgbm_trees(text: str, features: int) -> Trees:
    """Trees of a model in LightGBM's own text, of so many features."""
    _, *parts = text.partition("\nend of trees")[0].split("\nTree=")
    trees = [
        _lightgbm_tree(dict(line.partition("=")[::2] for line in part.splitlines()))
        for part in parts
    ]
    return Trees(features, is_mean=False, **joined(trees))


def _lightgbm_tree(lines: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Its inner nodes, then its leaves, which LightGBM numbers from -1 down."""

    def numbers(name: str, kind: type) -> np.ndarray:
        return np.array(lines[name].split(), dtype=kind)

    value, split = numbers("leaf_value", float), numbers("split_feature", np.int32)
    inner, leaves = len(split), len(value)
    threshold, decisions = numbers("threshold", float), numbers("decision_type", np.int64)
    children = np.column_stack([numbers("left_child", np.int64), numbers("right_child", np.int64)])
    # Bit 3: NaN goes where bit 1 says (left if it is set); else it counts as 0.
    nan_goes_left = np.where(decisions & 8, (decisions & 2) > 0, threshold >= 0)
    return {
        "feature": np.concatenate([split, np.full(leaves, LEAF, np.int32)]),
        "threshold": np.concatenate([threshold, np.zeros(leaves)]),
        "children": np.concatenate(
            [np.where(children < 0, inner - 1 - children, children), np.zeros((leaves, 2), int)]
        ),
        "value": np.concatenate([np.zeros(inner), value]),
        "nan_goes_left": np.concatenate([nan_goes_left, np.zeros(leaves, bool)]),
    }


UNCHANGED = ("reg:squarederror", "reg:pseudohubererror", "reg:absoluteerror")
"""Objectives of XGBoost whose prediction is the sum of the trees itself."""


def grown_by_xgboost(fitted: Any) -> Grown:
    """Trees of a booster of XGBoost."""
    count = fitted.num_boosted_rounds()
    arrays = partial(xgboost_trees, fitted)
    return Grown(count, fitted.inplace_predict, arrays)


def xgboost_trees(fitted: Any) -> Trees:
    """Trees of a booster of XGBoost. Raises UserError for an objective beyond :data:`UNCHANGED`."""
    learner = json.loads(fitted.save_raw(raw_format="json"))["learner"]
    if (objective := learner["objective"]["name"]) not in UNCHANGED:
        message = f"{objective!r} cannot be stored: use {', '.join(UNCHANGED)}"
        raise UserError("xgboost", "objective", message)
    trees = [_xgboost_tree(tree) for tree in learner["gradient_booster"]["model"]["trees"]]
    return Trees(
        fitted.num_features(),
        base=float(np.float32(learner["learner_model_param"]["base_score"].strip("[]"))),
        equal_goes_left=False,
        is_mean=False,
        **joined(trees),
    )


def _xgboost_tree(tree: Mapping[str, Any]) -> dict[str, np.ndarray]:
    children = np.column_stack([tree["left_children"], tree["right_children"]])
    leaf = children[:, 0] < 0
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    feature = np.where(leaf, LEAF, tree["split_indices"]).astype(np.int32)
    value = np.where(leaf, condition, 0)
    return {"feature": feature, "threshold": condition, "children": children, "value": value}


def boosted(
    parameters: Mapping[str, Any],
    features: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    **more: Any,
) -> Grown:
    """Trees that LightGBM fits.

    ``parameters``: :class:`BoostingParameters`; others are left out.
    ``features``, ``target``, ``weights``: float32 (rows, features); float64 (rows,); float64
        (rows,), all alike when left out.
    ``**more``: further options of LightGBM.
    """
    import lightgbm

    work.count(work.FITTED, len(target) * parameters["rounds"])
    own = {name: parameters[name] for name in BoostingParameters.model_fields if name != "rounds"}
    data = lightgbm.Dataset(features, target, weight=weights, params={"verbosity": -1})
    # Without this it is written as text and read again before it is handed out.
    fitted = lightgbm.train(
        {**own, **OPTIONS, **more}, data, parameters["rounds"], keep_training_booster=True
    )
    width = features.shape[1]
    arrays = lambda: lightgbm_trees(fitted.model_to_string(), width)  # noqa: E731
    return Grown(fitted.num_trees(), partial(fitted.predict, num_threads=1), arrays)
