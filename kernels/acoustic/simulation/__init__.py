"""Acoustic waves simulated from Python, as a library function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...calling.driver import CudaError, TooLittleMemory
from .problem import Position, ricker, stability_limit
from .running import Shot
from .shots import Simulator

__all__ = ["CudaError", "Shot", "TooLittleMemory", "propagate", "ricker", "stability_limit"]


def propagate(
    velocity: Any,
    source: Position | Sequence[Position],
    steps: int,
    *,
    spacing: float,
    frequency: float | None = None,
    wavelet: Any = None,
    time_step: float | None = None,
    order: int = 8,
    receivers: Sequence[Position] = (),
    snapshots: Sequence[int] = (),
    absorbing: int = 20,
    configuration: Mapping[str, Any] | None = None,
    stream: Any = None,
    progress: bool = False,
) -> Shot:
    """Propagate a wave from one or several sources through a velocity model.

    Solves (1 / v^2) u_tt - laplacian(u) = f(t) delta(x - source) with leapfrog in time and central
    differences in space; u and its time derivative are zero at the beginning, u is zero on the
    outermost ``order / 2`` points of each side. The work runs on the caller's current stream, after
    what is queued there, and the call returns when it is done.

    ``velocity``: m/s, float32 or float64, contiguous, shape (nz, ny, nx), each axis longer than
    ``order``: CuPy, PyTorch, ``__cuda_array_interface__`` or DLPack; NumPy arrays are copied to the
    first device.
    ``source``: grid indices (z, y, x), or a sequence of such.
    ``steps``: time steps.
    ``spacing``: distance of two points along every axis, m.
    ``frequency``: peak frequency of a Ricker wavelet at every source, Hz.
    ``wavelet``: instead of it, f at each step: shape (steps,), or (sources, steps).
    ``time_step``: seconds; nine tenths of the largest stable one when left out.
    ``order``: of the differences in space: 2, 8 or 16.
    ``receivers``: grid indices (z, y, x) where u is kept after each step.
    ``snapshots``: steps, from 1, after which all of u is kept.
    ``absorbing``: width of the absorbing layer inside the boundary, points; 0 for none.
    ``configuration``: kernel and tunables, as ``launchwise recommend acoustic_kernels`` names them;
    the best of a recorded H200 that the GPU can run when left out.
    ``stream``: instead of the current one: a stream of CuPy, PyTorch or PyCUDA, or its handle.
    ``progress``: whether a bar shows the steps that are done; they are waited for in groups of 50.
    Returns traces and snapshots as arrays of the library of ``velocity`` (NumPy for those read by
    an interface), with the time step and the configuration.
    Raises ValueError for anything above that is not so, before anything is allocated; a time step
    that is not stable raises an error with the limit; TooLittleMemory with what is needed and what
    is free; UserError without a driver or nvcc, or on a GPU without a kernel; CudaError when the
    driver refuses something, also for what went wrong before on the same device.
    """
    return _simulator().run(
        velocity,
        source,
        steps,
        spacing=spacing,
        frequency=frequency,
        wavelet=wavelet,
        time_step=time_step,
        order=order,
        receivers=receivers,
        snapshots=snapshots,
        absorbing=absorbing,
        configuration=configuration,
        stream=stream,
        progress=progress,
    )


def _simulator() -> Simulator:
    from .opening import card_with, facts, located, spec, wait_for

    return Simulator(spec(), facts, card_with, located, wait_for)
