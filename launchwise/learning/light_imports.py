"""Imports boosting libraries without scikit-learn, for processes that answer one question."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from launchwise.learning.recommenders import is_own

LIBRARIES = {
    "lambdarank": "lightgbm",
    "learnt": "lightgbm",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
}
"""Kind to the library that it is made with."""


def import_boosters_alone(kinds: Iterable[str], workload: Path | None) -> None:
    """Import the libraries of some kinds as they are where scikit-learn is not installed.

    LightGBM and XGBoost import it for classes that no kind here uses, which takes longer than an
    answer. Nothing happens where scikit-learn is loaded, or where one of the kinds is the
    workload's own, which may use those classes.
    """
    kinds = [*kinds]
    if "sklearn" in sys.modules or any(is_own(kind, workload) for kind in kinds):
        return
    # An import of a module that is None fails as if it were missing.
    sys.modules["sklearn"] = None  # type: ignore[assignment]
    try:
        for name in sorted({LIBRARIES[kind] for kind in kinds if kind in LIBRARIES}):
            importlib.import_module(name)
    finally:
        del sys.modules["sklearn"]
