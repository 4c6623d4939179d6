"""Predictors of times: what they say, what they learn, and how their errors are counted."""

import numpy as np
import pandas as pd
import pytest
from stencil import cases, training_rows

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.prediction_errors import BOUND, prediction_errors
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import limits_ms
from launchwise.learning.truth import Truth
from launchwise.workloads import space
from tests.support.report_study import sweep
from tests.support.said import learnt_of
from tests.support.samples import profile

TRAINED, ASKED = (256, 400, 512, 800), (300, 600)


@pytest.fixture(scope="module")
def measured(stencil_spec):
    """Rows of several problems."""
    return training_rows(stencil_spec, TRAINED + ASKED)


def of(rows, sizes):
    return rows[rows["n"].isin(sizes)].reset_index(drop=True)


def test_a_roofline_is_the_longer_of_two_limits_and_a_launch(stencil_spec):
    fast, slow = profile("fast"), profile("slow")
    ceilings = slow.ceilings.model_copy(update={"float32_gflops": 10.0, "float64_gflops": 5.0})
    gpus = {"fast": fast, "slow": slow.model_copy(update={"ceilings": ceilings})}
    rows = pd.DataFrame(
        [
            {"gpu": gpu, "n": 102, "dtype": dtype, "order": 2, **space.baseline(stencil_spec)}
            for gpu in gpus
            for dtype in ("float32", "float64")
        ]
    )
    bytes_ms = np.array([16, 32, 16, 32]) * 1e6 / 4300e6
    # The fast one's rate of operations is not known: they take no time.
    flop_ms = np.array([0, 0, 9e6 / 10e6, 9e6 / 5e6])
    found = limits_ms(rows, stencil_spec, gpus)
    assert found["bytes"] == pytest.approx(bytes_ms)
    assert found["flop"] == pytest.approx(flop_ms)
    roofline = recommender_class("roofline")(Domain(stencil_spec, gpus)).fit(rows)
    assert roofline.judge(rows).predicted_ms == pytest.approx(np.maximum(bytes_ms, flop_ms) + 0.002)


def test_what_knows_no_configurations_recommends_the_baseline(domain):
    roofline = recommender_class("roofline")(domain)
    first = roofline.rank(domain.choices(cases(ASKED))).query("rank == 1")
    assert domain.is_baseline(first).all()


def test_the_cost_model_is_nearer_than_the_roofline_and_the_learnt_one_nearest(domain, measured):
    train, test = of(measured, TRAINED), of(measured, ASKED)
    errors = []
    for kind in ("roofline", "analytical", "learnt"):
        predicted = recommender_class(kind)(domain).fit(train).judge(test).predicted_ms
        errors.append(np.median(np.abs(predicted / test["time_ms"] - 1)))
    # The cost model knows what L2 keeps and how warps lie in rows, not what misaligned rows lose.
    assert errors[0] > 0.3
    assert errors[1] < 0.2
    assert errors[2] < 0.03


def test_what_learns_nothing_says_the_same_whatever_was_measured(domain, measured):
    test = of(measured, ASKED)
    doubled = measured.assign(time_ms=2 * measured["time_ms"])
    for kind in ("roofline", "analytical"):
        predictors = [recommender_class(kind)(domain).fit(rows) for rows in (measured, doubled)]
        assert np.array_equal(*(each.judge(test).predicted_ms for each in predictors))


def test_the_learnt_one_takes_no_first_launch_for_a_time(domain, measured):
    train, test = of(measured, TRAINED), of(measured, ASKED)
    slow = np.arange(len(train)) % 3 == 0
    planted = train.assign(
        status=np.where(slow, "slow", "ok"),
        time_ms=np.where(slow, 5 * train["time_ms"], train["time_ms"]),
    )
    right = recommender_class("learnt")(domain).fit(train[~slow].reset_index(drop=True))
    found = recommender_class("learnt")(domain).fit(planted)
    assert found.judge(test).predicted_ms == pytest.approx(right.judge(test).predicted_ms)
    with pytest.raises(UserError, match="every row stopped early"):
        recommender_class("learnt")(domain).fit(planted[slow])


# How errors are counted


def recommendations(rows, ratio):
    """Of one model that predicts the measured times by a ratio."""
    return rows.assign(
        study="tiny",
        model="mine",
        split="sizes",
        fold="all",
        rank=rows.groupby(["gpu", "n"]).cumcount() + 1,
        predicted_ms=ratio * rows["time_ms"],
    )


@pytest.fixture
def counted(stencil_spec):
    gpus = ("big", "big.sm4")
    tables = {gpu: sweep(stencil_spec, gpu) for gpu in gpus}
    domain = Domain(stencil_spec, {gpu: profile(gpu) for gpu in gpus})
    rows = pd.concat(tables.values(), ignore_index=True)
    rows = rows.loc[rows["status"] == "ok", [*stencil_spec.key_columns, "time_ms"]]
    return domain, rows.reset_index(drop=True), Truth(tables, domain)


def test_errors_are_those_of_the_rows(counted):
    domain, rows, truth = counted
    ratio = np.where(rows["gpu"] == "big", 1.2, 0.9)
    table = recommendations(rows, ratio).drop(columns="time_ms")
    found = prediction_errors(
        truth.timed(learnt_of(table, domain.spec).predicted_times), ["mine"], domain
    )
    whole = {one["gpu"]: one for one in found if not one["by"]}
    assert set(whole) == {"all", "big", "big.sm4"}
    assert whole["big"]["median_percent"] == pytest.approx(20)
    assert whole["big"]["ratio"] == pytest.approx(1.2)
    assert whole["big.sm4"]["mape_percent"] == pytest.approx(10)
    share = (rows["gpu"] == "big").mean()
    assert whole["all"]["mape_percent"] == pytest.approx(20 * share + 10 * (1 - share))
    assert whole["all"]["rows"] == len(rows)
    for one in whole.values():
        assert one["spearman_within"] == pytest.approx(1)
    assert whole["big"]["spearman"] == pytest.approx(1)


def test_rows_without_a_trusted_time_or_a_prediction_do_not_count(counted):
    domain, rows, truth = counted
    table = recommendations(rows, np.ones(len(rows))).drop(columns="time_ms")
    timed = truth.timed(learnt_of(table, domain.spec).predicted_times)
    timed.loc[0, ["status", "mine_ms"]] = ["slow", 1e9]
    timed.loc[1, "mine_ms"] = np.nan
    found = prediction_errors(timed, ["mine"], domain)
    assert found[0]["rows"] == len(rows) - 2
    assert found[0]["p90_percent"] == pytest.approx(0)
    assert prediction_errors(timed.assign(mine_ms=np.nan), ["mine"], domain) == []


def test_parts_say_where_a_model_fails(domain, measured):
    slanted = np.where(measured["variant"] == "column", 2.0, 1.0)
    table = measured.assign(
        split="sizes", fold="all", status="ok", mine_ms=slanted * measured["time_ms"]
    )
    found = prediction_errors(table, ["mine"], domain)
    of_variants = {one["value"]: one for one in found if one["by"] == "variant"}
    assert of_variants["column"]["median_percent"] == pytest.approx(100)
    assert of_variants["block3d"]["median_percent"] == pytest.approx(0)
    # Those of one value only part nothing.
    assert {one["by"] for one in found} == {"", "variant", BOUND}
