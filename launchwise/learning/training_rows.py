"""What a study learns from: training rows of every split after the Tukey filter.

Tukey (Exploratory Data Analysis, 1977): a value outside ``[q1 - f IQR, q3 + f IQR]`` is an outlier,
with f = 1.5. Two scopes:

``problem``
    Limits on log time within each (GPU, problem), so that a row is compared with other
    configurations of the same problem. Scaling all times of a problem changes nothing.
``global``
    Limits on raw time over all training rows, as the published study did. Times of large problems
    are large, so this removes problems, not noise; it serves as a comparison.

The upper limit filters; the lower one as well where a study says so, as published. A disturbance
makes a row slower, never faster, and a few configurations far below all others are the goal of
tuning.

Limits are computed from training rows and applied to training rows: a test row has no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.robust import MIN_SAMPLE_SIZE, fences_of_rows
from launchwise.base.scripting import log
from launchwise.base.storage import write_json
from launchwise.experiment.study import Fences, Study
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import FACTS
from launchwise.learning.splits import (
    Case,
    Fold,
    case_codes,
    case_columns,
    keys_among,
    make_splits,
    read_folds,
)
from launchwise.tables.files import write_table
from launchwise.tables.learning import (
    FOLDS,
    fold_name,
    folds_of_rows,
    removed_schema,
    rows_of_fold,
    training_schema,
)
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

Scope = Literal["problem", "global"]
SCOPES: tuple[Scope, ...] = ("problem", "global")


def fences_ms(
    times_ms: np.ndarray, cases: np.ndarray, scope: Scope, factor: float = 1.5
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bound of the Tukey filter for each row, ms, each of shape (rows,).

    They are infinite for fewer than :data:`MIN_SAMPLE_SIZE` rows, or without spread between the
    quartiles (every deviation would then be an outlier, however small).

    ``times_ms``: float64, shape (rows,); ``cases``: number of each row's case, from 0: int64, shape
    (rows,). ``factor``: distance of the bounds from the quartiles, in interquartile ranges.
    """
    if scope == "global":
        values, cases = times_ms, np.zeros(len(times_ms), dtype=np.int64)
    else:
        values = np.log(times_ms)
    rows_of_case = np.bincount(cases)
    order = np.argsort(cases, kind="stable")
    starts = np.cumsum(rows_of_case) - rows_of_case
    bounds = np.tile([-np.inf, np.inf], (len(rows_of_case), 1))
    # Cases with as many rows are computed together: a thousand calls for single ones are slow.
    for count in np.unique(rows_of_case[rows_of_case >= MIN_SAMPLE_SIZE]):
        alike = np.flatnonzero(rows_of_case == count)
        lows, highs = fences_of_rows(values[order[starts[alike, None] + np.arange(count)]], factor)
        spread = highs > lows
        bounds[alike[spread]] = np.column_stack([lows, highs])[spread]
    low, high = (bounds if scope == "global" else np.exp(bounds))[cases].T
    return low, high


@dataclass(frozen=True)
class Cleaned:
    """Outcome of :func:`clean`: tables as :mod:`files` declares them, and counts."""

    training: pd.DataFrame
    removed: pd.DataFrame
    counts: list[dict[str, Any]]


def clean(
    sweeps: Mapping[str, pd.DataFrame], folds: list[Fold], spec: Spec, fences: Fences
) -> Cleaned:
    """Training rows of every fold after the Tukey filter.

    ``removed`` holds what each scope removes, told apart by its column ``scope``; only
    ``fences.scope`` decides what stays in ``training``. ``sweeps``: GPU to its measurements;
    ``folds``: folds of every split. Raises UserError when a fold is left without a training row.
    """
    measured = _measured_rows(sweeps, spec)
    codes, keys = case_codes(measured, spec)
    of_gpu = {gpu: case_codes(sweep, spec) for gpu, sweep in sweeps.items()}
    masks: dict[str, np.ndarray] = {}
    removed, counts = [], []
    for fold in folds:
        asked = keys_among(keys, fold.train)[codes]
        if not asked.any():
            raise UserError("the sweeps", f"splits.{fold.split}", "no training row was measured")
        rows = measured[asked]
        keep, gone, removals = _fenced(rows, fold, fences, codes[asked])
        kept = asked.copy()
        kept[asked] = keep
        check_training(measured[kept], fold.train, fold.test, spec, "the sweeps")
        masks[fold_name(fold.split, fold.fold)] = kept
        removed.append(gone.drop(columns=["status", *FACTS, *spec.stage_columns]))
        counts.append(
            {
                "split": fold.split,
                "fold": fold.fold,
                "rows": sum(int(keys_among(k, fold.train)[c].sum()) for c, k in of_gpu.values()),
                "measured": len(rows),
                "training": int(keep.sum()),
                "scope": fences.scope,
                "removed": removals,
            }
        )
    measured.insert(0, FOLDS, folds_of_rows(masks))
    training = measured[measured[FOLDS] != ""].reset_index(drop=True)
    return Cleaned(training, pd.concat(removed, ignore_index=True), counts)


def _measured_rows(sweeps: Mapping[str, pd.DataFrame], spec: Spec) -> pd.DataFrame:
    columns = [*spec.key_columns, "status", "time_ms", *FACTS, *spec.stage_columns]
    pieces = [sweep.loc[sweep["status"].isin(MEASURED), columns] for sweep in sweeps.values()]
    return pd.concat(pieces, ignore_index=True)


def _fenced(
    rows: pd.DataFrame, fold: Fold, fences: Fences, cases: np.ndarray
) -> tuple[np.ndarray, pd.DataFrame, dict[str, Any]]:
    """Which rows a fold learns from, what each scope removes, and counts of it.

    ``rows``: measured rows of the fold's training cases; ``cases``: number of each row's case:
    int64, shape (rows,).
    """
    times = rows["time_ms"].to_numpy(dtype=float)
    cases = pd.factorize(cases)[0]
    keep = np.ones(len(rows), dtype=bool)
    gone: list[pd.DataFrame] = []
    counts: dict[str, Any] = {}
    for scope in SCOPES:
        low, high = fences_ms(times, cases, scope, fences.factor)
        if fences.sides == "upper":
            low = np.full(len(low), -np.inf)
        inside = (times >= low) & (times <= high)
        if scope == fences.scope:
            keep = inside
        out = rows[~inside].assign(
            scope=scope, lower_ms=_finite(low[~inside]), upper_ms=_finite(high[~inside])
        )
        out.insert(0, "split", fold.split)
        out.insert(1, "fold", fold.fold)
        gone.append(out)
        counts[scope] = _counted(cases, ~inside)
    return keep, pd.concat(gone, ignore_index=True), counts


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.finfo(float).max * np.sign(values))


def _counted(cases: np.ndarray, out: np.ndarray) -> dict[str, Any]:
    """Counts of filtered rows and of problems that lost all rows, which reveal a wrong filter."""
    all_rows = np.bincount(cases)
    lost = np.bincount(cases[out], minlength=len(all_rows))
    return {
        "rows": int(out.sum()),
        "percent": float(100 * out.mean()),
        "problems_touched": int((lost > 0).sum()),
        "problems_lost": int((lost == all_rows).sum()),
    }


def check_training(
    rows: pd.DataFrame, train: tuple[Case, ...], test: tuple[Case, ...], spec: Spec, where: str
) -> None:
    """Refuse training rows that belong to a test case, or to no training case. Raises UserError
    naming the first such row."""
    codes, keys = case_codes(rows, spec)
    for wrong, what in (
        (keys_among(keys, test)[codes], "a test problem is among the training rows"),
        (~keys_among(keys, train)[codes], "a problem outside the split is among the training rows"),
    ):
        if wrong.any():
            row = rows[wrong].iloc[0]
            values = ", ".join(f"{name}={row[name]}" for name in case_columns(spec))
            raise UserError(where, "", f"{what}: {values}")


@dataclass(frozen=True)
class TrainingRows:
    """Training rows of a study and its folds."""

    rows: pd.DataFrame  # as `launchwise.tables.learning.training_schema` declares them
    folds: Sequence[Fold]  # in the order of the splits

    def of_fold(self, fold: Fold, spec: Spec) -> pd.DataFrame:
        """Rows that a fold learns from. Raises UserError when one is of a test problem, or of none
        of the fold."""
        rows = rows_of_fold(self.rows, fold.split, fold.fold)
        where = f"training rows of fold {fold.split}/{fold.fold}"
        check_training(rows, fold.train, fold.test, spec, where)
        return rows


def prepared(
    name: str,
    study: Study,
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    blamed: Mapping[str, Sequence[str]],
    files: tuple[Path, Path, Path],
) -> TrainingRows:
    """Split the cases of a study, filter its training rows, and write both.

    ``sweeps``: GPU to its measurements; ``blamed``: split to the file that holds it and its key
    there, for messages; ``files``: of splits, training rows and filtered rows. Raises UserError
    when a split overlaps itself, or has nothing to learn from or to be tested on.
    """
    spec = domain.spec
    splits, training, removed = files
    made = make_splits(name, study.splits, spec, sweeps, domain.profiles, blamed, study.leave_out)
    write_json(splits, made)
    folds = read_folds(splits)
    if study.train_on == "candidates":
        sweeps = {gpu: rows[domain.is_candidate(rows)] for gpu, rows in sweeps.items()}
    cleaned = clean(sweeps, folds, spec, study.fences)
    facts = {"counts": cleaned.counts, "fences": study.fences.model_dump(mode="json")}
    write_table(training, cleaned.training, training_schema(spec), facts)
    write_table(removed, cleaned.removed, removed_schema(spec), facts)
    for count in cleaned.counts:
        log.info(
            "%s %s: %d of %d measured rows kept",
            count["split"], count["fold"], count["training"], count["measured"],
        )  # fmt: skip
    return TrainingRows(cleaned.training, folds)
