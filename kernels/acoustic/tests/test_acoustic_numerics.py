"""The acoustic scheme by itself, in NumPy: weights, orders, stability, inputs."""

import math

import numpy as np
import pytest

from kernels.acoustic.host import workload

ORDERS = (2, 8, 16)


@pytest.fixture(scope="module")
def acoustic():
    return workload


@pytest.mark.parametrize("order", [2, 4, 6, 8, 10, 12, 14, 16])
def test_weights_fulfil_every_condition_of_their_order(acoustic, order):
    found = acoustic.weights(order)
    half = order // 2
    assert found.shape == (half + 1,)
    assert found.dtype == np.float64
    # sum c_k k^(2m) over both sides is 0, 2, 0, 0, ...: the difference is exact for polynomials.
    for power in range(0, order + 1, 2):
        total = 2 * sum(found[k] * float(k) ** power for k in range(1, half + 1))
        total += found[0] if power == 0 else 0.0
        size = 2 * sum(abs(found[k]) * float(k) ** power for k in range(1, half + 1))
        assert abs(total - (2.0 if power == 2 else 0.0)) <= 4e-15 * (size + abs(found[0]))


def test_the_laplacian_sees_every_axis_and_its_own_order_of_axes(acoustic):
    n, order = 24, 8
    z, y, x = np.meshgrid(*(np.arange(n, dtype=float),) * 3, indexing="ij")
    found = acoustic.laplacian(x**2 + 10 * y**2 + 100 * z**2 + x * y * z, order)
    assert found.shape == (n - order,) * 3
    assert np.allclose(found, 2 * 111, rtol=1e-10)


@pytest.mark.parametrize(("order", "limit"), [(2, 0.5774), (8, 0.4529), (16, 0.4237)])
def test_the_time_step_is_below_the_limit_of_stability(acoustic, order, limit):
    # The largest eigenvalue of -h^2 lap belongs to the chequerboard: 3 sum |c_k| over both sides.
    outer = np.abs(acoustic.weights(order))
    largest = 3 * (outer[0] + 2 * outer[1:].sum())
    assert 2 / math.sqrt(largest) == pytest.approx(limit, abs=5e-5)
    assert limit > acoustic.COURANT
    speed = acoustic.VELOCITY_MS[1]
    assert speed * math.sqrt(acoustic.SCALE) == pytest.approx(acoustic.COURANT)


def test_a_step_is_what_the_formula_says_point_by_point(acoustic):
    order, n, scale = 2, 5, 0.01
    u, u_old = (acoustic.grid(n, seed, -1.0, 1.0) for seed in (1, 2))
    velocity = acoustic.grid(n, 3, 1.0, 2.0)
    found = acoustic.time_step(u, u_old, velocity, order, scale)
    for z, y, x in np.ndindex(3, 3, 3):
        i, j, k = z + 1, y + 1, x + 1
        neighbours = u[i - 1, j, k] + u[i + 1, j, k] + u[i, j - 1, k] + u[i, j + 1, k]
        neighbours += u[i, j, k - 1] + u[i, j, k + 1]
        expected = 2 * u[i, j, k] - u_old[i, j, k]
        expected += velocity[i, j, k] ** 2 * scale * (neighbours - 6 * u[i, j, k])
        assert found[z, y, x] == pytest.approx(expected, rel=1e-13)


def test_the_three_inputs_are_not_alike_and_in_their_ranges(acoustic):
    u, u_old, velocity = acoustic.inputs(20, "float64", 5)
    assert abs(np.corrcoef(u.ravel(), u_old.ravel())[0, 1]) < 0.05
    assert velocity.min() >= acoustic.VELOCITY_MS[0]
    assert velocity.max() < acoustic.VELOCITY_MS[1]
    assert acoustic.inputs(20, "float32", 5)[0].dtype == np.float32


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tolerance_lets_rounding_pass_and_a_wrong_weight_not(acoustic, order, dtype):
    n = order + 9
    u, u_old, velocity = acoustic.inputs(n, dtype, 7)
    exact = acoustic.time_step(
        u.astype(float), u_old.astype(float), velocity, order, acoustic.SCALE
    )
    allowed = acoustic.tolerance(order, dtype)
    rounded = exact.astype(dtype).astype(float)
    assert np.max(np.abs(rounded - exact)) < allowed
    # One weight off by 1e-3 moves the step by up to 1e-3 v^2 scale |u|: far more than allowed.
    assert 2 * allowed < 1e-3 * 0.5 * acoustic.COURANT**2 / 9
