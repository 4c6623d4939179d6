"""Reads and writes scikit-learn estimators in skops' format, which cannot run code."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import whole_file

LEVEL = 1
"""Level of compression: more takes longer and gains little."""

TRUSTED = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.tree._classes.DecisionTreeRegressor",
        "sklearn.ensemble._forest.RandomForestRegressor",
    }
)
"""Types trusted in a model's file, beside those that skops trusts."""


def save_estimator(path: Path, estimator: Any) -> None:
    """Write a fitted estimator, whole or not at all."""
    from skops.io import dump

    # As they are, the trees of a forest take six times the space.
    with whole_file(path) as scratch:
        dump(estimator, scratch, compression=zipfile.ZIP_DEFLATED, compresslevel=LEVEL)


def load_estimator(path: Path) -> Any:
    """Read a fitted estimator.

    Raises
    ------
    UserError
        When the file is missing, broken, or names a type outside :data:`TRUSTED`.
    """
    from skops.io import get_untrusted_types, load

    try:
        strange = sorted(set(get_untrusted_types(file=path)) - TRUSTED)
        if strange:
            raise UserError(path, "", f"holds a type that launchwise does not trust: {strange[0]}")
        return load(path, trusted=sorted(TRUSTED))
    except UserError:
        raise
    except Exception as error:  # skops, zipfile and json each raise their own
        raise UserError(path, "", f"cannot be read as a model: {error}") from error
