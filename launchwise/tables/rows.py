"""Selections from measurements: the fastest row per key, and the baseline's rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from launchwise.workloads.space import baseline
from launchwise.workloads.spec import Spec


def fastest_rows(rows: pd.DataFrame, columns: Sequence[str], spec: Spec) -> pd.DataFrame:
    """The row of least ``time_ms`` of each combination of ``columns``.

    Among equal times the first configuration in the order of its columns, whatever the order of
    ``rows``.

    Parameters
    ----------
    rows
        Configurations with ``time_ms``, none of them NaN.

    Returns
    -------
    pandas.DataFrame
        Rows of ``rows`` with their index, by ascending time.
    """
    order = ["time_ms", *spec.tunable_columns]
    return rows.sort_values(order, kind="stable").drop_duplicates(list(columns))


def is_baseline(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Whether each row has the baseline's configuration: bool, shape (rows,)."""
    found = np.ones(len(rows), dtype=bool)
    for name, value in baseline(spec).items():
        found &= (rows[name] == value).to_numpy()
    return found
