"""Intervals of times are stretched by what blind tests measured, and by nothing else."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stencil import slice_of_card, sweep

from launchwise.experiment.study import Study
from launchwise.learning.calibration import FEWEST, calibrate, stretched
from launchwise.learning.features import Domain
from launchwise.learning.final import learnt_from
from launchwise.learning.recommenders.committee import CommitteeRecommender
from launchwise.learning.splits import cases_in
from launchwise.learning.stored import Calibration
from launchwise.tables.times import judged_times
from launchwise.workloads.spec import Spec

GPU = "card"
SWEPT = (192, 200, 230, 256, 300, 333, 370, 400, 450, 512)
DRAWN = [n for n in range(202, 500, 9) if n not in SWEPT]


@dataclass(frozen=True)
class Fitted:
    """A committee of few members, what it was fitted to, and judged times with a blind test."""

    recommender: CommitteeRecommender
    domain: Domain
    training: pd.DataFrame
    times: pd.DataFrame


@pytest.fixture(scope="module")
def fitted(stencil_spec: Spec) -> Fitted:
    domain = Domain(stencil_spec, {GPU: slice_of_card(GPU)})
    # As many cases as intervals need.
    alike = itertools.product(("float32", "float64"), (2, 8))
    sweeps = [sweep(stencil_spec, SWEPT, GPU, dtype, order) for dtype, order in alike]
    swept, blind = pd.concat(sweeps, ignore_index=True), sweep(stencil_spec, DRAWN, GPU)
    sizes = {"train": {"n": SWEPT[::2]}, "test": {"n": SWEPT[1::2]}}
    splits = {"sizes": {"kind": "problems", "title": "t", **sizes}}
    study = Study(title="t", question="q", workload="stencil", models=["knn"], splits=splits)
    training = learnt_from(study, domain, {GPU: swept}).training
    recommender = CommitteeRecommender(domain, members="knn, lightgbm, nearest_size", seed=1)
    times = [judged_times(swept, None, stencil_spec)]
    times.append(judged_times(blind, None, stencil_spec, blind=True))
    return Fitted(recommender.fit(training), domain, training, pd.concat(times, ignore_index=True))


def found(
    fitted: Fitted, times: pd.DataFrame, training: pd.DataFrame | None = None
) -> Calibration | None:
    learnt = fitted.training if training is None else training
    return calibrate(fitted.recommender, fitted.domain, learnt, {GPU: times})


def test_intervals_hold_as_many_blind_times_as_they_say(fitted: Fitted) -> None:
    made = found(fitted, fitted.times)
    assert made is not None
    assert FEWEST <= made.problems <= len(DRAWN)
    assert 0 < made.covered <= 1
    blind = fitted.times[fitted.times["blind"]]
    cases = cases_in(blind, fitted.domain.spec)
    choices = fitted.domain.keeping_features(fitted.domain.choices(cases))
    ranking = fitted.recommender.ranking(choices)
    rows = choices.iloc[ranking.first(1)].reset_index(drop=True)
    limits = fitted.recommender.time_interval(rows, ranking.predicted_ms[ranking.first(1)])
    keys = fitted.domain.spec.key_columns
    measured = rows[keys].merge(blind[[*keys, "time_ms"]], on=keys, how="left")["time_ms"]
    known = measured.notna().to_numpy() & np.isfinite(limits).all(axis=1)

    def inside(limits: np.ndarray) -> float:
        held = (measured >= limits[:, 0]) & (measured <= limits[:, 1])
        return float(held[known].mean())

    assert inside(limits) == pytest.approx(made.covered)
    assert 0.9 <= inside(stretched(limits, made.stretch)) <= 0.97


def test_slower_cards_than_expected_stretch_more(fitted: Fitted) -> None:
    slow = fitted.times.assign(time_ms=fitted.times["time_ms"] * 1.5)
    made, more = found(fitted, fitted.times), found(fitted, slow)
    assert made is not None
    assert more is not None
    assert more.stretch > made.stretch


def test_what_was_learnt_and_what_is_few_says_nothing(fitted: Fitted) -> None:
    blind = fitted.times[fitted.times["blind"]]
    assert found(fitted, fitted.times[~fitted.times["blind"]]) is None
    assert found(fitted, fitted.times, pd.concat([fitted.training, blind])) is None
    columns = fitted.domain.spec.problem_columns
    few = blind[columns].drop_duplicates().iloc[: FEWEST - 1]
    assert found(fitted, blind.merge(few, on=columns)) is None


@given(st.floats(1e-3, 1e3), st.floats(1.0001, 10), st.floats(0.1, 4), st.floats(0.1, 4))
def test_stretching_keeps_the_middle(low: float, ratio: float, one: float, two: float) -> None:
    limits = np.array([[low, low * ratio]])
    wide = stretched(limits, one)
    assert np.sqrt(wide.prod()) == pytest.approx(np.sqrt(limits.prod()))
    assert stretched(limits, 1.0) == pytest.approx(limits)
    assert stretched(wide, two) == pytest.approx(stretched(limits, one * two))
