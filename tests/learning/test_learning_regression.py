"""What every model of times does with rows, whatever it is that learns."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launchwise.learning.recommenders.knn import KnnRecommender
from launchwise.learning.regression import MeanRegret, TimeRegressor, nearest_mean
from launchwise.workloads import space

GPU = "test"
TIMES = {64: [4.0, 1.0, 2.0], 256: [90.0, 30.0, 120.0]}
"""Size to the times of three configurations, ms: the larger one is far from 64 times as long."""


class Nothing(TimeRegressor):
    """Keeps what it is given, and predicts the best time for everything."""

    def fit_rows(self, features, target, weights):
        self.target, self.weights = target, weights

    def predict_rows(self, features):
        return np.zeros(len(features))


class Neighbours(KnnRecommender):
    """Of four features."""

    columns = ("n", "bx", "by", "bz")


@pytest.fixture
def rows(stencil_spec):
    """Measurements of two problems."""
    found = []
    for n, times in TIMES.items():
        problem = {"n": n, "dtype": "float32", "order": 2}
        listed = space.configurations(stencil_spec, problem)[: len(times)]
        for configuration, time_ms in zip(listed, times, strict=True):
            key = {"gpu": GPU, **problem, **configuration}
            found.append({**key, "status": "ok", "time_ms": time_ms})
    return pd.DataFrame(found)


@pytest.mark.parametrize("focus", [0.0, 2.0])
def test_the_focus_weighs_fast_rows_most(one_gpu, rows, focus):
    model = Nothing(one_gpu, focus=focus).fit(rows)
    best = rows.groupby("n")["time_ms"].transform("min")
    np.testing.assert_allclose(model.weights, (best / rows["time_ms"]) ** focus)
    np.testing.assert_allclose(model.target, np.log(rows["time_ms"] / best))


def test_a_predicted_time_stands_on_the_level_of_its_problem(one_gpu, rows):
    model = Nothing(one_gpu).fit(rows)
    predicted = model.judge(rows).predicted_ms
    best = rows.groupby("n")["time_ms"].transform("min")
    np.testing.assert_allclose(predicted, best, rtol=1e-6)
    # Between the two sizes it lies between their levels over the bound.
    between = rows.assign(n=128)
    over = model.judge(between).predicted_ms / one_gpu.bounds_ms(between)
    ends = best.to_numpy() / one_gpu.bounds_ms(rows)
    assert ends.min() < over[0] < ends.max()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.sampled_from([1.0, 2.0, 9.0, 27.0]), min_size=6, max_size=6))
def test_mean_regret_counts_missing_rows_as_the_worst(one_gpu, rows, times):
    known = rows.assign(time_ms=times).dropna(subset="time_ms").reset_index(drop=True)
    if known.empty:
        return
    logs = np.log(np.array(times, dtype=float).reshape(2, 3))
    logs = logs[~np.isnan(logs).all(axis=1)]
    regret = logs - np.nanmin(logs, axis=1, keepdims=True)
    # As long as the longest of its problem, three times the best at least.
    worst = np.fmax(np.nanmax(regret, axis=1, keepdims=True), np.log(3))
    means = np.where(np.isnan(regret), worst, regret).mean(axis=0)
    means[np.isnan(regret).all(axis=0)] = np.log(3)
    told = MeanRegret.of(known, regret[~np.isnan(regret)], one_gpu, one_gpu.choice_columns)
    np.testing.assert_allclose(told.regret(rows, one_gpu), [*means, *means])


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_count_alike_or_by_their_distance(one_gpu, rows, weights):
    everything = {"k": len(rows), "problems": None}
    model = KnnRecommender(one_gpu, weights=weights, **everything).fit(rows)
    best = rows.groupby("n")["time_ms"].transform("min")
    over = model.judge(rows).predicted_ms / best
    if weights == "uniform":
        np.testing.assert_allclose(over, np.exp(np.log(rows["time_ms"] / best).mean()), rtol=1e-5)
    else:
        np.testing.assert_allclose(over, rows["time_ms"] / best, rtol=1e-3)


def test_neighbours_are_of_the_nearest_problem_alone(one_gpu, rows):
    model = KnnRecommender(one_gpu, k=1, problems=1).fit(rows)
    np.testing.assert_allclose(model.judge(rows).predicted_ms, rows["time_ms"], rtol=1e-6)


def test_what_is_asked_beside_a_row_does_not_choose_its_neighbours(one_gpu):
    """On a grid many are as near as the k-th: rounding, which depends on the batch, may not say."""
    grid = np.stack(np.meshgrid(*[2.0 ** np.arange(6)] * 4), axis=-1).reshape(-1, 4)
    generator = np.random.default_rng(1)
    target = generator.random(len(grid))
    model = Neighbours(one_gpu, problems=None)
    model.fit_rows(grid, target, np.ones(len(grid)))
    asked = generator.choice(grid, 300) * generator.choice([1, 2**0.5], (300, 4))
    together = model.predict_rows(asked)
    for size in (1, 7):
        parts = [model.predict_rows(asked[at : at + size]) for at in range(0, len(asked), size)]
        assert np.array_equal(np.concatenate(parts), together)
    # The first known row is the nearest of those that are equally near.
    middle = np.array([[2**0.5, 1.0, 1.0, 1.0]])
    alone = Neighbours(one_gpu, problems=None, k=1)
    alone.fit_rows(grid, target, np.ones(len(grid)))
    least = np.flatnonzero((grid[:, 1:] == 1).all(axis=1) & (grid[:, 0] <= 2))
    assert alone.predict_rows(middle) == pytest.approx(target[least[0]])


def test_the_nearest_levels_count_by_the_square_of_their_distance():
    # In powers of two 1 is one away from .5, two from 4.
    points, values = np.array([[0.5], [4.0]]), np.array([10.0, 20.0])
    found = nearest_mean(points, values, np.array([[1.0], [4.0]]))
    assert found == pytest.approx([(4 * 10 + 20) / 5, 20])
    # A feature counts by its own spread: 2 is as far from 1 as 1024 is from 1.
    points = np.array([[1.0, 1.0], [2.0, 1024.0]])
    assert nearest_mean(points, values, np.array([[2.0, 1.0]])) == pytest.approx([15])
    # Where a feature is 0 or less its differences count, not its ratios.
    points = np.array([[-1.0], [1.0]])
    assert nearest_mean(points, values, np.array([[0.0]])) == pytest.approx([15])
