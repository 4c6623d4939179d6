"""Predictions of published run times."""

import dataclasses

import pandas as pd
import pytest
from described_gpus import gpus_in_hosts
from stencil import copying_stencil

from launchwise.experiment.published import RunTime
from launchwise.learning.analytical import CostModel
from launchwise.learning.features import Domain
from launchwise.learning.predicting import held_against
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import limits_ms
from launchwise.learning.splits import Case
from launchwise.tables.learning import published_times_schema
from launchwise.workloads.spec import load_spec

CARDS = {"ti": "rtx2080ti", "black": "titan_black"}
PROBLEM = {"n": 600, "dtype": "float64", "order": 2, "memory": "pinned"}
SELECTION = {
    "variant": ["block3d"], "row_padding": [0], "bx": [32], "by": [8], "bz": [1],
}  # fmt: skip
TIME = RunTime(
    series="whole", row=2, card="rtx2080ti", problem=PROBLEM, selection=SELECTION, phases=(),
    runs=1, time_ms=8.0, source="a paper",
)  # fmt: skip


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """Of a workload whose runs have several phases."""
    return load_spec(copying_stencil(tmp_path_factory.mktemp("kernels")))


@pytest.fixture(scope="module")
def domain(spec):
    known = gpus_in_hosts({gpu: (card, None) for gpu, card in CARDS.items()})
    # The study's own candidates do not matter where a configuration is named.
    return Domain(spec, known, {**SELECTION, "bx": [64], "by": [4]})


@pytest.fixture(scope="module")
def predictors(domain):
    return {"analytical": recommender_class("analytical")(domain).fit(pd.DataFrame())}


def rows_of(domain, selection=SELECTION):
    """The configurations of a selection: the baseline is no part of it."""
    rows = Domain(domain.spec, domain.profiles, dict(selection)).choices([Case("ti", PROBLEM)])
    return rows[~domain.is_baseline(rows)].reset_index(drop=True)


def test_each_predictor_has_a_row_on_gpus_of_that_card(domain, predictors):
    table, unfit = held_against(domain, [TIME], CARDS, predictors)
    published_times_schema(domain.spec).insist("table", table)
    rows = rows_of(domain)
    estimated = CostModel(domain.spec, domain.profiles).estimate(rows)
    times = dict(zip(table["predictor"], table["predicted_ms"], strict=True))
    assert times == {
        "roofline": pytest.approx(limits_ms(rows, domain.spec, domain.profiles)["roofline"][0]),
        "analytical": pytest.approx(estimated.time_ms[0]),
    }
    assert set(table["gpu"]) == {"ti"}
    assert set(table["bx"]) == {32}
    assert unfit == {}


def test_a_time_may_cover_many_runs_or_an_unknown_number(domain, predictors):
    def predicted(runs):
        time = dataclasses.replace(TIME, runs=runs)
        return held_against(domain, [time], CARDS, predictors)[0]

    once, many, unknown = predicted(1), predicted(50), predicted(None)
    assert many["predicted_ms"].to_numpy() == pytest.approx(50 * once["predicted_ms"].to_numpy())
    assert unknown["predicted_ms"].to_numpy() == pytest.approx(once["predicted_ms"].to_numpy())
    assert [set(table["runs"]) for table in (once, many, unknown)] == [{1}, {50}, {0}]


def test_phases_are_predicted_by_the_cost_model_alone(domain, predictors):
    phases = ("step", "inputs")
    table = held_against(domain, [dataclasses.replace(TIME, phases=phases)], CARDS, predictors)[0]
    assert list(table["predictor"]) == ["analytical"]
    assert list(table["phases"]) == ["step+inputs"]
    estimate = CostModel(domain.spec, domain.profiles).estimate(rows_of(domain))
    expected = sum(estimate.phases[name][0] for name in phases)
    assert 0 < table["predicted_ms"][0] == pytest.approx(expected)
    assert expected < estimate.time_ms[0]


def test_the_predicted_fastest_of_what_is_free_is_taken(domain, predictors):
    free = dataclasses.replace(TIME, selection={**SELECTION, "bx": [32, 512], "by": [2, 4]})
    table = held_against(domain, [free], CARDS, predictors)[0].set_index("predictor")
    rows = rows_of(domain, free.selection)
    # A block has at most 1024 threads.
    assert sorted(zip(rows["bx"], rows["by"], strict=True)) == [(32, 2), (32, 4), (512, 2)]
    times = CostModel(domain.spec, domain.profiles).estimate(rows).time_ms
    best = rows.iloc[int(times.argmin())]
    assert table.loc["analytical", "predicted_ms"] == pytest.approx(times.min())
    assert {name: table.loc["analytical", name] for name in ("bx", "by")} == {
        name: best[name] for name in ("bx", "by")
    }


def test_without_a_variant_the_candidates_of_the_study_are_free(domain, predictors):
    free = dataclasses.replace(TIME, selection={"bx": [64]})
    table = held_against(domain, [free], CARDS, predictors)[0].set_index("predictor")
    # The baseline is a choice too, but has another bx.
    assert set(table["bx"]) == {64}
    assert set(table["by"]) == {4}


def test_a_configuration_that_fits_no_card_is_counted(domain, predictors):
    large = dataclasses.replace(TIME, selection={**SELECTION, "bx": [1024]})
    table, unfit = held_against(domain, [large, TIME], CARDS, predictors)
    assert unfit == {"whole": 1}
    assert set(table["bx"]) == {32}


def test_times_on_other_cards_are_left_out(domain, predictors):
    table, unfit = held_against(domain, [dataclasses.replace(TIME, card="a100")], CARDS, predictors)
    assert table.empty
    assert unfit == {}
    published_times_schema(domain.spec).insist("table", table)
