"""Training rows of a study, each stored once with the folds that learn from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.learning.clean import check_training
from launchwise.learning.splits import Case
from launchwise.tables.files import read_facts, read_table
from launchwise.tables.folds import FOLDS, fold_name, named_folds, rows_of_fold
from launchwise.tables.learning import training_schema
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class TrainingFold:
    """A fold of a file of training rows.

    Parameters
    ----------
    train, test
        Cases that it learns from, and those that it will be asked.
    """

    split: str
    fold: str
    train: tuple[Case, ...]
    test: tuple[Case, ...]


@dataclass(frozen=True)
class TrainingRows:
    """Content of a file of training rows.

    Parameters
    ----------
    rows
        As :func:`launchwise.tables.learning.training_schema` declares them.
    folds
        In the order of the splits.
    """

    rows: pd.DataFrame
    folds: Sequence[TrainingFold]

    def of_fold(self, split: str, fold: str) -> pd.DataFrame:
        """See :func:`rows_of_fold`."""
        return rows_of_fold(self.rows, split, fold)

    def __iter__(self) -> Iterator[tuple[TrainingFold, pd.DataFrame]]:
        """Every fold with its rows."""
        return ((each, self.of_fold(each.split, each.fold)) for each in self.folds)


def read_training(path: str | Path, spec: Spec) -> TrainingRows:
    """Training rows of a study, checked against the cases that the file says it was made for.

    Raises
    ------
    UserError
        When the file is broken, or holds a row of a test case or of no known fold.
    """
    rows = read_table(path, training_schema(spec))
    folds = tuple(
        TrainingFold(each["split"], each["fold"], _cases(each["train"]), _cases(each["test"]))
        for each in read_facts(path)["folds"]
    )
    known = {fold_name(each.split, each.fold) for each in folds}
    if strange := [name for name in named_folds(rows) if name not in known]:
        raise UserError(path, FOLDS, f"{strange[0]} is not among the folds of this file")
    found = TrainingRows(rows, folds)
    for fold, of_fold in found:
        check_training(of_fold, fold.train, fold.test, spec, str(path))
    return found


def _cases(plain: list[dict[str, Any]]) -> tuple[Case, ...]:
    return tuple(Case(case["gpu"], case["problem"]) for case in plain)
