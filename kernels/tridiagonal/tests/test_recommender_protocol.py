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
from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Case
from launchwise.workloads.spec import Spec

PROFILES = {"large": profile("large"), "small": profile("small", sms=16)}


class TestOwnKinds(RecommenderProtocol):
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

    def test_times_of_what_is_asked_have_no_part(self, ground: Ground) -> None:
        rows, recommender = ground.rows, ground.model(ground.domain)
        recommender.fit(rows[rows["n"] != SIZES[6]])
        asked = rows[rows["n"] == SIZES[6]].reset_index(drop=True)
        other = asked.assign(time_ms=asked["time_ms"].to_numpy()[::-1], t1_comp_ms=1e6)
        columns = [*ground.domain.spec.tunable_columns, "rank"]
        first, second = (recommender.rank(each)[columns] for each in (asked, other))
        pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("nearest_optimum", {"neighbours": 0}, "must be greater than or equal to 1 (got 0)"),
        ("nearest_optimum", {"corrected": 1}, "must be a valid boolean (got 1)"),
        ("stream_law", {"law": "choosen"}, "must be 'chosen' or 'published' (got 'choosen')"),
        ("nearest_optimum", {"choice": "depth", "size": None}, None),
    ],
)
def test_a_misfit_is_told(kind: str, parameters: dict[str, Any], said: str | None) -> None:
    own = recommender_class(kind, workload=ROOT / "kernels" / "tridiagonal")
    found = own.Parameters.misfit(parameters)
    if said is None:
        assert found is None
    else:
        assert found is not None
        assert found[0] == next(iter(parameters))
        assert found[1].startswith(said)


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        (StreamLawRecommender, {"size": "memory"}, "unknown integer parameter of the problem"),
        (NearestOptimumRecommender, {"size": "m"}, "allowed: batch, n"),
        (
            NearestOptimumRecommender,
            {"choice": "stage2"},
            "unknown integer tunable or name derived",
        ),
        (NearestOptimumRecommender, {"choice": "thread"}, "did you mean 'threads'"),
    ],
)
def test_a_wrong_size_or_choice_is_one_line(
    tridiagonal_spec: Spec, kind: type[Recommender], parameters: dict[str, Any], said: str
) -> None:
    with pytest.raises(UserError, match=said) as caught:
        kind(Domain(tridiagonal_spec, PROFILES, CANDIDATES), **parameters)
    assert caught.value.key == f"models.parameters.{next(iter(parameters))}"
    assert "\n" not in str(caught.value)
