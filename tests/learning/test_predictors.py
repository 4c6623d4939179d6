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
from launchwise.workloads import space
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


def plain_figures(rows):
    """Errors of rows by pandas alone."""
    ratio = rows["mine_ms"] / rows["time_ms"]
    error = 100 * (ratio - 1).abs()

    def ranked(own):
        return own["mine_ms"].corr(own["time_ms"], method="spearman")

    within = [ranked(own) for _, own in rows.groupby(["gpu", "n"])]
    return {
        **{"rows": len(rows), "median_percent": error.median(), "mape_percent": error.mean()},
        **{"p90_percent": error.quantile(0.9), "ratio": np.exp(np.log(ratio).mean())},
        **{"spearman": ranked(rows), "spearman_within": np.mean(within)},
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_errors_are_those_of_rows_with_a_trusted_time_and_a_prediction(domain, measured, seed):
    dice, count = np.random.default_rng(seed), len(measured)
    told = measured["time_ms"] * np.exp(dice.normal(0.1, 0.3, count))
    table = measured.assign(
        **{"split": "sizes", "fold": "all", "mine_ms": told.where(dice.random(count) < 0.9)},
        status=np.where(dice.random(count) < 0.1, "slow", "ok"),
    )
    known = table[(table["status"] == "ok") & table["mine_ms"].notna()]
    parts = {"all": known, **dict(iter(known.groupby("gpu")))}
    found = {one["gpu"]: one for one in prediction_errors(table, ["mine"], domain) if not one["by"]}
    assert found.keys() == parts.keys()
    for gpu, rows in parts.items():
        figures = plain_figures(rows)
        assert {name: found[gpu][name] for name in figures} == pytest.approx(figures)
    assert prediction_errors(table.assign(mine_ms=np.nan), ["mine"], domain) == []


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
