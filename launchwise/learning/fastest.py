"""The fastest measured configurations of each case, with which a product answers it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.learning.features import Domain
from launchwise.learning.splits import among, case_columns, cases_in
from launchwise.tables.learning import fastest_measured_schema
from launchwise.tables.rows import row_numbers
from launchwise.tables.times import GAIN_LIMITS
from launchwise.workloads.metrics import MEASURED

RANKED = 10
"""Measured configurations of each case that a product holds, the fastest first."""

JUDGED_COLUMNS = ("time_ms", "time_low_ms", "time_high_ms", "basis", *GAIN_LIMITS)
"""What a product holds of judged times."""


def fastest_measured(times: Mapping[str, pd.DataFrame], domain: Domain) -> pd.DataFrame:
    """The fastest candidates of each measured case, its usual choice and its baseline.

    Returns a table as :func:`launchwise.tables.learning.fastest_measured_schema` declares it: the
    cases in order, of each the configurations by ascending time. ``times``: GPU to judged times.
    """
    spec = domain.spec
    columns = [*JUDGED_COLUMNS, "status", "blind"]
    rows = pd.concat(
        [table[[*spec.key_columns, *columns]] for table in times.values()], ignore_index=True
    )
    rows = rows[rows["status"].isin(MEASURED) & domain.is_candidate(rows)]
    rows = rows.drop(columns="status").reset_index(drop=True)
    keys = case_columns(spec)
    # A problem that was swept since needs no blind test.
    swept = among(rows, cases_in(rows[~rows["blind"]], spec), spec)
    rows = rows[~(rows["blind"] & swept)].reset_index(drop=True)
    rows["is_usual"], rows["is_baseline"] = domain.is_usual(rows), domain.is_baseline(rows)
    cases = row_numbers(rows, keys, ordered=True)
    configurations = row_numbers(rows, spec.tunable_columns, ordered=True)
    order = np.lexsort((configurations, rows["time_ms"].to_numpy(), cases))
    rows = rows.iloc[order].reset_index(drop=True)
    rows["rank"] = rows.groupby(cases[order]).cumcount() + 1
    kept = (rows["rank"] <= RANKED) | rows["is_usual"] | rows["is_baseline"]
    return rows.loc[kept, [*fastest_measured_schema(spec).columns]].reset_index(drop=True)
