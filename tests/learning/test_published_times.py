"""Predictions of published run times."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd
import pytest

from launchwise.experiment.run_times import RunTime
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.learning.analytical import CostModel
from launchwise.learning.features import Domain
from launchwise.learning.published_times import held_against
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.rooflines import limits_ms
from launchwise.learning.splits import Case
from launchwise.tables.predictions import published_times_schema
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec, load_spec
from tests.support.samples import ROOT

CARDS = {"ti": "rtx2080ti", "black": "titan_black"}
PROBLEM: Problem = {"n": 10**6, "dtype": "float64", "memory": "pinned", "batch": 1}
SELECTION: dict[str, list[Value]] = {
    "variant": ["strided"], "m": [10], "threads": [256], "streams": [1], "stage2": ["host"],
    "m1": [0], "m2": [0], "m3": [0], "m4": [0], "last_m": [0],
}  # fmt: skip
TIME = RunTime(
    series="whole", row=2, card="rtx2080ti", problem=PROBLEM, selection=SELECTION, phases=(),
    runs=1, time_ms=8.0, source="a paper",
)  # fmt: skip


@cache
def spec() -> Spec:
    return load_spec(ROOT / "kernels" / "tridiagonal")


@pytest.fixture(scope="module")
def domain() -> Domain:
    cards = read_cards(ROOT / CARDS_FILE)
    efficiency = reference_efficiency(cards, ROOT / REFERENCE_PROFILE)
    known = {gpu: described_profile(gpu, cards, efficiency, card) for gpu, card in CARDS.items()}
    # The study's own candidates do not matter where a configuration is named.
    return Domain(spec(), known, {**SELECTION, "m": [32], "threads": [64]})


@pytest.fixture(scope="module")
def predictors(domain: Domain) -> Mapping[str, Recommender]:
    return {"analytical": recommender_class("analytical")(domain).fit(pd.DataFrame())}


def one_row(domain: Domain) -> pd.DataFrame:
    """The configuration of :data:`SELECTION`."""
    rows = Domain(spec(), domain.profiles, SELECTION).choices([Case("ti", PROBLEM)])
    assert len(rows) == 1
    return rows


def test_each_predictor_has_a_row_on_gpus_of_that_card(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    held = held_against(domain, [TIME], CARDS, predictors)
    published_times_schema(spec()).validate(held.table)
    rows = one_row(domain)
    times = dict(zip(held.table["predictor"], held.table["predicted_ms"], strict=True))
    assert times == {
        "roofline": pytest.approx(limits_ms(rows, spec(), domain.profiles)["roofline"][0]),
        "analytical": pytest.approx(CostModel(spec(), domain.profiles).estimate(rows).time_ms[0]),
    }
    assert set(held.table["gpu"]) == {"ti"}
    assert set(held.table["m"]) == {10}
    assert held.unfit == {}


def test_a_time_may_cover_many_runs_or_an_unknown_number(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    def predicted(runs: int | None) -> pd.DataFrame:
        time = dataclasses.replace(TIME, runs=runs)
        return held_against(domain, [time], CARDS, predictors).table

    once, many, unknown = predicted(1), predicted(50), predicted(None)
    assert many["predicted_ms"].to_numpy() == pytest.approx(50 * once["predicted_ms"].to_numpy())
    assert unknown["predicted_ms"].to_numpy() == pytest.approx(once["predicted_ms"].to_numpy())
    assert [set(table["runs"]) for table in (once, many, unknown)] == [{1}, {50}, {0}]


def test_phases_are_predicted_by_the_cost_model_alone(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    phases = ("reduce_by_thread", "reduce_launches")
    table = held_against(
        domain, [dataclasses.replace(TIME, phases=phases)], CARDS, predictors
    ).table
    assert list(table["predictor"]) == ["analytical"]
    assert list(table["phases"]) == ["reduce_by_thread+reduce_launches"]
    estimate = CostModel(spec(), domain.profiles).estimate(one_row(domain))
    expected = sum(estimate.phases[name][0] for name in phases)
    assert 0 < table["predicted_ms"][0] == pytest.approx(expected)
    assert expected < estimate.time_ms[0]


def test_phases_of_a_run_without_overlap_are_the_run(domain: Domain) -> None:
    estimate = CostModel(spec(), domain.profiles).estimate(one_row(domain))
    assert np.sum(list(estimate.phases.values()), axis=0) == pytest.approx(estimate.time_ms)


def test_the_predicted_fastest_of_what_is_free_is_taken(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    free = dataclasses.replace(TIME, selection={**SELECTION, "m": [10, 64], "threads": [64, 256]})
    table = held_against(domain, [free], CARDS, predictors).table.set_index("predictor")
    rows = Domain(spec(), domain.profiles, dict(free.selection)).choices([Case("ti", PROBLEM)])
    # 256 threads with 64 rows each do not fit the card's shared memory.
    assert sorted(zip(rows["m"], rows["threads"], strict=True)) == [(10, 64), (10, 256), (64, 64)]
    times = CostModel(spec(), domain.profiles).estimate(rows).time_ms
    best = rows.iloc[int(times.argmin())]
    assert table.loc["analytical", "predicted_ms"] == pytest.approx(times.min())
    assert {name: table.loc["analytical", name] for name in ("m", "threads")} == {
        name: best[name] for name in ("m", "threads")
    }


def test_without_a_variant_the_candidates_of_the_study_are_free(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    free = dataclasses.replace(TIME, selection={"m": [32]})
    table = held_against(domain, [free], CARDS, predictors).table.set_index("predictor")
    # The baseline is a choice too, but has another m.
    assert set(table["m"]) == {32}
    assert set(table["threads"]) == {64}


def test_a_configuration_that_fits_no_card_is_counted(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    large = dataclasses.replace(TIME, selection={**SELECTION, "m": [64]})
    held = held_against(domain, [large, TIME], CARDS, predictors)
    assert held.unfit == {"whole": 1}
    assert set(held.table["m"]) == {10}


def test_times_on_other_cards_are_left_out(
    domain: Domain, predictors: Mapping[str, Recommender]
) -> None:
    held = held_against(domain, [dataclasses.replace(TIME, card="a100")], CARDS, predictors)
    assert held.table.empty
    assert held.unfit == {}
    published_times_schema(spec()).validate(held.table)
