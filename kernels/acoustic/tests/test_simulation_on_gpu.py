"""Simulations on a real GPU: arrays of every library, streams, threads. Run with -m gpu."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from absorption import left_by_layer
from test_acoustic_simulation import by_numpy

from kernels.acoustic.simulation import propagate

pytestmark = pytest.mark.gpu

KINDS = [(dtype, order) for dtype in ("float32", "float64") for order in (2, 8, 16)]
STEPS = 15


def case(dtype: str, order: int) -> tuple[np.ndarray, tuple[int, ...], dict[str, Any]]:
    """Velocity, source and the rest of a call on a grid whose axes differ."""
    rng = np.random.default_rng(order)
    shape = (order + 40, order + 55, order + 83)
    source = tuple(size // 2 for size in shape)
    how = {
        "spacing": 5.0,
        "wavelet": rng.standard_normal(STEPS),
        "order": order,
        "receivers": [source, (order // 2,) * 3],
        "snapshots": [7, STEPS],
        "absorbing": 0,
    }
    return rng.uniform(1500, 3000, shape).astype(dtype), source, how


@pytest.mark.parametrize(("dtype", "order"), KINDS)
@pytest.mark.parametrize("variant", [None, "stream"])
def test_it_is_what_numpy_computes(dtype: str, order: int, variant: str | None) -> None:
    velocity, source, how = case(dtype, order)
    if variant is not None:
        rows = 16 if dtype == "float32" else 8
        how["configuration"] = {
            **{"variant": variant, "tile_x": 64, "tile_y": rows, "stages": 3},
            **{"blocks_per_sm": 1, "z_chunks": 2},
        }
    shot = propagate(velocity, source, STEPS, **how)
    expected = by_numpy(velocity, source, how["wavelet"], 5.0, shot.time_step, order)
    allowed = np.abs(expected).max() * (2e-5 if dtype == "float32" else 1e-13)
    assert np.abs(shot.snapshots - expected[[6, STEPS - 1]]).max() < allowed
    assert np.abs(shot.traces[:, 0] - expected[(slice(None), *source)]).max() < allowed


@pytest.mark.parametrize(("dtype", "order"), KINDS)
def test_arrays_of_cupy_on_a_stream_with_work_before_and_after(dtype: str, order: int) -> None:
    cupy = pytest.importorskip("cupy")
    velocity, source, how = case(dtype, order)
    expected = propagate(velocity, source, STEPS, **how)
    whole = cupy.asarray(velocity)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        late = cupy.zeros_like(whole)
        slow = cupy.random.random((4000, 4000))
        slow = slow @ slow
        late += whole
        shot = propagate(late, source, STEPS, **how)
        doubled = shot.snapshots * 2
    stream.synchronize()
    assert np.array_equal(cupy.asnumpy(shot.snapshots), expected.snapshots)
    assert np.array_equal(cupy.asnumpy(shot.traces), expected.traces)
    # CuPy may flush the smallest float32 numbers to zero.
    assert np.allclose(cupy.asnumpy(doubled), 2 * expected.snapshots, rtol=0, atol=1e-30)


@pytest.mark.parametrize(("dtype", "order"), KINDS)
def test_tensors_of_pytorch(dtype: str, order: int) -> None:
    torch = pytest.importorskip("torch")
    velocity, source, how = case(dtype, order)
    expected = propagate(velocity, source, STEPS, **how)
    shot = propagate(torch.from_numpy(velocity).cuda(), source, STEPS, **how)
    assert np.array_equal(shot.snapshots.cpu().numpy(), expected.snapshots)
    assert np.array_equal(shot.traces.cpu().numpy(), expected.traces)


def test_two_threads_at_once() -> None:
    velocity, source, how = case("float32", 8)
    expected = propagate(velocity, source, STEPS, **how)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(propagate(velocity, source, STEPS, **how)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert all(np.array_equal(shot.snapshots, expected.snapshots) for shot in found)


def test_the_layer_absorbs_on_the_gpu() -> None:
    left = {width: left_by_layer(propagate, 101, 400, width) for width in (0, 30)}
    assert left[30] < 0.05 * left[0]
