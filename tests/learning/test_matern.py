"""The Gaussian process: its means and fits are those of scikit-learn's own loop."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from launchwise.learning.recommenders.gaussian_process import (
    PIECE,
    WORST_REGRET,
    GaussianProcessRecommender,
    posterior_mean,
    residuals,
)
from launchwise.learning.row_arrays import regrets
from launchwise.search.posterior import Scales

AXES = 5
POINTS = np.random.default_rng(1).normal(size=(80, AXES))


@pytest.fixture
def values():
    noise = np.random.default_rng(2).normal(0, 0.05, len(POINTS))
    found = np.sin(POINTS[:, 0]) + 0.3 * POINTS[:, 1] ** 2 + noise
    return np.asarray((found - found.mean()) / found.std())


def peer(own, scales, single):
    smooth = ConstantKernel(own**2) * Matern(scales, (0.2, 1e3), nu=1.5)
    return smooth + WhiteKernel(single**2, (1e-5, 1.0))


def fitted(points, values, steps):
    process = residuals(points)
    process.fit(np.arange(len(points)), values, steps)
    process.condition(np.arange(len(points)))
    return process


def test_mean_between_points(values):
    scales = Scales(np.array([0.4, 1.0, 3.0, 20.0, 400.0]), 1.3, 0.14, 1.0)
    kernel = peer(scales.own, scales.lengths, scales.single)
    known = GaussianProcessRegressor(kernel, optimizer=None).fit(POINTS, values)
    asked = np.random.default_rng(3).normal(size=(2 * PIECE + 7, AXES))
    process = residuals(POINTS)
    process.scales = scales
    process.condition(np.arange(len(POINTS)))
    found = posterior_mean(scales.lengths, POINTS, process.weights(values), asked)
    np.testing.assert_allclose(found, known.predict(asked), atol=2e-4)


def test_fit_is_as_likely_as_scikit_learns(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = GaussianProcessRegressor(peer(1.0, np.full(AXES, 3.0), 0.1)).fit(POINTS, values)
    own = fitted(POINTS, values, 200).scales
    kernel = peer(own.own, own.lengths, own.single)
    likelihood = GaussianProcessRegressor(kernel, optimizer=None).fit(POINTS, values)
    assert likelihood.log_marginal_likelihood_value_ > known.log_marginal_likelihood_value_ - 0.1
    assert own.lengths[:2].max() < own.lengths[2:].min()


def test_points_that_are_equal_do_no_harm(values):
    same = np.zeros((len(values), AXES))
    found = fitted(same, values, 20)
    mean = posterior_mean(found.scales.lengths, same, found.weights(values), same[:3])
    np.testing.assert_allclose(mean, values.mean(), atol=1e-3)


def test_of_many_rows_the_fast_ones_are_learnt_from(domain, rows):
    model = GaussianProcessRecommender(domain, most_rows=200, iterations=5).fit(rows)
    apart = np.abs(np.log(model.judge(rows).predicted_ms / rows["time_ms"]))
    regret = regrets(rows, domain.spec)
    far = (regret > 0.8) & (regret < WORST_REGRET)
    assert apart[regret < 0.2].mean() < apart[far].mean()
