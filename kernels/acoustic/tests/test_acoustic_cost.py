"""The workload's cost model, held to recorded rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from launchwise.gpus.profile import read_profile
from launchwise.learning.build_facts import FACTS
from launchwise.learning.features import Domain
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Case, among
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec

GPUS = ("h200.sm16", "h200.sm72")
TRAINED, ASKED = (256, 400, 512, 800), (300, 600)


@pytest.fixture(scope="module")
def domain(acoustic_spec: Spec, root: Path) -> Domain:
    recorded = root / "data" / "recorded"
    profiles = {gpu: read_profile(recorded / gpu / "profile.json", gpu) for gpu in GPUS}
    return Domain(acoustic_spec, profiles)


@pytest.fixture(scope="module")
def rows(domain: Domain, root: Path) -> pd.DataFrame:
    asked = [
        Case(gpu, {"n": n, "dtype": "float32", "order": 8}) for gpu in GPUS for n in TRAINED + ASKED
    ]
    pieces = []
    for gpu in GPUS:
        path = root / "data" / "recorded" / gpu / "acoustic.parquet"
        table = read_table(path, measurement_schema(domain.spec))
        table = table[(table["status"] == "ok") & among(table, asked, domain.spec)]
        pieces.append(table[[*domain.spec.key_columns, "time_ms", *FACTS]])
    return pd.concat(pieces, ignore_index=True)


def test_the_cost_model_is_nearer_than_the_roofline_and_the_learnt_one_nearest(
    domain: Domain, rows: pd.DataFrame
) -> None:
    train, test = (rows[rows["n"].isin(sizes)].reset_index(drop=True) for sizes in (TRAINED, ASKED))
    errors = [
        float(np.median(np.abs(predicted / test["time_ms"] - 1)))
        for kind in ("roofline", "analytical", "learnt")
        for predicted in [recommender_class(kind)(domain).fit(train).predict(test)]
    ]
    assert errors[0] > 0.5
    assert errors[1] < 0.3
    assert errors[2] < 0.05
