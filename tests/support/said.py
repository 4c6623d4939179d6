"""What methods say of test candidates, made from recommendations that a test writes down."""

from __future__ import annotations

import numpy as np
import pandas as pd

from launchwise.learning.truth import Learnt
from launchwise.tables.learning import SAID
from launchwise.workloads.spec import Spec


def learnt_of(recommendations: pd.DataFrame, spec: Spec) -> Learnt:
    """What models say: each recommends its rows, in the order of their ranks, and no other.

    ``recommendations``: columns of the candidates, ``model``, ``rank``, ``predicted_ms``, and
        ``expected_gain`` and ``spread`` where they are known.
    """
    keys = ["split", "fold", *spec.key_columns]
    candidates = recommendations[keys].drop_duplicates(ignore_index=True)
    said = {}
    for model, rows in recommendations.groupby("model", sort=False):
        known = rows.reindex(columns=[*keys, *SAID])
        table = candidates.merge(known, on=keys, how="left")[list(SAID)].astype(float)
        said[str(model)] = table.assign(rank=table["rank"].fillna(0).astype(np.int64))
    return Learnt(candidates, said, {name: {} for name in said})
