"""Tables of predicted times, made from recommendations."""

from __future__ import annotations

import pandas as pd

from launchwise.tables.learning import predicted_column
from launchwise.workloads.spec import Spec


def predicted_times(recommendations: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Predicted times as the rule ``recommend`` writes them: a row per candidate, models beside."""
    keys = ["split", "fold", *spec.key_columns]
    table = recommendations[keys].drop_duplicates(ignore_index=True)
    for model, rows in recommendations.groupby("model", sort=False):
        if rows["predicted_ms"].notna().any():
            named = rows.rename(columns={"predicted_ms": predicted_column(str(model))})
            table = table.merge(named[[*keys, predicted_column(str(model))]], on=keys, how="left")
    return table
