"""Cases of the acoustic workload that models learn from and are asked."""

from __future__ import annotations

import pandas as pd

from launchwise.gpus.profile import read_profile
from launchwise.learning.build_facts import FACTS
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case, among
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec
from tests.support.samples import LADDER, ROOT

RECORDED = ROOT / "data" / "recorded"

GPUS = ("h200.sm16", "h200.sm72")
TRAINED, ASKED = (256, 300, 512), (500, 550)
FAR: list[Problem] = [{"n": n, "dtype": "float64", "order": 16} for n in (333, 640)]
"""Problems unlike those that models learn from."""


def cases(sizes: tuple[int, ...], gpus: tuple[str, ...] = GPUS) -> list[Case]:
    return [Case(gpu, {"n": n, "dtype": "float32", "order": 8}) for gpu in gpus for n in sizes]


def recorded_domain(spec: Spec) -> Domain:
    """The workload's first variants on :data:`GPUS`."""
    profiles = {gpu: read_profile(RECORDED / gpu / "profile.json") for gpu in GPUS}
    return Domain(spec, profiles, LADDER)


def recorded_rows(domain: Domain) -> pd.DataFrame:
    """Measured times of the training problems."""
    columns = [*domain.spec.key_columns, "time_ms", *FACTS]
    pieces = []
    for gpu in GPUS:
        sweep = read_table(RECORDED / gpu / "acoustic.parquet", measurement_schema(domain.spec))
        piece = sweep.loc[among(sweep, cases(TRAINED), domain.spec), columns]
        pieces.append(piece.astype({name: object for name in ("gpu", "dtype", "variant")}))
    return pd.concat(pieces, ignore_index=True)
