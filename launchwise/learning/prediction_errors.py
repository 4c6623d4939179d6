"""Errors of predicted run times, by groups of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning import metrics
from launchwise.learning.analytical import CostModel
from launchwise.learning.features import Domain
from launchwise.learning.splits import case_codes

ALL = "all"
BOUND = "bound by"
"""Group by the resource that limits a row in the cost model."""
MIN_GROUP_ROWS = 20
"""Fewest rows of a group that is reported."""


def prediction_errors(table: pd.DataFrame, domain: Domain) -> list[dict[str, Any]]:
    """Errors of predicted times of test rows, by split, model, GPU, and what rows have in common.

    Parameters
    ----------
    table
        Recommendations beside what was measured
        (:meth:`launchwise.learning.evaluate.Truth.beside`). Rows without a prediction, or without
        a time that was measured more than once (``slow``), are left out.

    Returns
    -------
    list of dict
        ``split``, ``model``, ``gpu`` (``all`` for all together), ``by`` and ``value`` (a column and
        its value, both empty for all rows), and the figures of :func:`figures`.
    """
    known = table[table["predicted_ms"].notna() & (table["status"] == "ok")].reset_index(drop=True)
    if known.empty:
        return []
    keys = [*domain.spec.key_columns]
    distinct = known[keys].drop_duplicates().reset_index(drop=True)
    bounds = distinct.assign(
        **{BOUND: CostModel(domain.spec, domain.profiles).estimate(distinct).bound_by()}
    )
    known = known.merge(bounds, on=keys, how="left")
    codes, _ = case_codes(known, domain.spec)
    known = known.assign(
        case=codes, error=(known["predicted_ms"] / known["time_ms"] - 1).abs().to_numpy()
    )
    found = []
    for (split, model), rows in known.groupby(["split", "model"], sort=False):
        for gpu, by, value, part in _parts(rows, domain):
            named = {"split": split, "model": model, "gpu": gpu, "by": by, "value": value}
            found.append({**named, **figures(part)})
    return found


def _parts(rows: pd.DataFrame, domain: Domain) -> Iterator[tuple[str, str, str, pd.DataFrame]]:
    """All rows, each GPU's, and those of each value of what splits rows into few groups."""
    yield ALL, "", "", rows
    for gpu, part in rows.groupby("gpu", sort=False):
        yield str(gpu), "", "", part
    for name in ("variant", BOUND, *domain.spec.listed_columns):
        if rows[name].nunique() > 1:
            for value, part in rows.groupby(name, sort=False):
                if len(part) >= MIN_GROUP_ROWS:
                    yield ALL, name, str(value), part


def figures(rows: pd.DataFrame) -> dict[str, Any]:
    """Errors of one model over some rows.

    Returns
    -------
    dict
        ``rows``; ``median_percent``, ``mape_percent`` and ``p90_percent`` of |predicted / measured
        - 1|; ``ratio``, the geometric mean of predicted / measured; ``spearman`` over all rows, and
        ``spearman_within``, its mean over problems that have one. None where there is none.
    """
    error = 100 * rows["error"].to_numpy(dtype=float)
    predicted = rows["predicted_ms"].to_numpy(dtype=float)
    measured = rows["time_ms"].to_numpy(dtype=float)
    within = [
        metrics.spearman(part["predicted_ms"].to_numpy(), part["time_ms"].to_numpy())
        for _, part in rows.groupby("case", sort=False)
    ]
    known = [each for each in within if np.isfinite(each)]
    found = {
        "median_percent": float(np.median(error)),
        "mape_percent": float(error.mean()),
        "p90_percent": float(np.quantile(error, 0.9)),
        "ratio": metrics.geometric_mean(predicted / measured),
        "spearman": metrics.spearman(predicted, measured),
        "spearman_within": float(np.mean(known)) if known else float("nan"),
    }
    return {
        "rows": len(rows),
        **{name: value if np.isfinite(value) else None for name, value in found.items()},
    }
