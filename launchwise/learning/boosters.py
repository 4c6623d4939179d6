"""What all that boosts with LightGBM has in common: options and files."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

from launchwise.errors import UserError
from launchwise.storage import write_text

OPTIONS = MappingProxyType(
    {
        "objective": "regression",
        "bagging_freq": 1,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
)
"""The same trees every time, on one thread, without a word."""


def write_booster(path: Path, booster: Any) -> None:
    """Write a fitted ``lightgbm.Booster`` as its own text."""
    write_text(path, booster.model_to_string())


def read_booster(path: Path) -> Any:
    """Read what :func:`write_booster` wrote.

    Raises
    ------
    UserError
        When the file cannot be read as a model.
    """
    import lightgbm

    try:
        return lightgbm.Booster(model_str=path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, lightgbm.basic.LightGBMError) as error:
        raise UserError(path, "", f"cannot be read as a model: {error}") from error
