"""Parameters and configurations of a simulation, checked before anything is allocated."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.errors import UserError
from launchwise.workloads.space import feasible
from launchwise.workloads.spec import Spec

from ..host.stencil import weights

ORDERS = (2, 8, 16)
TYPES = ("float32", "float64")
REFLECTION = 1e-3
"""Amplitude that a wave of normal incidence keeps on its way through the absorbing layer and back,
by the continuous equation."""

Position = tuple[int, int, int]  # grid indices (z, y, x)


def stability_limit(order: int) -> float:
    """Largest v dt / h for which the leapfrog scheme is stable in three dimensions. 2 / sqrt(3 sum
    |c_k|) with the weights c_k of the second difference, those of both sides counted (von Neumann
    analysis at the largest wave number)."""
    reach = np.abs(weights(order))
    return 2.0 / math.sqrt(3.0 * float(reach[0] + 2.0 * reach[1:].sum()))


def ricker(
    frequency: float, time_step: float, steps: int, delay: float | None = None
) -> np.ndarray:
    """A Ricker wavelet: float64, shape (steps,), largest value 1.

    (1 - 2 a) exp(-a) with a = (pi f (t - delay))^2 (Ricker 1953).

    ``frequency``: peak frequency f, Hz.
    ``time_step``: seconds from one value to the next.
    ``delay``: time of the largest value, s; 1.2 / f when left out, where the first value is below
    1e-4.
    """
    if not frequency > 0:
        raise ValueError(f"frequency must be above 0, not {frequency}")
    centre = 1.2 / frequency if delay is None else delay
    a = (math.pi * frequency * (np.arange(steps) * time_step - centre)) ** 2
    return (1.0 - 2.0 * a) * np.exp(-a)


@dataclass(frozen=True)
class Grid:
    """Points of a simulation."""

    shape: tuple[int, int, int]  # points along z, y and x, the boundary included
    dtype: np.dtype
    order: int
    spacing: float  # distance of two points, m

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(
                f"order must be one of {', '.join(map(str, ORDERS))}, not {self.order}"
            )
        if self.dtype.name not in TYPES:
            raise ValueError(f"velocity must be float32 or float64, not {self.dtype}")
        if len(self.shape) != 3:
            raise ValueError(f"velocity must have the axes z, y and x, not shape {self.shape}")
        if min(self.shape) <= self.order:
            least = self.order + 1
            raise ValueError(
                f"a grid of {self.shape} points is smaller than the stencil of order {self.order}: "
                f"at least {least} points along each axis"
            )
        if not (math.isfinite(self.spacing) and self.spacing > 0):
            raise ValueError(f"spacing must be above 0 m, not {self.spacing}")

    @property
    def radius(self) -> int:
        """Points of the boundary on each side: u is zero there."""
        return self.order // 2

    @property
    def pitch(self) -> int:
        """Elements from one row to the next in arrays of the simulation: whole 128 bytes."""
        line = 128 // self.dtype.itemsize
        return -(-self.shape[2] // line) * line

    @property
    def array_bytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.pitch * self.dtype.itemsize

    def at(self, position: Position) -> int:
        """Element of a point in arrays of the simulation."""
        z, y, x = position
        return (z * self.shape[1] + y) * self.pitch + x

    def positions(self, name: str, given: Any) -> list[Position]:
        """Positions inside the boundary: one (z, y, x), or a sequence of such. Raises ValueError
        for one that is no such position, or that lies outside."""
        rows = np.asarray(given)
        rows = rows.reshape(1, 3) if rows.shape == (3,) else rows
        if rows.ndim != 2 or rows.shape[1:] != (3,) or rows.dtype.kind not in "iu":
            raise ValueError(f"{name}: grid indices (z, y, x) are wanted, not {given!r}")
        low = self.radius
        for row in rows.tolist():
            for axis, index, size in zip("zyx", row, self.shape, strict=True):
                if not low <= index < size - low:
                    raise ValueError(
                        f"{name}: {tuple(row)} lies outside the grid: {axis} must be {low} to "
                        f"{size - low - 1}"
                    )
        return [tuple(row) for row in rows.tolist()]

    def checked_time_step(self, time_step: float | None, fastest: float) -> float:
        """``time_step`` or, where it is None, nine tenths of the largest stable one, s. Raises
        ValueError when it is not stable (Courant, Friedrichs, Lewy 1928); the limit is named."""
        limit = stability_limit(self.order) * self.spacing / fastest
        if time_step is None:
            return 0.9 * limit
        if not 0 < time_step <= limit:
            raise ValueError(
                f"time_step = {time_step:g} s is not stable: at most {limit:.6g} s with spacing "
                f"{self.spacing:g} m, velocities up to {fastest:g} m/s and order {self.order}"
            )
        return time_step

    def damping(self, width: int, time_step: float, fastest: float) -> np.ndarray:
        """Factor of u per step in the absorbing layer, for each x, then y, then z: ``dtype``, 1-D.
        A factor is 1 / (1 + dt sigma / 2). sigma grows with the square of the depth in the layer,
        so that what comes back from the boundary has the amplitude :data:`REFLECTION` (as of a
        perfectly matched layer; Collino and Tsogka 2001)."""
        inside = min(self.shape) - self.order
        if not 0 <= width <= inside // 2:
            raise ValueError(f"absorbing must be 0 to {inside // 2} points, not {width}")
        most = 1.5 * fastest * math.log(1 / REFLECTION) / (max(width, 1) * self.spacing)
        profiles = []
        for size in reversed(self.shape):
            index = np.arange(size)
            edge = np.minimum(index, size - 1 - index) - self.radius
            depth = np.clip((width - edge) / max(width, 1), 0.0, 1.0) if width else np.zeros(size)
            profiles.append(1 / (1 + 0.5 * time_step * most * depth**2))
        return np.concatenate(profiles).astype(self.dtype)


def wavelets_of(
    given: Any, sources: int, steps: int, velocities: Sequence[float], grid: Grid, time_step: float
) -> np.ndarray:
    """Amount that each source adds to u per step: ``dtype``, shape (sources, steps). dt^2 v^2 f(t)
    / h^3: the source term of a point in the discrete equation, so that far away in a homogeneous
    medium u is f(t - r / v) / (4 pi r). Raises ValueError when the wavelet's shape fits neither all
    sources nor each of them, or holds NaN."""
    values = np.asarray(given, float)
    if values.shape not in ((steps,), (sources, steps)):
        raise ValueError(
            f"wavelet must have shape ({steps},) or ({sources}, {steps}), not {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("wavelet holds NaN or infinite values")
    speed = np.asarray(velocities, float)[:, None]
    added = (time_step * speed) ** 2 * np.broadcast_to(values, (sources, steps))
    return np.ascontiguousarray(added / grid.spacing**3, grid.dtype)


FILE = Path(__file__).with_name("choices.json")  # made from recorded rows by `recorded`


def choice(grid: Grid, spec: Spec, gpu: Mapping[str, Any]) -> dict[str, Any]:
    """The first listed configuration that the GPU can run.

    ``gpu``: facts of the GPU that constraints read.
    Raises UserError when it can run none.
    """
    listed = json.loads(FILE.read_text(encoding="utf-8"))[f"{grid.dtype.name} {grid.order}"]
    # Constraints speak of cubes: rows are those of this grid, padded.
    problem = {"n": grid.pitch, "dtype": grid.dtype.name, "order": grid.order}
    for values in listed:
        whole = {**spec.neutral, **values}
        if feasible(spec, problem, whole, gpu):
            return values
    raise UserError("simulation", "device", "its GPU can run no kernel of the acoustic stencil")


def checked(configuration: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    """A configuration that a caller gave. Raises ValueError when it is none of a kernel that
    simulations can use."""
    variant = configuration.get("variant")
    if variant not in ("stream", "stream_tensor"):
        raise ValueError(
            f"configuration: variant must be stream or stream_tensor, not {variant!r}: others "
            "have no absorbing layer"
        )
    needed = [name for name in spec.variants[str(variant)].tunables if name != "row_padding"]
    for name in needed:
        if name not in configuration:
            raise ValueError(f"configuration: {name} is missing")
        if configuration[name] not in spec.tunables[name].values:
            allowed = ", ".join(map(str, spec.tunables[name].values))
            raise ValueError(
                f"configuration: {name} = {configuration[name]!r}, allowed are {allowed}"
            )
    return {"variant": variant, **{name: configuration[name] for name in needed}}
