"""A small study that learns in memory: rows of the tests' workload, folds, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.experiment.settings import Search
from launchwise.experiment.study import Fences, ModelEntry
from launchwise.learning.clean import clean
from launchwise.learning.features import Domain
from launchwise.learning.learn import Asked, Learning
from launchwise.learning.row_cap import ALL_ROWS, RowCap
from launchwise.learning.splits import Fold
from launchwise.learning.training_rows import TrainingRows


def entry(kind: str, **parameters: Any) -> ModelEntry:
    """A model without search."""
    return ModelEntry(kind=kind, title=kind, trials=0, parameters=parameters)


def learning(
    models: Mapping[str, Asked],
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    folds: Sequence[Fold],
    options: Search | None = None,
    cap: RowCap = ALL_ROWS,
    rules: str = "",
) -> Learning:
    """What a study learns from its sweeps, with seed 7."""
    rows = clean(sweeps, list(folds), domain.spec, Fences()).training
    known = TrainingRows(rows, folds)
    return Learning(models, known, domain, options or Search(), 7, cap, rules)
