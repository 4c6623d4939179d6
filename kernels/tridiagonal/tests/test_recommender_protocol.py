"""Nearest optimum and law of streams do what every recommender has to do."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from recommending import Ground, RecommenderProtocol
from samples import ROOT, profile
from streams import CANDIDATES, PROBLEM, SIZES, stream_sweep

from kernels.tridiagonal.recommenders.nearest_optimum import NearestOptimumRecommender
from kernels.tridiagonal.recommenders.stream_law import StreamLawRecommender
from launchwise.learning.features import Domain
from launchwise.learning.hyperparameters import complaint
from launchwise.learning.splits import Case
from launchwise.workloads.spec import Spec

PROFILES = {"large": profile("large"), "small": profile("small", sms=16)}


class TestOwnKinds(RecommenderProtocol):
    """With made-up times of two configurations, one slower."""

    @pytest.fixture(scope="class", params=[NearestOptimumRecommender, StreamLawRecommender])
    @classmethod
    def ground(cls, request: pytest.FixtureRequest, tridiagonal_spec: Spec) -> Ground:
        parts = [
            stream_sweep(tridiagonal_spec, gpu, slower=slower, threads=threads)
            for gpu in PROFILES
            for threads, slower in ((256, 1.0), (128, 1.3))
        ]
        trained, asked = (
            [Case(gpu, {**PROBLEM, "n": n}) for gpu in PROFILES for n in sizes]
            for sizes in (SIZES, (20_000, 2_000_000))
        )
        return Ground(
            request.param,
            Domain(tridiagonal_spec, PROFILES, CANDIDATES),
            pd.concat(parts, ignore_index=True),
            trained,
            asked,
            [{**PROBLEM, "n": n, "dtype": "float32", "batch": 8} for n in (333, 640)],
            timed=False,
        )


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("nearest_optimum", {"corrected": 1}, "must be true or false, not 1"),
        ("stream_law", {"law": "choosen"}, "unknown value 'choosen', did you mean 'chosen'?"),
        ("nearest_optimum", {"choice": "depth", "size": None}, None),
    ],
)
def test_a_misfit_is_told(kind: str, parameters: dict[str, Any], said: str | None) -> None:
    found = complaint(kind, parameters, ROOT / "kernels" / "tridiagonal")
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert found[0] == next(iter(parameters))
        assert found[1].startswith(said)
