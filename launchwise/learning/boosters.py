"""Options and files shared by the recommenders that use LightGBM."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import Field

from launchwise.base import work
from launchwise.base.errors import UserError
from launchwise.base.storage import write_bytes
from launchwise.learning.booster_trees import StoredBooster, lightgbm_trees
from launchwise.learning.hyperparameters import Hyperparameters, tried

FAST = 4
"""Level of deflating: the next ones take twice as long for a tenth."""

MOST_BYTES = 1 << 30
"""Longest text of a model that is read."""

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


CHOSEN = (
    "learning_rate",
    "num_leaves",
    "min_data_in_leaf",
    "bagging_fraction",
    "feature_fraction",
    "seed",
)
"""Hyper-parameters that LightGBM knows by the same name."""


def boosted(
    parameters: Mapping[str, Any],
    features: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None = None,
    group: np.ndarray | None = None,
    **more: Any,
) -> Any:
    """A fitted ``lightgbm.Booster``.

    Parameters
    ----------
    parameters
        ``rounds`` and :data:`CHOSEN`.
    features, target, weights
        float32 (rows, features); float64 (rows,); float64 (rows,), all alike when left out.
    group
        Lengths of the lists that rows are ranked in, in their order: int64, shape (lists,).
    **more
        Further options of LightGBM.
    """
    import lightgbm

    work.count(work.FITTED, len(target) * parameters["rounds"])
    settings = {name: parameters[name] for name in CHOSEN} | {**OPTIONS, **more}
    data = lightgbm.Dataset(features, target, weight=weights, group=group, params={"verbosity": -1})
    # Without this it is written as text and read again before it is handed out.
    return lightgbm.train(
        settings, data, num_boost_round=parameters["rounds"], keep_training_booster=True
    )


def sum_of_trees(booster: Any, features: np.ndarray) -> np.ndarray:
    """Prediction of a booster, fitted or read: float64, shape (rows,)."""
    if isinstance(booster, StoredBooster):
        found = booster.sum(features)
        if found is not None:
            return found
        booster = booster.loaded
    work.count(work.ASKED, len(features) * booster.num_trees())
    return np.asarray(booster.predict(features, num_threads=1), dtype=float)


def write_booster(path: Path, booster: Any) -> None:
    """Write a booster as LightGBM's own text, deflated: a fourth of its size."""
    text = booster.content if isinstance(booster, StoredBooster) else booster.model_to_string()
    write_bytes(path, gzip.compress(text.encode(), FAST, mtime=0))


def read_booster(path: Path) -> StoredBooster:
    """Read what :func:`write_booster` wrote.

    Raises
    ------
    UserError
        When the file cannot be read as a model.
    """
    try:
        with gzip.open(path) as file:
            text = file.read(MOST_BYTES).decode()
        return StoredBooster(text, lightgbm_trees(text), "lightgbm", _loaded)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UserError(path, "", f"cannot be read as a model: {error}") from error


def _loaded(text: str) -> Any:
    import lightgbm
    from lightgbm.basic import LightGBMError

    try:
        return lightgbm.Booster(model_str=text)
    except LightGBMError as error:
        raise ValueError(str(error)) from error
