"""The acoustic workload with recorded times, for models to learn from."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from acoustic_cases import GPUS, TRAINED, cases

from launchwise.gpus.profile import read_profile
from launchwise.learning.build_facts import FACTS
from launchwise.learning.features import Domain
from launchwise.learning.splits import among
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec
from tests.support.samples import LADDER


@pytest.fixture(scope="module")
def domain(acoustic_spec: Spec, root: Path) -> Domain:
    folder = root / "data" / "recorded"
    profiles = {gpu: read_profile(folder / gpu / "profile.json") for gpu in GPUS}
    return Domain(acoustic_spec, profiles, LADDER)


@pytest.fixture(scope="module")
def rows(domain: Domain, root: Path) -> pd.DataFrame:
    """Measured times of the training problems."""
    columns = [*domain.spec.key_columns, "time_ms", *FACTS]
    pieces = []
    for gpu in GPUS:
        path = root / "data" / "recorded" / gpu / "acoustic.parquet"
        sweep = read_table(path, measurement_schema(domain.spec))
        piece = sweep.loc[among(sweep, cases(TRAINED), domain.spec), columns]
        pieces.append(piece.astype({name: object for name in ("gpu", "dtype", "variant")}))
    return pd.concat(pieces, ignore_index=True)
