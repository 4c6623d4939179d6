"""The Gaussian process: its means and fits are those of scikit-learn's own loop."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from launchwise.learning.recommenders import gaussian_process as matern

AXES = 5


@pytest.fixture
def points():
    return np.random.default_rng(1).normal(size=(80, AXES))


@pytest.fixture
def values(points):
    noise = np.random.default_rng(2).normal(size=len(points))
    found = np.sin(points[:, 0]) + 0.3 * points[:, 1] ** 2 + 0.05 * noise
    return np.asarray((found - found.mean()) / found.std())


@pytest.fixture
def kernel():
    return peer(1.7, np.array([0.4, 1.0, 3.0, 20.0, 400.0]), 0.02)


def peer(amplitude, scales, noise):
    smooth = ConstantKernel(amplitude) * Matern(scales, matern.SCALES, nu=1.5)
    return smooth + WhiteKernel(noise, matern.NOISES)


def test_mean_between_points(kernel, points, values):
    known = GaussianProcessRegressor(kernel, optimizer=None).fit(points, values)
    asked = np.random.default_rng(3).normal(size=(2 * matern.PIECE + 7, AXES))
    weights = matern.posterior_weights(kernel, points, values)
    found = matern.posterior_mean(kernel.k1.k2.length_scale, points, weights, asked)
    np.testing.assert_allclose(found, known.predict(asked), atol=2e-4)


def test_fit_is_as_likely_as_scikit_learns(points, values):
    start = peer(1.0, np.full(AXES, 3.0), 1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = GaussianProcessRegressor(start).fit(points, values)
    found = matern.fitted_kernel(points, values, steps=200)
    likelihood = GaussianProcessRegressor(found, optimizer=None).fit(points, values)
    assert likelihood.log_marginal_likelihood_value_ > known.log_marginal_likelihood_value_ - 0.1
    # Axes without influence get the longest scales.
    scales = found.k1.k2.length_scale
    assert scales[:2].max() < scales[2:].min()


def test_points_that_are_equal_do_no_harm(values):
    same = np.zeros((len(values), AXES))
    found = matern.fitted_kernel(same, values, steps=20)
    weights = matern.posterior_weights(found, same, values)
    mean = matern.posterior_mean(found.k1.k2.length_scale, same, weights, same[:3])
    np.testing.assert_allclose(mean, values.mean(), atol=1e-3)
