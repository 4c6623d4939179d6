"""Boosted trees of LightGBM and XGBoost: stored as their own text, asked without them.

Few rows are asked of arrays (:mod:`launchwise.learning.trees`): LightGBM compares and adds up in
float64, XGBoost in float32. For many rows a library is worth its import.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field

from launchwise.base import work
from launchwise.base.errors import UserError
from launchwise.base.storage import write_bytes
from launchwise.learning.recommender import Hyperparameters, tried
from launchwise.learning.trees import LEAF, Trees, joined

FAST = 4  # Level of deflating: the next ones take twice as long for a tenth
MOST_BYTES = 1 << 30  # Longest text of a model that is read
FEW = 1_000_000  # Rows times trees that NumPy asks faster than a library is imported

_NUMERIC = {"0", "2"}
"""Decisions of LightGBM by ``<=`` alone: no category, and nothing that stands for a missing one."""


@dataclass(frozen=True)
class Library:
    """A library of boosted trees."""

    name: str  # name of its module
    # Arrays of the trees in a text; None where only the library can ask them.
    arrays: Callable[[str], Trees | None]
    # Its booster of a text; like the arrays a ValueError when it is none.
    load: Callable[[str], Any]
    # Text, prediction of features, number of trees and of features of a booster.
    text: Callable[[Any], str]
    ask: Callable[[Any, np.ndarray], np.ndarray]
    trees: Callable[[Any], int]
    features: Callable[[Any], int]


class Booster:
    """Boosted trees, fitted by their library or read from its text."""

    FILE: ClassVar[str] = "model.gz"
    library: ClassVar[Library]

    def __init__(self, fitted: Any = None, text: str = "") -> None:
        """From the library's booster, or from its text (ValueError when it is none)."""
        self._fitted, self._text, self._asked = fitted, text, 0
        self._trees = self.library.arrays(text) if fitted is None else None
        if fitted is None and self._trees is None:
            self._fitted = self.library.load(text)

    @property
    def _loaded(self) -> Any:
        if self._fitted is None:
            self._fitted = self.library.load(self._text)
        return self._fitted

    @property
    def features(self) -> int:
        return self._trees.features if self._trees else self.library.features(self._loaded)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Sum of the trees: float64, shape (rows,), of float32 (rows, features)."""
        if self._trees and self.library.name not in sys.modules and not np.isnan(features).any():
            self._asked += len(features) * len(self._trees.starts)
            if self._asked <= FEW:
                return self._trees.sum(features)
        work.count(work.ASKED, len(features) * self.library.trees(self._loaded))
        return np.asarray(self.library.ask(self._loaded, features), dtype=float)

    @property
    def text(self) -> str:
        """The library's own text."""
        return self._text or self.library.text(self._fitted)

    def write(self, path: Path) -> None:
        """Write the text, deflated: a fourth of its size."""
        write_bytes(path, gzip.compress(self.text.encode(), FAST, mtime=0))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what :meth:`write` wrote; UserError when it cannot be read as a model."""
        try:
            with gzip.open(path) as file:
                return cls(text=file.read(MOST_BYTES).decode())
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error


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


def lightgbm_trees(text: str) -> Trees | None:
    """Trees of a model in LightGBM's own text; None where this is left to LightGBM. Raises
    ValueError when it is no such text."""
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


def xgboost_trees(text: str) -> Trees | None:
    """Trees of a model in XGBoost's JSON; None where this is left to XGBoost. Raises ValueError
    when it is no such model."""
    try:
        learner = json.loads(text)["learner"]
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
    except (KeyError, TypeError, IndexError, RecursionError) as error:
        raise ValueError(f"it has no trees: {error!r}") from error


def _xgboost_tree(tree: dict[str, Any]) -> tuple[np.ndarray, ...]:
    children = np.column_stack([tree["left_children"], tree["right_children"]]).astype(np.int64)
    leaf = children[:, 0] < 0
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    feature = np.where(leaf, LEAF, tree["split_indices"]).astype(np.int32)
    if np.any(tree["split_type"]):
        raise ValueError("it compares categories")
    return feature, condition, children, np.where(leaf, condition, 0)


def _load_lightgbm(text: str) -> Any:
    import lightgbm
    from lightgbm.basic import LightGBMError

    try:
        return lightgbm.Booster(model_str=text)
    except LightGBMError as error:
        raise ValueError(str(error)) from error


def _load_xgboost(text: str) -> Any:
    import xgboost

    booster = xgboost.Booster({"nthread": 1})
    try:
        booster.load_model(bytearray(text.encode()))
    except xgboost.core.XGBoostError as error:
        raise ValueError(str(error)) from error
    return booster


class LightgbmBooster(Booster):
    """Boosted trees of LightGBM."""

    library = Library(
        name="lightgbm",
        arrays=lightgbm_trees,
        load=_load_lightgbm,
        text=lambda fitted: str(fitted.model_to_string()),
        ask=lambda fitted, features: fitted.predict(features, num_threads=1),
        trees=lambda fitted: int(fitted.num_trees()),
        features=lambda fitted: int(fitted.num_feature()),
    )


class XgboostBooster(Booster):
    """Boosted trees of XGBoost."""

    library = Library(
        name="xgboost",
        arrays=xgboost_trees,
        load=_load_xgboost,
        text=lambda fitted: bytes(fitted.save_raw(raw_format="json")).decode(),
        ask=lambda fitted, features: fitted.inplace_predict(features),
        trees=lambda fitted: int(fitted.num_boosted_rounds()),
        features=lambda fitted: int(fitted.num_features()),
    )


def boosted(
    parameters: Mapping[str, Any],
    features: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    group: np.ndarray | None = None,
    **more: Any,
) -> LightgbmBooster:
    """Trees that LightGBM fits.

    ``parameters``: :class:`BoostingParameters`; others are left out.
    ``features``, ``target``, ``weights``: float32 (rows, features); float64 (rows,); float64
        (rows,), all alike when left out.
    ``group``: lengths of the lists that rows are ranked in, in their order: int64, shape (lists,).
    ``**more``: further options of LightGBM.
    """
    import lightgbm

    work.count(work.FITTED, len(target) * parameters["rounds"])
    own = {name: parameters[name] for name in BoostingParameters.model_fields if name != "rounds"}
    data = lightgbm.Dataset(features, target, weight=weights, group=group, params={"verbosity": -1})
    # Without this it is written as text and read again before it is handed out.
    fitted = lightgbm.train(
        {**own, **OPTIONS, **more}, data, parameters["rounds"], keep_training_booster=True
    )
    return LightgbmBooster(fitted)
