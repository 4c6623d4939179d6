"""Training rows of a study, each stored once with the folds that learn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from launchwise.learning.clean import check_training
from launchwise.learning.splits import Fold
from launchwise.tables.learning import rows_of_fold
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class TrainingRows:
    """Training rows of a study and its folds."""

    # As `launchwise.tables.learning.training_schema` declares them.
    rows: pd.DataFrame
    # In the order of the splits.
    folds: Sequence[Fold]

    def of_fold(self, fold: Fold, spec: Spec) -> pd.DataFrame:
        """Rows that a fold learns from.

        Raises UserError when one is of a test problem, or of none of the fold.
        """
        rows = rows_of_fold(self.rows, fold.split, fold.fold)
        where = f"training rows of fold {fold.split}/{fold.fold}"
        check_training(rows, fold.train, fold.test, spec, where)
        return rows
