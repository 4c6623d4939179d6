"""Simulations by the kernels' own sources on the CPU, beside NumPy and the exact solution."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from kernels.acoustic.examples import shot
from kernels.acoustic.host.stencil import weights
from kernels.acoustic.simulation import TooLittleMemory, propagate, ricker, stability_limit
from kernels.acoustic.simulation.problem import FILE, Grid
from kernels.acoustic.simulation.recorded import choices as recorded_choices
from kernels.acoustic.simulation.shots import Simulator
from launchwise.base.errors import UserError
from tests.support.host_device import HostDevice
from tests.support.host_machine import HostMachine

SMALL = {"variant": "stream", "stages": 3, "blocks_per_sm": 2, "z_chunks": 2}
"""A kernel that the CPU runs; the tile depends on the type."""

GPU = {
    "gpu_memory_bytes": 1 << 40,
    "gpu_max_threads_per_block": 1024,
    "gpu_shared_per_block_bytes": 232448,
    "gpu_compute_capability": 80,
}


@pytest.fixture
def machine(acoustic_folder, acoustic_spec, kernel_cache):
    return HostMachine(HostDevice(acoustic_folder, acoustic_spec.headers, cache=kernel_cache))


@pytest.fixture
def simulate(machine, acoustic_spec):
    simulator = Simulator(
        acoustic_spec,
        lambda number: GPU,
        lambda number, builds: machine,
        lambda p: 0,
        lambda *d: None,
    )

    def run(velocity, source, steps, **how):
        small = {**SMALL, "tile_x": 64, "tile_y": 16 if velocity.dtype == np.float32 else 8}
        asked = {
            **{"frequency": None, "wavelet": None, "time_step": None, "order": 8, "receivers": ()},
            **{"snapshots": (), "absorbing": 0, "configuration": small, "stream": None},
            "progress": False,
        }
        return simulator.run(velocity, source, steps, **asked | how)

    return run


def by_numpy(velocity, source, wavelet, h, dt, order, kept=1.0):
    """u after every step: float64, shape (steps, nz, ny, nx).

    ``kept``: what a layer leaves of u per step, of the velocity's shape.
    """
    radius, speed = order // 2, velocity.astype(float)
    old, u = np.zeros(velocity.shape), np.zeros(velocity.shape)
    inner = tuple(slice(radius, size - radius) for size in velocity.shape)
    found = []
    for value in wavelet:
        lap = np.zeros([size - order for size in velocity.shape])
        for axis in range(3):
            for k, weight in enumerate(weights(order)):
                for offset in {k, -k}:
                    window = list(inner)
                    size = velocity.shape[axis]
                    window[axis] = slice(radius + offset, size - radius + offset)
                    lap += weight * u[tuple(window)]
        new = np.zeros(velocity.shape)
        new[inner] = 2 * u[inner] - old[inner] + (dt * speed[inner] / h) ** 2 * lap
        # Both fields lose the same, so that the step after is taken between equals.
        new *= kept
        new[source] += (dt * speed[source]) ** 2 * value / h**3
        old, u = u * kept, new
        found.append(new)
    return np.array(found)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", [2, 8, 16])
def test_a_simulation_is_what_numpy_computes(simulate, dtype, order):
    rng = np.random.default_rng(order)
    shape, h = (order + 9, order + 14, order + 23), 5.0
    velocity = rng.uniform(1500, 3000, shape).astype(dtype)
    source = (shape[0] // 2, shape[1] // 2 - 1, shape[2] // 2 + 2)
    receivers = [source, (order // 2, order // 2 + 3, shape[2] - order // 2 - 1)]
    wavelet = rng.standard_normal(12)
    shot = simulate(
        velocity, source, 12, spacing=h, wavelet=wavelet, order=order, receivers=receivers,
        snapshots=[5, 12],
    )  # fmt: skip
    expected = by_numpy(velocity, source, wavelet, h, shot.time_step, order)
    scale = np.abs(expected).max()
    allowed = scale * (2e-5 if dtype == "float32" else 1e-13)
    assert shot.snapshots.shape == (2, *shape)
    assert shot.snapshots.dtype == shot.traces.dtype == np.dtype(dtype)
    assert np.abs(shot.snapshots - expected[[4, 11]]).max() < allowed
    for column, place in enumerate(receivers):
        assert np.abs(shot.traces[:, column] - expected[(slice(None), *place)]).max() < allowed
        assert shot.traces[4, column] == shot.snapshots[0][place]
    assert shot.time_step == pytest.approx(
        0.9 * stability_limit(order) * h / float(velocity.max()), rel=1e-6
    )


def test_far_from_the_source_it_is_the_exact_solution_and_better_at_higher_order(simulate):
    n, h, speed, frequency = 45, 10.0, 2000.0, 22.0
    velocity = np.full((n, n, n), speed, np.float32)
    centre, away = n // 2, 9
    errors = {}
    for order in (2, 8):
        dt = 1.0e-3
        steps = 118
        shot = simulate(
            velocity, (centre,) * 3, steps, spacing=h, frequency=frequency, time_step=dt,
            order=order, receivers=[(centre, centre, centre + away)],
        )  # fmt: skip
        # u of step k is that of the time (k + 1) dt; the wavelet's value of step k acts at k dt.
        distance = away * h
        times = (np.arange(steps) + 1) * dt - distance / speed
        a = (math.pi * frequency * (times - 1.2 / frequency)) ** 2
        exact = (1 - 2 * a) * np.exp(-a) / (4 * math.pi * distance)
        errors[order] = np.abs(shot.traces[:, 0] - exact).max() / np.abs(exact).max()
    assert errors[8] < 0.06
    assert errors[8] < errors[2] / 3


@pytest.mark.parametrize("order", [2, 8])
def test_a_layer_leaves_the_same_part_of_both_fields(simulate, order):
    rng = np.random.default_rng(order)
    shape, width, dtype = (order + 21, order + 25, order + 30), 9, np.dtype(np.float64)
    velocity, wavelet = rng.uniform(1500, 3000, shape), rng.standard_normal(25)
    source = tuple(size // 2 for size in shape)
    shot = simulate(
        velocity, source, 25, spacing=5.0, wavelet=wavelet, order=order, absorbing=width,
        snapshots=[10, 25],
    )  # fmt: skip
    grid = Grid(shape, dtype, order, 5.0)
    factors = grid.damping(width, shot.time_step, float(velocity.max()))
    x, y, z = np.split(factors, [shape[2], shape[2] + shape[1]])
    kept = z[:, None, None] * y[:, None] * x
    assert kept[source] == 1
    assert kept.min() < 0.8
    expected = by_numpy(velocity, source, wavelet, 5.0, shot.time_step, order, kept)
    allowed = np.abs(expected).max() * 1e-13
    assert np.abs(shot.snapshots - expected[[9, 24]]).max() < allowed


def test_sources_may_share_a_point_and_have_wavelets_of_their_own(simulate):
    velocity = np.full((15, 16, 17), 2000.0, np.float32)
    first, second = np.random.default_rng(3).standard_normal((2, 6))
    together = simulate(
        velocity, [(7, 7, 7), (7, 7, 7)], 6, spacing=10.0, wavelet=np.array([first, second]),
        snapshots=[6],
    )  # fmt: skip
    summed = simulate(velocity, (7, 7, 7), 6, spacing=10.0, wavelet=first + second, snapshots=[6])
    assert np.allclose(together.snapshots, summed.snapshots, rtol=1e-4, atol=1e-12)


def test_a_ricker_wavelet_has_its_peak_where_it_should():
    found = ricker(20.0, 0.001, 200)
    assert found.argmax() == 60
    assert found[60] == 1.0
    assert abs(found[0]) < 1e-4
    spectrum = np.abs(np.fft.rfft(found, 4096))
    assert np.fft.rfftfreq(4096, 0.001)[spectrum.argmax()] == pytest.approx(20.0, abs=0.5)


GOOD = {"spacing": 10.0, "frequency": 20.0}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shape": (8, 20, 20)}, r"smaller than the stencil of order 8: at least 9 points"),
        ({"shape": (20, 20)}, r"must have the axes z, y and x"),
        ({"dtype": "float16"}, r"velocity must be float32 or float64, not float16"),
        ({"dtype": "int32"}, r"velocity must be float32 or float64, not int32"),
        ({"order": 4}, r"order must be one of 2, 8, 16, not 4"),
        ({"time_step": 1.0}, r"time_step = 1 s is not stable: at most 0.00226\d+ s"),
        ({"time_step": -1.0}, r"is not stable"),
        ({"source": (10, 10, 3)}, r"source: \(10, 10, 3\) lies outside the grid: x must be 4 to"),
        ({"source": (10.5, 10, 10)}, r"source: grid indices"),
        ({"receivers": [(10, 16, 10)]}, r"receivers: \(10, 16, 10\) lies outside the grid: y"),
        ({"steps": 0}, r"steps must be a whole number of at least 1"),
        ({"snapshots": [11]}, r"snapshots must be steps from 1 to 10"),
        ({"absorbing": 7}, r"absorbing must be 0 to 6 points, not 7"),
        ({"spacing": 0.0}, r"spacing must be above 0 m"),
        ({"frequency": -1.0}, r"frequency must be above 0"),
        ({"wavelet": np.ones(10)}, r"give either frequency or wavelet"),
        ({"frequency": None, "wavelet": np.ones(9)}, r"wavelet must have shape \(10,\) or"),
        ({"frequency": None, "wavelet": np.full(10, np.nan)}, r"wavelet holds NaN"),
        ({"value": np.nan}, r"velocity: 1 of 8000 values are NaN, infinite, 0 or negative"),
        ({"value": -5.0}, r"velocity: 1 of 8000 values are NaN"),
        ({"configuration": {"variant": "block3d"}}, r"variant must be stream or stream_tensor"),
        ({"configuration": {"variant": "stream", "tile_x": 7}}, r"tile_x = 7, allowed are 32, 64"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_no_memory_behind(simulate, machine, changes, said):
    changes = dict(changes)
    shape, dtype = changes.pop("shape", (20, 20, 20)), changes.pop("dtype", "float32")
    velocity = np.full(shape, 2000, dtype)
    if "value" in changes:
        velocity[3, 4, 5] = changes.pop("value")
    source, steps = changes.pop("source", (10, 10, 10)), changes.pop("steps", 10)
    free = machine.free_memory()
    with pytest.raises(ValueError, match=said) as caught:
        simulate(velocity, source, steps, **GOOD | changes)
    assert "\n" not in str(caught.value)
    assert machine.free_memory() == free


def test_an_array_that_is_not_contiguous_is_refused(simulate):
    velocity = np.full((20, 20, 40), 2000.0, np.float32)[:, :, ::2]
    with pytest.raises(ValueError, match=r"velocity must be contiguous"):
        simulate(velocity, (10, 10, 10), 5, absorbing=4, **GOOD)


def test_arrays_by_their_interface_give_numpy_traces_and_no_snapshots(simulate, machine):
    velocity = np.random.default_rng(1).uniform(1500, 3000, (20, 21, 22)).astype(np.float32)
    shown = SimpleNamespace(
        dtype=velocity.dtype,
        __cuda_array_interface__={
            "shape": velocity.shape,
            "typestr": velocity.dtype.str,
            "data": (velocity.ctypes.data, False),
            "version": 3,
        },
    )
    how = {**GOOD, "receivers": [(9, 9, 9)]}
    expected = simulate(velocity, (10, 10, 10), 8, **how)
    found = simulate(shown, (10, 10, 10), 8, **how)
    assert isinstance(found.traces, np.ndarray)
    assert np.array_equal(found.traces, expected.traces)
    free = machine.free_memory()
    with pytest.raises(ValueError, match=r"snapshots need an array of NumPy, CuPy or PyTorch"):
        simulate(shown, (10, 10, 10), 8, **how, snapshots=[8])
    assert machine.free_memory() == free


def test_too_little_memory_says_how_much_is_needed(simulate, machine):
    held = machine.allocate(machine.free_memory() - 1_000_000)
    velocity = np.full((60, 60, 60), 2000.0, np.float32)
    with pytest.raises(TooLittleMemory, match=r"needs 0.00 GB, 0.00 GB are free"):
        simulate(velocity, (30, 30, 30), 5, **GOOD)
    assert machine.free_memory() == 1_000_000
    machine.release(held)


def test_the_listed_configurations_are_those_of_the_recorded_rows():
    assert json.loads(FILE.read_text()) == recorded_choices()


def test_without_a_driver_it_says_so():
    velocity = np.full((20, 20, 20), 2000.0, np.float32)
    with pytest.raises(UserError, match=r"CUDA: no (driver|usable device)"):
        propagate(velocity, (10, 10, 10), 5, absorbing=4, **GOOD)


@pytest.mark.slow
def test_the_example_shows_a_wave_that_receivers_hear(simulate, tmp_path):
    points = 50
    velocity, found, kept = shot.shoot(points, simulate)
    assert sorted(set(velocity.ravel())) == [1500.0, 2200.0, 2900.0, 3600.0, 4500.0]
    # A receiver beside the source hears it first, and loudest.
    loudest = np.abs(found.traces).max(axis=0)
    middle = points // 2 - shot.absorbing(points)
    assert np.argmax(loudest) == middle
    first = np.argmax(np.abs(found.traces) > 0.1 * loudest, axis=0)
    assert first[middle] < first[0]
    assert first[middle] < first[-1]
    shot.picture(tmp_path / "shot.html", velocity, found, kept)
    assert "receivers" in (tmp_path / "shot.html").read_text(encoding="utf-8")
