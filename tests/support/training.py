"""Training of a single model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.row_cap import ALL_ROWS, RowCap
from launchwise.learning.training import Asked, train_models


def train_model(
    name: str,
    entry: ModelEntry,
    domain: Domain,
    training: Path,
    options: Search,
    seed: int,
    folder: Path,
    cap: RowCap = ALL_ROWS,
) -> dict[str, Any]:
    """Fit one model on every fold and write it to ``folder``; its summary."""
    asked = {name: Asked(entry, folder)}
    return train_models(asked, domain, training, options, seed, cap=cap)[name]
