"""Training rows of every split after the Tukey filter.

Tukey (Exploratory Data Analysis, 1977): a value outside ``[q1 - f IQR, q3 + f IQR]`` is an outlier,
with f = 1.5. Two scopes:

``problem``
    Fences on log time within each (GPU, problem), so that a row is compared with other
    configurations of the same problem. Scaling all times of a problem changes nothing.
``global``
    Fences on raw time over all training rows, as the published study did. Times of large problems
    are large, so this throws away problems, not noise; it is here to be compared.

Fences are computed from training rows and applied to training rows: a test row has no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.tukey import MIN_SAMPLE_SIZE, quartile_fences
from launchwise.experiment.study import Fences
from launchwise.learning.build_facts import FACTS
from launchwise.learning.splits import Case, Fold, among, case_codes, case_columns
from launchwise.tables.schemas import MEASURED
from launchwise.workloads.spec import Spec

Scope = Literal["problem", "global"]
SCOPES: tuple[Scope, ...] = ("problem", "global")


def tukey_fences(values: np.ndarray, factor: float = 1.5) -> tuple[float, float]:
    """Lower and upper bound of the Tukey filter for ``values``.

    Parameters
    ----------
    values
        Real numbers, shape (n,); quartiles by linear interpolation.
    factor
        Distance of the bounds from the quartiles, in interquartile ranges.

    Returns
    -------
    tuple of float
        ``-inf, inf`` for fewer than :data:`MIN_SAMPLE_SIZE` values, or without spread
        between the quartiles (every deviation would then be an outlier, however small).
    """
    if len(values) < MIN_SAMPLE_SIZE:
        return -np.inf, np.inf
    low, high = quartile_fences(values, factor)
    return (low, high) if high > low else (-np.inf, np.inf)


def fences_ms(
    rows: pd.DataFrame, spec: Spec, scope: Scope, factor: float = 1.5
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bound of the Tukey filter for each row, ms, each of shape (rows,)."""
    times = rows["time_ms"].to_numpy(dtype=float)
    if scope == "global":
        low, high = tukey_fences(times, factor)
        return np.full(len(rows), low), np.full(len(rows), high)
    codes, keys = case_codes(rows, spec)
    logs = np.log(times)
    order = np.argsort(codes, kind="stable")
    pieces = np.split(order, np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1])
    pairs = np.array([tukey_fences(logs[piece], factor) for piece in pieces]).reshape(-1, 2)
    bounds = np.exp(pairs)
    return bounds[codes, 0], bounds[codes, 1]


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

    Parameters
    ----------
    sweeps
        GPU to its measurements.
    folds
        Folds of every split.

    Returns
    -------
    Cleaned
        ``removed`` holds what each scope removes, told apart by its column ``scope``; only
        ``fences.scope`` decides what stays in ``training``.

    Raises
    ------
    UserError
        When a fold is left without a training row.
    """
    training, removed, counts = [], [], []
    for fold in folds:
        rows = _training_rows(sweeps, fold, spec)
        measured = rows[rows["status"].isin(MEASURED)]
        if measured.empty:
            raise UserError("the sweeps", f"splits.{fold.split}", "no training row was measured")
        keep, gone, removals = _fenced(measured, fold, spec, fences)
        training.append(keep)
        removed.append(gone)
        counts.append(
            {
                "split": fold.split,
                "fold": fold.fold,
                "rows": len(rows),
                "measured": len(measured),
                "training": len(keep),
                "scope": fences.scope,
                "removed": removals,
            }
        )
    return Cleaned(
        pd.concat(training, ignore_index=True), pd.concat(removed, ignore_index=True), counts
    )


def _training_rows(sweeps: Mapping[str, pd.DataFrame], fold: Fold, spec: Spec) -> pd.DataFrame:
    gpus = dict.fromkeys(case.gpu for case in fold.train)
    columns = [*spec.key_columns, "status", "time_ms", *FACTS, *spec.stage_columns]
    pieces = [sweeps[gpu].loc[:, columns] for gpu in gpus]
    pieces = [piece[among(piece, fold.train, spec)] for piece in pieces]
    rows = pd.concat(pieces, ignore_index=True)
    rows.insert(0, "split", fold.split)
    rows.insert(1, "fold", fold.fold)
    return rows


def _fenced(
    measured: pd.DataFrame, fold: Fold, spec: Spec, fences: Fences
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    times = measured["time_ms"].to_numpy(dtype=float)
    keep = np.ones(len(measured), dtype=bool)
    gone: list[pd.DataFrame] = []
    counts: dict[str, Any] = {}
    for scope in SCOPES:
        low, high = fences_ms(measured, spec, scope, fences.factor)
        inside = (times >= low) & (times <= high)
        if scope == fences.scope:
            keep = inside
        out = measured[~inside].assign(
            scope=scope, lower_ms=_finite(low[~inside]), upper_ms=_finite(high[~inside])
        )
        gone.append(out)
        counts[scope] = _counted(measured, ~inside, spec)
    check_training(measured[keep], fold.train, fold.test, spec, "the sweeps")
    return (
        measured[keep],
        pd.concat(gone, ignore_index=True).drop(columns=["status", *FACTS, *spec.stage_columns]),
        counts,
    )


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.finfo(float).max * np.sign(values))


def _counted(rows: pd.DataFrame, out: np.ndarray, spec: Spec) -> dict[str, Any]:
    """Counts of filtered rows and of problems that lost all rows, which reveal a wrong filter."""
    codes, keys = case_codes(rows, spec)
    all_rows = np.bincount(codes, minlength=len(keys))
    lost = np.bincount(codes[out], minlength=len(keys))
    return {
        "rows": int(out.sum()),
        "percent": float(100 * out.mean()),
        "problems_touched": int((lost > 0).sum()),
        "problems_lost": int((lost == all_rows).sum()),
    }


def check_training(
    rows: pd.DataFrame,
    train: tuple[Case, ...],
    test: tuple[Case, ...],
    spec: Spec,
    where: str,
) -> None:
    """Refuse training rows that belong to a test case, or to no training case.

    Raises
    ------
    UserError
        Naming the first such row.
    """
    for wrong, what in (
        (among(rows, test, spec), "a test problem is among the training rows"),
        (~among(rows, train, spec), "a problem outside the split is among the training rows"),
    ):
        if wrong.any():
            row = rows[wrong].iloc[0]
            values = ", ".join(f"{name}={row[name]}" for name in case_columns(spec))
            raise UserError(where, "", f"{what}: {values}")
