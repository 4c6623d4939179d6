"""The law of streams as a recommender: against stream_laws.py on the same rows.

At the end: nearest optimum and law of streams do what every recommender has to do.
"""

import numpy as np
import pandas as pd
import pytest
from recommending import Ground, RecommenderProtocol
from streams import (
    CANDIDATES,
    OVERHEAD,
    PROBLEM,
    PROFILES,
    SHARES,
    SIZES,
    SUM,
    first,
    row,
    stream_sweep,
)

from kernels.tridiagonal.recommenders.nearest_optimum import NearestOptimumRecommender
from kernels.tridiagonal.recommenders.stream_law import StreamLawRecommender as StreamLaw
from kernels.tridiagonal.recommenders.stream_law.choice import runs_that_differ_in_streams
from kernels.tridiagonal.recommenders.stream_law.laws import LinearOverheadLaw, predicted_streams
from launchwise.base.errors import UserError
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.fitting import ALL_ROWS
from launchwise.learning.learn import Asked, Learning, learn
from launchwise.learning.splits import ALL, Case, Fold
from launchwise.learning.training_rows import TrainingRows
from launchwise.learning.truth import read_learnt
from launchwise.workloads import space

UNSEEN = [2000, 20_000, 200_000, 600_000, 2_000_000, 20_000_000, 60_000_000]
COSTLY = LinearOverheadLaw(per_stream=0.2, share=1e-8, constant=0.05)
"""An overhead that makes few streams best."""


@pytest.fixture(scope="module")
def domain(tridiagonal_spec):
    return Domain(tridiagonal_spec, PROFILES, CANDIDATES)


@pytest.fixture(scope="module")
def rows(tridiagonal_spec):
    return stream_sweep(tridiagonal_spec, "large")


def test_the_planted_laws_are_found(domain, rows):
    expected = [predicted_streams(n, SUM, OVERHEAD) for n in UNSEEN]
    assert {1, 32} < set(expected)
    recommender = StreamLaw(domain).fit(rows)
    assert first(recommender, "large", UNSEEN)["streams"].tolist() == expected
    (laws,) = recommender.summary()["laws"]
    assert laws["overhead"]["law"] == "SmoothOverheadLaw"
    assert laws["overhead"]["coefficients"] == pytest.approx(vars(OVERHEAD), rel=1e-4)
    assert laws["sum"]["coefficients"] == pytest.approx(vars(SUM), rel=1e-6)
    assert (laws["sizes"], laws["held"]["m"], laws["held"]["threads"]) == (len(SIZES), 10, 256)
    assert "streams" not in laws["held"]


def test_no_law_is_fitted_to_single_launches(domain, rows):
    once = ((rows["streams"] == 32) & (rows["n"] >= SIZES[6])).to_numpy()
    lucky = rows.assign(
        status=np.where(once, "slow", "ok"),
        time_ms=np.where(once, rows["time_ms"] / 10, rows["time_ms"]),
    )
    taken = [StreamLaw(domain).fit(lucky.assign(status="ok")), StreamLaw(domain).fit(lucky)]
    found = [one.summary()["laws"][0]["overhead"] for one in taken]
    assert found[1] == StreamLaw(domain).fit(rows[~once]).summary()["laws"][0]["overhead"]
    assert found[1] != found[0]
    expected = [predicted_streams(n, SUM, OVERHEAD) for n in UNSEEN]
    assert first(taken[1], "large", UNSEEN)["streams"].tolist() == expected


def test_what_goes_with_the_streams_is_the_fastest_row_of_the_nearest_size(domain, rows):
    spec = domain.spec
    # Configurations without a run of several streams: the best at 1000 and at 10^6.
    lonely = [
        row(spec, "large", {"n": 1000}, m=32, threads=128, time_ms=1e-6),
        row(spec, "large", {"n": 1_000_000}, m=64, time_ms=1e-6),
    ]
    recommender = StreamLaw(domain).fit(pd.concat([rows, pd.DataFrame(lonely)], ignore_index=True))
    asked = [1500, 3000, 1_300_000]
    found = first(recommender, "large", asked)
    assert found[["m", "threads"]].to_numpy().tolist() == [[32, 128], [10, 256], [64, 256]]
    expected = [predicted_streams(n, SUM, OVERHEAD) for n in asked]
    assert found["streams"].tolist() == expected


def test_one_fit_has_rows_that_differ_in_streams_alone(domain, rows):
    spec = domain.spec
    # Fewer sizes at m = 20; more rows, but one number of streams, at m = 4.
    few = stream_sweep(spec, "large", SIZES[5:9], COSTLY, m=20)
    alone = stream_sweep(spec, "large", range(1000, 3000, 10), m=4)
    alone = alone[alone["streams"] == 1]
    mixed = pd.concat([few, alone, rows], ignore_index=True)
    used = runs_that_differ_in_streams(mixed, "n", spec)
    pd.testing.assert_frame_equal(used, rows)
    # A size without a time of 1 stream, or without its stages, has no part.
    broken = rows[(rows["n"] != SIZES[3]) | (rows["streams"] != 1)].copy()
    broken.loc[(broken["n"] == SIZES[4]) & (broken["streams"] == 1), "t3_h2d_ms"] = np.nan
    used = runs_that_differ_in_streams(broken, "n", spec)
    assert sorted(used["n"].unique()) == sorted({*SIZES} - {SIZES[3], SIZES[4]})
    left = rows[rows["n"].isin(used["n"])]
    laws = (
        recommender.summary()["laws"] for recommender in map(StreamLaw(domain).fit, (used, left))
    )
    assert next(laws) == next(laws)


def test_each_series_has_its_own_laws_and_others_borrow(domain, rows):
    spec = domain.spec
    pageable = {"memory": "pageable"}
    small = stream_sweep(spec, "small", overhead=COSTLY)
    other = stream_sweep(spec, "large", overhead=COSTLY, problem=pageable, slower=3.0)
    device = stream_sweep(spec, "large", problem={"memory": "device"}, m=20)
    assert set(device["streams"]) == {1}
    recommender = StreamLaw(domain).fit(pd.concat([rows, small, other, device], ignore_index=True))
    plenty, few = (
        [predicted_streams(n, SUM, overhead) for n in UNSEEN] for overhead in (OVERHEAD, COSTLY)
    )
    assert plenty != few
    assert len(recommender.summary()["laws"]) == 3
    assert first(recommender, "large", UNSEEN)["streams"].tolist() == plenty
    assert first(recommender, "small", UNSEEN)["streams"].tolist() == few
    # All times three times as long change nothing.
    assert first(recommender, "large", UNSEEN, **pageable)["streams"].tolist() == few
    # On the device nothing is to overlap: other streams are not feasible.
    found = first(recommender, "large", UNSEEN, memory="device")
    assert found[["m", "streams"]].to_numpy().tolist() == [[20, 1]] * len(UNSEEN)
    # A GPU that was not in training is like the nearest that was.
    assert first(recommender, "unseen", UNSEEN)["streams"].tolist() == few
    # A batch that was not: the laws of the nearest, for all unknowns of the batch.
    batched = [predicted_streams(8 * n, SUM, OVERHEAD) for n in UNSEEN]
    assert batched != plenty
    assert first(recommender, "large", UNSEEN, batch=8)["streams"].tolist() == batched


def test_what_is_not_feasible_falls_to_other_streams_sizes_and_the_baseline(domain):
    spec = domain.spec
    eager = pd.concat(
        [
            stream_sweep(spec, "large", SIZES, LinearOverheadLaw(1e-6, 1e-12, 1e-6), threads=128),
            pd.DataFrame([row(spec, "large", {"n": 1000}, m=64, time_ms=1e-6)]),
        ],
        ignore_index=True,
    )
    recommender = StreamLaw(domain).fit(eager)
    asked = [3000, 700, 300, 50, 8]
    found = first(recommender, "large", asked)
    # 11 sub-systems of 64 rows allow 8 streams, 4 allow 4; 50 rows none of 64, but 5 of 10; of 8
    # rows there is nothing but the baseline.
    assert found["m"].tolist() == [10, 64, 64, 10, 10]
    assert found["streams"].tolist() == [32, 8, 4, 4, 1]
    assert found["threads"].tolist() == [128, 256, 256, 128, 256]
    choices = domain.choices([Case("large", {**PROBLEM, "n": 8})]).iloc[::-1]
    ranked = recommender.rank(choices.reset_index(drop=True))
    assert len(ranked) > 1
    for last in (found.iloc[-1], ranked.iloc[0]):
        assert last[spec.tunable_columns].to_dict() == space.baseline(spec)


def test_recommendations_are_candidates(domain, rows):
    spec = domain.spec
    # m = 5 is none; a candidate that is slower comes before what was best at another size.
    more = [row(spec, "large", {"n": 1000}, m=m, time_ms=t) for m, t in ((5, 1e-6), (20, 1e-5))]
    recommender = StreamLaw(domain).fit(pd.concat([rows, pd.DataFrame(more)], ignore_index=True))
    assert first(recommender, "large", [1100, 5000])["m"].tolist() == [20, 10]
    with pytest.raises(UserError, match="hold no candidate"):
        StreamLaw(Domain(spec, PROFILES, {**CANDIDATES, "threads": [128]})).fit(
            rows.assign(threads=512)
        )


def test_a_series_that_determines_no_law_is_named(domain, rows):
    one_size = stream_sweep(domain.spec, "small", SIZES[:1])
    recommender = StreamLaw(domain).fit(pd.concat([rows, one_size], ignore_index=True))
    (name,) = recommender.summary()["undetermined"]
    assert name == "small, dtype=float64, memory=pinned, batch=1"
    expected = [predicted_streams(n, SUM, OVERHEAD) for n in UNSEEN]
    assert first(recommender, "small", UNSEEN)["streams"].tolist() == expected
    with pytest.raises(UserError, match=r"small, .*: too few for any of"):
        StreamLaw(domain).fit(one_size)
    # The published form needs sizes on both sides of its jump.
    with pytest.raises(UserError, match="do not determine OverheadLaw"):
        StreamLaw(domain, law="published").fit(rows[rows["n"] < 1_000_000])


def test_rows_that_tell_nothing_of_streams_are_one_line(domain, rows, stencil_spec):
    stages = [f"{name}_ms" for name in SHARES]
    for wrong, said in (
        (rows.iloc[:0], "there are none"),
        (rows[rows["streams"] == 1], "streams: hold a single value of streams"),
        (rows[rows["streams"] > 1], "no run with 1 stream has stage times"),
        (rows.assign(t3_comp_ms=np.nan), "no run with 1 stream has stage times"),
        (rows.drop(columns=stages), "t1_comp_ms: tridiagonal has no stage times"),
    ):
        with pytest.raises(UserError) as caught:
            StreamLaw(domain).fit(wrong)
        assert said in str(caught.value)
    other = Domain(stencil_spec, PROFILES)
    configuration = space.baseline(stencil_spec)
    problem = {"n": 100, "dtype": "float32", "order": 2}
    table = pd.DataFrame([{"gpu": "large", **problem, **configuration, "time_ms": 1.0}])
    with pytest.raises(UserError, match="stencil has no tunable of this name"):
        StreamLaw(other).fit(table)


def test_a_size_may_be_named(domain):
    parts = [stream_sweep(domain.spec, "large", [n]) for n in SIZES]
    # A thousand times as many systems of a thousandth of the rows, one number a size.
    swapped = pd.concat(
        [part.assign(n=1000, batch=part["n"] // 1000) for part in parts], ignore_index=True
    )
    recommender = StreamLaw(domain, size="batch").fit(swapped)
    asked = [{**PROBLEM, "batch": batch} for batch in (20, 200, 2000, 60_000)]
    table = recommender.recommend("large", asked)
    expected = [predicted_streams(1000 * one["batch"], SUM, OVERHEAD) for one in asked]
    assert len(set(expected)) > 2
    assert table.loc[table["rank"] == 1, "streams"].tolist() == expected


@pytest.mark.parametrize("kind", ["stream_law", "nearest_optimum"])
def test_a_study_learns_from_times_of_stages(domain, rows, tmp_path, kind):
    train, test = (
        tuple(Case("large", {**PROBLEM, "n": n}) for n in sizes) for sizes in (SIZES, UNSEEN)
    )
    named = rows.assign(folds=f"it/{ALL}", status="ok")
    known = TrainingRows(named, [Fold("it", ALL, train, test)])
    models = {"mine": Asked(ModelEntry(kind=kind, title="x", trials=2))}
    learn(Learning(models, known, domain, Search(folds=2), 7, ALL_ROWS), tmp_path, "")
    found = read_learnt(tmp_path, models, domain.spec)
    [fold] = found.facts["mine"]["folds"]
    assert (fold["cases"], fold["features_dropped"]) == (len(SIZES), [])
    if kind == "stream_law":
        expected = [predicted_streams(n, SUM, OVERHEAD) for n in UNSEEN]
        assert found.candidates.loc[found.first("mine"), "streams"].tolist() == expected


GPUS = ("large", "small")


class TestOwnKinds(RecommenderProtocol):
    @pytest.fixture(scope="class", params=[NearestOptimumRecommender, StreamLaw])
    @classmethod
    def ground(cls, request, tridiagonal_spec):
        parts = [
            stream_sweep(tridiagonal_spec, gpu, slower=slower, threads=threads)
            for gpu in GPUS
            for threads, slower in ((256, 1.0), (128, 1.3))
        ]
        trained, asked = (
            [Case(gpu, {**PROBLEM, "n": n}) for gpu in GPUS for n in sizes]
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

    def test_times_of_what_is_asked_have_no_part(self, ground):
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
        (StreamLaw, {"size": "memory"}, "unknown integer parameter of the problem"),
        (NearestOptimumRecommender, {"size": "m"}, "allowed: batch, n"),
        (
            NearestOptimumRecommender,
            {"choice": "stage2"},
            "unknown integer tunable or name derived",
        ),
        (NearestOptimumRecommender, {"choice": "thread"}, "did you mean 'threads'"),
    ],
)
def test_a_wrong_size_or_choice_is_one_line(tridiagonal_spec, kind, parameters, said):
    with pytest.raises(UserError, match=said) as caught:
        kind(Domain(tridiagonal_spec, PROFILES, CANDIDATES), **parameters)
    assert caught.value.key == f"models.parameters.{next(iter(parameters))}"
